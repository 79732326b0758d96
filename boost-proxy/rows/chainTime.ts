// The time by which rows age, and the fork's rules: those of the chain, as the independent node or our relay tells them. Between
// heads, and while neither answers, the time goes on by the monotonic clock. A step of the machine's clock does not change it, and
// no fallback is asked.

import type { Background } from "../../shared/background.ts";
import { Loop } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import { ForkSchedule } from "../../shared/ethereum/forkSchedule.ts";
import { type Fork, newestFork } from "../../shared/ethereum/forks.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { ChainReads } from "../domain/ports.ts";

export interface ChainTimeDependencies {
	/** Without the fallback, which could make rows old. */
	readonly chain: ChainReads;
	readonly background: Background;
	readonly clock: Clock;
}

/** The deadline of one question, in ms. */
const ASK_MS = 1_000;

export class ChainTime {
	readonly #clock: Clock;
	readonly #forks: ForkSchedule;
	/** The head's timestamp in ms since the epoch, and when it was last read (monotonic ms). */
	#head: { readonly time: number; readonly at: number } | null = null;

	/** `chainId`: null while it is not known. */
	constructor(options: { readonly chainId: () => bigint | null }, dependencies: { readonly clock: Clock }) {
		this.#clock = dependencies.clock;
		this.#forks = new ForkSchedule(options);
	}

	/** Ms since the epoch; null until a head is known. */
	now(): number | null {
		return this.#head === null ? null : this.#head.time + (this.#clock.monotonic() - this.#head.at);
	}

	/** The rules of a block that begins in `ms`; the oldest that are known until a head is. */
	forkIn(ms: number): Fork {
		return this.#forks.at(((this.now() ?? 0) + ms) / 1_000);
	}

	/** Reads the head twice in a slot of `slotMs`; once before the start is over. */
	follow(slotMs: number, dependencies: ChainTimeDependencies): Component {
		const options = { task: "following the chain's time", tickMs: slotMs / 2 };
		const loop = new Loop(options, dependencies, async () => {
			await this.#ask(dependencies.chain);
			return { left: true, scanMs: 0 };
		});
		return {
			name: "chain time",
			start: async () => {
				await this.#ask(dependencies.chain);
				loop.trigger();
			},
			stop: () => loop.stop(),
		};
	}

	async #ask(chain: ChainReads): Promise<void> {
		const call = { method: "eth_getBlockByNumber", params: ["latest", false] };
		const [answer] = (await chain.batch([call], ASK_MS)) ?? [];
		const header = ((answer?.ok === true ? answer.result : null) ?? {}) as Readonly<Record<string, unknown>>;
		const [seconds, number] = [header.timestamp, header.number].map(parseNodeQuantity);
		if (seconds == null || number == null) return;
		this.#head = { time: Number(seconds) * 1_000, at: this.#clock.monotonic() };
		this.#forks.see(newestFork("headerFields", (field) => header[field] != null));
		if (!this.#forks.isDue({ number: Number(number), timestamp: Number(seconds) })) return;
		const [config] = (await chain.batch([{ method: "eth_config", params: [] }], ASK_MS)) ?? [];
		if (config?.ok === true) this.#forks.learn(config.result);
	}
}
