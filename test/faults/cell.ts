// Runs one cell of the fault matrix: a fault under traffic, with its measurements and violations as
// the result. Only the order of events is decided here; invariants.ts says what must hold.

import { systemClock } from "../../shared/clock.ts";
import { PATIENCE_MS, until } from "../support/until.ts";
import { type BoostStatus, statusOf, statusWhen } from "./boostHere.ts";
import { type CellParts, startCellParts } from "./cellParts.ts";
import { type FaultCase, isUnserved } from "./faultCases.ts";
import { type Figures, figuresOf } from "./figures.ts";
import { type Violations, violationsOf } from "./invariants.ts";
import { type Sent, Traffic } from "./traffic.ts";
import type { World } from "./world.ts";

export interface CellOptions {
	/** Transactions a second. */
	readonly rate: number;
	/** Accounts that its traffic may take from the world. */
	readonly mostAccounts: number;
	readonly paths: readonly string[];
	/** Answers that are waited for before the outage, and during it. */
	readonly answers: number;
	/** Whether it fails again as soon as it is back. */
	readonly relapses: boolean;
	/** Whether the same is sent straight to the fallback meanwhile, to compare. */
	readonly compares: boolean;
	/** Boost's settings, over those of the fault. */
	readonly boost?: Readonly<Record<string, string>>;
}

/** One time that the fault was there. Ms, monotonic; null where that never came. */
export interface Outage {
	readonly begunAt: number;
	readonly trippedAt: number | null;
	/** Why it opened. */
	readonly reason: string | null;
	readonly liftedAt: number;
	readonly closedAt: number | null;
}

/** All that is known of a cell when its traffic has ended. */
export interface CellScenario {
	readonly fault: FaultCase;
	readonly parts: CellParts;
	readonly sent: readonly Sent[];
	/** Transactions that were sent straight to the fallback. */
	readonly direct: readonly Sent[];
	readonly outages: readonly Outage[];
	readonly before: BoostStatus;
	readonly after: BoostStatus;
}

export interface CellResult extends Violations {
	readonly figures: Figures;
}

/** One in so many is sent straight to the fallback, to compare. */
const COMPARED = 10;

/**
 * Runs `fault` in a cell of its own. Rejects where something that must happen does not within two
 * minutes.
 */
export async function runCell(world: World, fault: FaultCase, options: CellOptions): Promise<CellResult> {
	const { boost } = options;
	const settings = { ...fault.settings, boost: { ...boost, ...fault.settings?.boost } };
	const parts = await startCellParts(
		world,
		`${fault.name.replace(/\W+/g, "-")}-${systemClock.now()}`,
		settings,
	);
	const traffics: Traffic[] = [];
	try {
		const traffic = trafficTo(world, parts.boost.url, {
			...options,
			retries: fault.cutsClients === true,
		});
		traffics.push(traffic);
		const rate = options.rate / COMPARED;
		const direct = trafficTo(world, world.fallbackUrl, { ...options, rate, retries: false });
		const cell = new Cell(fault, parts, traffic, options);
		await cell.isWell();
		const before = await statusOf(parts.boost.url);
		for (const one of options.compares ? [traffic, direct] : [traffic]) one.start();
		if (options.compares) traffics.push(direct);
		await cell.answers("relay");
		const outages = [await cell.outage(false)];
		if (options.relapses) outages.push(await cell.outage(true));
		await cell.answers("relay", 2);
		await Promise.all(traffics.map((one) => one.stop()));
		await cell.isWell();
		const after = await statusOf(parts.boost.url);
		const scenario = { fault, parts, sent: traffic.sent, direct: direct.sent, outages, before, after };
		return { figures: figuresOf(scenario), ...(await violationsOf(scenario)) };
	} finally {
		await Promise.all(traffics.map((one) => one.stop()));
		await parts.stop();
	}
}

function trafficTo(
	world: World,
	url: string,
	{
		rate,
		paths,
		retries,
		mostAccounts,
	}: Pick<CellOptions, "rate" | "paths" | "mostAccounts"> & { readonly retries: boolean },
): Traffic {
	const every = { refusedEvery: 8, chainEvery: 3 };
	let left = mostAccounts;
	const fresh = () => {
		left -= 1;
		return left < 0 ? undefined : world.nextAccount();
	};
	return new Traffic({ url, rate, paths, retries, ...every, fresh, poor: world.poorAccount() });
}

/** The steps of a cell. */
class Cell {
	readonly #fault: FaultCase;
	readonly #parts: CellParts;
	readonly #traffic: Traffic;
	readonly #answers: number;
	/** Whether nobody answers while the fault is there. */
	readonly #isUnserved: boolean;

	constructor(fault: FaultCase, parts: CellParts, traffic: Traffic, { answers, paths }: CellOptions) {
		this.#fault = fault;
		this.#parts = parts;
		this.#traffic = traffic;
		this.#answers = answers;
		this.#isUnserved = paths.every((path) => isUnserved(fault, path));
	}

	/** Both breakers are closed. */
	async isWell(): Promise<number> {
		await this.#status("both closed", ({ relay, fallback }) => {
			return relay.state === "closed" && fallback?.state === "closed";
		});
		return systemClock.monotonic();
	}

	/** Waits for answers to requests that were sent from now on; `by` an upstream, or by anybody. */
	async answers(by: "relay" | "fallback" | null, count = this.#answers): Promise<void> {
		const since = systemClock.monotonic();
		const counts = ({ sentAt, upstream, kind }: Sent): boolean =>
			sentAt >= since && (by === null || (kind === "sound" && upstream === by));
		const what = `${count} answers by ${by ?? "anybody"}`;
		const are = () => this.#traffic.sent.filter(counts).length >= count;
		await this.#told(what, () => until(what, are, PATIENCE_MS));
	}

	/** The fault comes, and goes again when all has been seen of it. A relapse is a short one. */
	async outage(isRelapse: boolean): Promise<Outage> {
		const fault = this.#fault;
		const calledAt = systemClock.monotonic();
		await fault.begin(this.#parts);
		// A boost that had to start first has seen nothing before.
		const begunAt = fault.cutsClients === true ? systemClock.monotonic() : calledAt;
		if (fault.breaker === "never") {
			await this.answers("relay");
			const liftedAt = systemClock.monotonic();
			await fault.lift(this.#parts);
			return { begunAt, trippedAt: null, reason: null, liftedAt, closedAt: null };
		}
		const { relay } = await this.#status("open", (status) => status.relay.state !== "closed");
		const trippedAt = systemClock.monotonic();
		if (!isRelapse) await this.answers(this.#isUnserved ? null : "fallback");
		const liftedAt = systemClock.monotonic();
		await fault.lift(this.#parts);
		await this.isWell();
		const closedAt = systemClock.monotonic();
		// The next one, if there is one, is a relapse only while the breaker remembers this one.
		await this.answers("relay", 1);
		return { begunAt, trippedAt, reason: relay.reason, liftedAt, closedAt };
	}

	#status(what: string, is: (status: BoostStatus) => boolean): Promise<BoostStatus> {
		return this.#told(what, () => statusWhen(what, this.#parts.boost.url, is, PATIENCE_MS));
	}

	/** `wait`, whose failure tells more. */
	async #told<T>(what: string, wait: () => Promise<T>): Promise<T> {
		try {
			return await wait();
		} catch (thrown) {
			const status = JSON.stringify(await statusOf(this.#parts.boost.url).catch(() => null));
			const last = JSON.stringify(
				this.#traffic.sent.slice(-3).map(({ outcome, upstream }) => [outcome, upstream]),
			);
			const said = `${this.#fault.name}: ${what}: ${(thrown as Error).message}`;
			throw new Error(`${said}; ${status}; ${this.#traffic.inFlight} in flight; ${last}`);
		}
	}
}
