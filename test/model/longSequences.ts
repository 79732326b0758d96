// Sequences of an exact length: fast-check draws lengths from none to the most, which would make half of the
// sequences short. Shrinking is fast-check's own.

import fc from "fast-check";
import type { Step } from "./commands.ts";

export interface LongSequencesOptions {
	readonly steps: number;
	/** To replay one that was made smaller. */
	readonly replayPath?: string;
}

export class LongSequences extends fc.Arbitrary<Iterable<Step>> {
	readonly #steps: number;
	readonly #inner: fc.Arbitrary<Iterable<Step>>;

	constructor(kinds: readonly fc.Arbitrary<Step>[], options: LongSequencesOptions) {
		super();
		const { steps, replayPath } = options;
		this.#steps = steps;
		const replay = replayPath === undefined ? {} : { replayPath };
		this.#inner = fc.commands([...kinds], { maxCommands: steps, size: "max", ...replay });
	}

	/** Draws until the length is right; without a bias, which favours short ones and small numbers. */
	override generate(random: fc.Random): fc.Value<Iterable<Step>> {
		for (;;) {
			const drawn = this.#inner.generate(random, undefined);
			// Not by `value`: who reads that once gets copies from then on, and which steps ran would be noted in another one.
			if ([...drawn.value_].length === this.#steps) return drawn;
		}
	}

	override canShrinkWithoutContext(value: unknown): value is Iterable<Step> {
		return this.#inner.canShrinkWithoutContext(value);
	}

	override shrink(value: Iterable<Step>, context: unknown): fc.Stream<fc.Value<Iterable<Step>>> {
		return this.#inner.shrink(value, context);
	}
}
