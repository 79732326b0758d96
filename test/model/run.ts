// Runs random sequences of steps from a seed and reports the smallest one that fails. Sequences
// share systems, one after another; a system on which one has failed is thrown away. Those of an
// exact length are made here, since fast-check draws lengths from none to the most; shrinking is
// fast-check's own.

import { inspect } from "node:util";
import { Wallet } from "ethers";
import fc from "fast-check";
import type { BuilderInput } from "../../relay/domain/builder.ts";
import { createLogger } from "../../shared/log.ts";
import { RelayFixture } from "../support/relayFixture.ts";
import { startSystem } from "../support/systems.ts";
import { STEPS, type Step } from "./commands.ts";
import { Sequence, type Stage } from "./sequence.ts";

export interface RunOptions {
	readonly sequences: number;
	/** Steps of each. */
	readonly steps: number;
	readonly seed: number;
	/** To replay one that failed: what the report said. */
	readonly path?: string;
	readonly replayPath?: string;
	/** False: what fails is not made smaller, which takes minutes. Default true. */
	readonly shrinks?: boolean;
	/**
	 * Called when one fails for the first time; from then on smaller failing ones are searched for.
	 */
	readonly onFailure?: () => void;
	/** Called after each sequence that passed. */
	readonly onSequence?: (done: number, tally: ReadonlyMap<string, number>) => void;
}

export interface RunReport {
	/** Null: nothing failed. */
	readonly failure: string | null;
	readonly sequences: number;
	/** How often each kind of step ended in which way. */
	readonly tally: ReadonlyMap<string, number>;
}

/** In blocks: short enough to be outlived in a sequence. */
const LIFE_BLOCKS = 5;
/**
 * How long the relay may take to agree, in ms: until it fails for the first time, and while it is
 * made smaller.
 */
const SETTLE_MS = 15_000;
const SHRINKING_SETTLE_MS = 4_000;
/** A system serves so many sequences: what it has seen makes it slower. */
const SEQUENCES_OF_A_SYSTEM = 25;
/** The first one builds, and is the only one that may have transactions of /fullprivacy. */
const BUILDERS = [
	{ name: "vault", fullPrivacy: true, cancel: "both" },
	{ name: "endpoint", cancel: "endpoint" },
	{ name: "empty", cancel: "empty", dialect: "mev-share" },
	{ name: "none", cancel: "none" },
] as const satisfies readonly (Partial<BuilderInput> & { name: string })[];

/** Runs them until one fails. */
export async function runSequences(options: RunOptions): Promise<RunReport> {
	const { sequences, steps, seed, path, replayPath, shrinks = true, onSequence, onFailure } = options;
	const tally = new Map<string, number>();
	const host = new Host(tally);
	let done = 0;
	const property = fc.asyncProperty(
		new LongSequences(STEPS, { steps, ...(replayPath === undefined ? {} : { replayPath }) }),
		async (commands) => {
			const hadFailed = host.failed;
			try {
				await host.play(commands);
			} catch (thrown) {
				if (!hadFailed) onFailure?.();
				throw thrown;
			}
			if (hadFailed) return;
			done += 1;
			onSequence?.(done, tally);
		},
	);
	try {
		const details = await fc.check(property, {
			numRuns: sequences,
			seed,
			endOnFailure: !shrinks,
			...(path === undefined ? {} : { path }),
		});
		const failure = details.failed ? reportOf(details, host.scenario) : null;
		return { failure, sequences: done, tally };
	} finally {
		await host.stop();
	}
}

/** The failure, how to repeat it, and the steps up to it. */
function reportOf(details: fc.RunDetails<[Iterable<Step>]>, scenario: string): string {
	const { seed, counterexamplePath, numShrinks, errorInstance, counterexample } = details;
	const { message, cause } = errorInstance as Error;
	// fetch says in it what has failed.
	const fault = cause === undefined ? message : `${message}: ${inspect(cause)}`;
	const text = String(counterexample?.[0] ?? "");
	const replayPath = /replayPath="([^"]*)"/.exec(text)?.[1] ?? "";
	return [
		`Failed, made smaller ${numShrinks} times. To have it again: --seed ${seed} --path ${counterexamplePath} --replay ${replayPath}`,
		`Its scenario:\n${scenario}`,
		`Its fault:\n${fault}`,
	].join("\n\n");
}

/** Starts systems and has sequences played on them. */
class Host {
	readonly #tally: Map<string, number>;
	#on: { readonly stage: Stage; readonly fixture: RelayFixture } | null = null;
	#played = 0;
	/** One has failed. */
	failed = false;
	/** The scenario of the last sequence that failed. */
	scenario = "";

	constructor(tally: Map<string, number>) {
		this.#tally = tally;
	}

	async play(commands: Iterable<Step>): Promise<void> {
		if (this.#played >= SEQUENCES_OF_A_SYSTEM) await this.stop();
		this.#on ??= await this.#start();
		this.#played += 1;
		const { stage, fixture } = this.#on;
		const sequence = await Sequence.begin(stage, fixture, this.failed ? undefined : this.#tally);
		try {
			await fc.asyncModelRun(async () => ({ model: sequence.model, real: sequence }), commands);
			await sequence.end();
		} catch (thrown) {
			this.scenario = sequence.scenario.join("\n");
			this.failed = true;
			// Its remains would disturb the next one.
			await this.stop();
			throw thrown;
		}
	}

	async stop(): Promise<void> {
		const on = this.#on;
		this.#on = null;
		this.#played = 0;
		if (on === null) return;
		await on.stage.system.stop();
	}

	async #start(): Promise<{ stage: Stage; fixture: RelayFixture }> {
		const complaints: string[] = [];
		const system = await startSystem({
			proxied: true,
			builders: BUILDERS,
			env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS), TRUST_PROXY: "1" },
			// Errors alone: whatever a sequence does, the relay has none.
			log: createLogger("error", "relay", {
				write: (line) => void complaints.push(`the relay logged: ${line}`),
			}),
		});
		const stage: Stage = {
			system,
			stranger: STRANGER,
			rows: BUILDERS,
			lifeBlocks: LIFE_BLOCKS,
			settleMs: this.failed ? SHRINKING_SETTLE_MS : SETTLE_MS,
			complaints,
		};
		return { stage, fixture: new RelayFixture(system) };
	}
}

const STRANGER = new Wallet(`0x${"57".repeat(32)}`);

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

	/**
	 * Draws until the length is right; without a bias, which favours short ones and small numbers.
	 */
	override generate(random: fc.Random): fc.Value<Iterable<Step>> {
		for (;;) {
			const drawn = this.#inner.generate(random, undefined);
			// Not by `value`: who reads that once gets copies from then on, and which steps ran would be
			// noted in another one.
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
