// The chain's time, by which rows age, and the fork's rules, as the independent node or our relay
// reports them. Between heads, and while neither answers, the time advances by the monotonic clock.
// A step of the machine's clock does not change it, and no fallback is asked. The length of a slot
// is learnt from the same heads.

import type { Background } from "../../shared/background.ts";
import { Loop } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import { ForkSchedule } from "../../shared/ethereum/forkSchedule.ts";
import { type Fork, forkShownBy } from "../../shared/ethereum/forks.ts";
import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import type { SlotHead, Slots } from "../../shared/ethereum/slots.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { ChainReads } from "../domain/ports.ts";

export interface ChainTimeDependencies {
	/** Excludes the fallback, which could make rows old. */
	readonly chain: ChainReads;
	readonly background: Background;
	readonly clock: Clock;
}

/** The deadline of one request, in ms. */
const ASK_MS = 1_000;
/** The minimum time between two reads of the head, in ms. */
const LEAST_TICK_MS = 500;
/** The number of blocks read at once: public nodes accept few. */
const BATCH = 10;

export class ChainTime {
	readonly #clock: Clock;
	readonly #forks: ForkSchedule;
	/** The head's timestamp in ms since the epoch, and when it was last read (monotonic ms). */
	#head: { readonly time: number; readonly at: number } | null = null;
	/** The highest number of a head. */
	#height = -1;

	/** `chainId`: null while it is not known. */
	constructor(options: { readonly chainId: () => bigint | null }, dependencies: { readonly clock: Clock }) {
		this.#clock = dependencies.clock;
		this.#forks = new ForkSchedule(options);
	}

	/** Ms since the epoch; null until a head is known. */
	now(): number | null {
		return this.#head === null ? null : this.#head.time + (this.#clock.monotonic() - this.#head.at);
	}

	/** The rules of a block that begins in `ms`; until a head is known, the oldest known rules. */
	forkIn(ms: number): Fork {
		return this.#forks.at(((this.now() ?? 0) + ms) / 1_000);
	}

	/** Reads the head twice a slot, whose length is learnt, and once before the start completes. */
	follow(
		slots: Pick<Slots, "ms" | "missingBefore" | "came">,
		dependencies: ChainTimeDependencies,
	): Component {
		const options = {
			task: "following the chain's time",
			get tickMs() {
				return Math.max(slots.ms / 2, LEAST_TICK_MS);
			},
		};
		const loop = new Loop(options, dependencies, async () => {
			await this.#ask(slots, dependencies.chain);
			return { left: true, scanMs: 0 };
		});
		return {
			name: "chain time",
			start: async () => {
				await this.#ask(slots, dependencies.chain);
				loop.trigger();
			},
			stop: () => loop.stop(),
		};
	}

	async #ask(slots: Pick<Slots, "missingBefore" | "came">, chain: ChainReads): Promise<void> {
		const [answer] = (await chain.batch([blockCall("latest")], ASK_MS)) ?? [];
		const header = fieldsOf(answer);
		const [seconds, height] = [header.timestamp, header.number].map(parseNodeQuantity);
		if (seconds == null) return;
		this.#head = { time: Number(seconds) * 1_000, at: this.#clock.monotonic() };
		// A lower head comes from another node, which is behind.
		if (height == null || Number(height) <= this.#height) return;
		const head = { number: Number(height), timestamp: Number(seconds) };
		await this.#askForks(header, head, chain);
		const before = await readHeads(slots.missingBefore(head), chain);
		// The next tick reads this head again.
		if (before === null) return;
		this.#height = head.number;
		slots.came([...before, head]);
	}

	async #askForks(header: BlockFields, head: SlotHead, chain: ChainReads): Promise<void> {
		this.#forks.see(forkShownBy(header));
		if (!this.#forks.isDue(head)) return;
		const [config] = (await chain.batch([{ method: "eth_config", params: [] }], ASK_MS)) ?? [];
		if (config?.ok === true) this.#forks.learn(config.result);
	}
}

/** The blocks with these numbers; null if one is unreadable. */
async function readHeads(numbers: readonly number[], chain: ChainReads): Promise<readonly SlotHead[] | null> {
	const heads: SlotHead[] = [];
	for (let at = 0; at < numbers.length; at += BATCH) {
		const some = numbers.slice(at, at + BATCH);
		const answers = await chain.batch(
			some.map((number) => blockCall(toQuantity(number))),
			ASK_MS,
		);
		for (const [i, number] of some.entries()) {
			const seconds = parseNodeQuantity(fieldsOf(answers?.[i]).timestamp);
			if (seconds === null) return null;
			heads.push({ number, timestamp: Number(seconds) });
		}
	}
	return heads;
}

function blockCall(block: string): RpcCall {
	return { method: "eth_getBlockByNumber", params: [block, false] };
}

type BlockFields = Readonly<Record<string, unknown>>;

/** The fields of an answer with a block. */
function fieldsOf(answer: RpcAnswer | undefined): BlockFields {
	return (answer?.ok === true ? (answer.result as BlockFields | null) : null) ?? {};
}
