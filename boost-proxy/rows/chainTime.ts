// The time by which rows age: that of the chain's head, as the independent node or our relay tells it. Between heads, and while
// neither answers, it goes on by the monotonic clock. A step of the machine's clock does not change it, and no fallback is asked.

import type { Background } from "../../shared/background.ts";
import { Loop } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
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
	/** The head's timestamp in ms since the epoch, and when it was last read (monotonic ms). */
	#head: { readonly time: number; readonly at: number } | null = null;

	constructor(dependencies: { readonly clock: Clock }) {
		this.#clock = dependencies.clock;
	}

	/** Ms since the epoch; null until a head is known. */
	now(): number | null {
		return this.#head === null ? null : this.#head.time + (this.#clock.monotonic() - this.#head.at);
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
		const { timestamp } = ((answer?.ok === true ? answer.result : null) ?? {}) as { timestamp?: unknown };
		const seconds = parseNodeQuantity(timestamp);
		if (seconds !== null) this.#head = { time: Number(seconds) * 1_000, at: this.#clock.monotonic() };
	}
}
