// Faults of a cluster, one after another: drawn from a shuffled deck by a seed, so that each kind
// comes up before one comes twice, and the same seed does the same again.

import { pause, systemClock } from "../../shared/clock.ts";
import type { SeededRandom } from "../support/seededRandom.ts";
import type { Cluster, Member } from "./cluster.ts";
import type { Cut } from "./partition.ts";

const KINDS = ["kill", "suspend", "database", "coreUp", "coreDown", "coreBoth", "postgres", "drain"] as const;
type Kind = (typeof KINDS)[number];

/** Whom it happens to. */
type Role = "core" | "edge" | "boost";

/** A fault that happened; times in Unix ms. */
export interface FaultRecord {
	readonly kind: Kind;
	/** A member's name, or "postgres". */
	readonly target: string;
	readonly role: Role | "database";
	readonly from: number;
	/** When it was mended or begun anew; null: it goes on. */
	to: number | null;
}

interface Draw {
	readonly kind: Kind;
	readonly role: Role;
	/** Which of several. */
	readonly index: number;
	readonly cut: Cut;
	/** Ms. */
	readonly lasts: number;
	readonly pauses: number;
}

/** How long each kind lasts, in ms: at least, and at most. A lease is of 6,000. */
const LASTS: Readonly<Record<Kind, readonly [number, number]>> = {
	kill: [300, 600],
	suspend: [6_500, 8_500],
	database: [1_500, 5_500],
	coreUp: [1_000, 4_000],
	coreDown: [1_000, 4_000],
	coreBoth: [1_000, 4_000],
	postgres: [300, 2_500],
	drain: [300, 600],
};
const ROLES = { core: 2, edge: 1, boost: 1 };
const DIRECTIONS = { coreUp: "up", coreDown: "down", coreBoth: "both" } as const;

/** Draws and does faults. */
export class Faults {
	/** The faults so far. */
	readonly records: FaultRecord[] = [];
	readonly #random: SeededRandom;
	readonly #cluster: Cluster;
	readonly #pauses: readonly [number, number];
	#deck: Kind[] = [];

	/** `pauses`: between two faults, in ms, at least and at most. */
	constructor(random: SeededRandom, cluster: Cluster, pauses: readonly [number, number]) {
		this.#random = random;
		this.#cluster = cluster;
		this.#pauses = pauses;
	}

	/**
	 * Does one after another for `ms` at least, and each kind as often as any other; `tell` receives
	 * each.
	 */
	async run(ms: number, tell: (record: FaultRecord) => void): Promise<void> {
		const end = systemClock.monotonic() + ms;
		while (systemClock.monotonic() < end || this.#deck.length > 0) {
			// Drawn whatever the cluster's state is, so that a seed draws the same.
			const draw = this.#draw();
			await pause(systemClock, draw.pauses);
			await this.#do(draw, tell);
		}
	}

	#draw(): Draw {
		const random = this.#random;
		if (this.#deck.length === 0) {
			const left: Kind[] = [...KINDS];
			while (left.length > 0) this.#deck.push(...left.splice(random.below(left.length), 1));
		}
		const kind = this.#deck.shift() ?? "kill";
		const [least, most] = LASTS[kind];
		const [shortest, longest] = this.#pauses;
		return {
			kind,
			role: random.weighted(ROLES),
			index: random.below(6),
			cut: random.pick(["both", "refused"]),
			lasts: least + random.below(most - least),
			pauses: shortest + random.below(longest - shortest),
		};
	}

	async #do(draw: Draw, tell: (record: FaultRecord) => void): Promise<void> {
		const cluster = this.#cluster;
		const { kind, lasts } = draw;
		const core = await cluster.core();
		const member = this.#memberFor(draw, core);
		const record: FaultRecord = {
			kind,
			target: kind === "postgres" ? "postgres" : member.name,
			role: kind === "postgres" ? "database" : roleOf(member, core),
			from: systemClock.now(),
			to: null,
		};
		this.records.push(record);
		tell(record);
		switch (kind) {
			case "kill":
				member.process?.signal("SIGKILL");
				break;
			case "drain":
				member.process?.signal("SIGTERM");
				break;
			case "suspend":
				member.suspend();
				break;
			case "database":
				member.database.cut(draw.cut);
				break;
			case "postgres":
				await cluster.postgres.kill();
				break;
			default:
				this.#cutOff(DIRECTIONS[kind], member, core);
		}
		await pause(systemClock, lasts);
		if (kind === "postgres") await cluster.postgres.start();
		else cluster.mend();
		record.to = systemClock.now();
	}

	/** An edge loses the core, or the core all edges. */
	#cutOff(how: Cut, member: Member, core: Member): void {
		if (member === core) core.internal?.cut(how);
		else core.internal?.cut(how, member.process?.pid ?? 0);
	}

	#memberFor({ kind, role, index }: Draw, core: Member): Member {
		const { boosts, relays } = this.#cluster;
		const edges = relays.filter((one) => one !== core);
		// Faults between relays do not happen to boost, and a drain is the core's.
		const isBetween = kind.startsWith("core");
		const of = kind === "drain" || role === "core" ? [core] : role === "boost" && !isBetween ? boosts : edges;
		return of[index % Math.max(1, of.length)] ?? core;
	}
}

function roleOf(member: Member, core: Member): Role {
	if (member === core) return "core";
	return member.kind === "boost" ? "boost" : "edge";
}
