// A bundle and its owner's figures in the shapes of Flashbots' statistics, which libraries and bots
// read. Times are ISO 8601, wei and gas decimal strings. Typed libraries can read nothing else. So
// an unknown key is "0x", an unknown amount "0", and an unknown bundle has all its flags and lists.
// https://github.com/flashbots/ethers-provider-flashbots-bundle/blob/master/src/index.ts
// https://docs.rs/ethers-flashbots/0.15.0/ethers_flashbots/struct.BundleStats.html

import { isoTime } from "../../shared/clock.ts";
import { dayOf } from "../../shared/days.ts";
import type { BundleDelivery, BundleRecord } from "../domain/bundleStatus.ts";
import type { DayFigures } from "../domain/searcherFigures.ts";

/** The common fields of both versions for a bundle that its owner did not send for that block. */
const UNKNOWN = {
	isSimulated: false,
	isHighPriority: false,
	consideredByBuildersAt: [],
	sealedByBuildersAt: [],
};
/** The simulated gas, which the relay does not count. */
const NOT_COUNTED = "0";

/** The bundle in `block`, in the shape of flashbots_getBundleStatsV2. */
export function bundleStatsV2(record: BundleRecord | null, block: number, hasRecord: boolean): unknown {
	const known = record === null ? null : inBlock(record, block, hasRecord);
	if (known === null) return UNKNOWN;
	const { sent: _, receivedAt, ...both } = known;
	return { ...both, receivedAt };
}

/** The bundle in `block`, in the shape of flashbots_getBundleStats; a "miner" is a builder. */
export function bundleStats(record: BundleRecord | null, block: number, hasRecord: boolean): unknown {
	const known = record === null ? null : inBlock(record, block, hasRecord);
	if (known === null) return { ...UNKNOWN, isSentToMiners: false };
	const { sent, receivedAt, ...both } = known;
	const [first] = sent;
	return {
		...both,
		submittedAt: receivedAt,
		isSentToMiners: first !== undefined,
		sentToMinersAt: first === undefined ? null : isoTime(first.at - first.ms),
	};
}

/** The common fields of both versions; null if the bundle was not for that block. */
function inBlock(record: BundleRecord, block: number, hasRecord: boolean) {
	const status = record.blocks.find((one) => one.block === block);
	if (status === undefined) return null;
	const answers = status.isDisclosed ? status.deliveries : [];
	const sent = answers.filter(({ kind, answer }) => kind === "bundle" && answer !== "unsent");
	const { simulatedAt, receivedAt } = record;
	return {
		isSimulated: simulatedAt !== null,
		isHighPriority: hasRecord,
		simulatedAt: simulatedAt === null ? null : isoTime(simulatedAt),
		receivedAt: isoTime(receivedAt),
		consideredByBuildersAt: sent.filter(({ answer }) => answer === "accepted").map(considered),
		// Builders do not report which blocks they made.
		sealedByBuildersAt: [],
		sent,
	};
}

/** A builder's entry, which has its name because the relay does not know its key. */
function considered({ builder, at }: BundleDelivery) {
	return { pubkey: "0x", builder, timestamp: isoTime(at) };
}

interface UserFigures {
	readonly isHighPriority: boolean;
	/** Wei, as decimal strings. */
	readonly allTime: string;
	readonly last7d: string;
	readonly last1d: string;
}

/**
 * An owner's figures. `hasRecord`: whether the owner has a record at a builder. Days are UTC days,
 * today included.
 */
export function userFigures(days: readonly DayFigures[], hasRecord: boolean, now: number): UserFigures {
	const paidIn = (count: number): string => {
		const first = dayOf(now) - count;
		return String(days.reduce((sum, { day, paid }) => (day > first ? sum + paid : sum), 0n));
	};
	return {
		isHighPriority: hasRecord,
		allTime: paidIn(Number.POSITIVE_INFINITY),
		last7d: paidIn(7),
		last1d: paidIn(1),
	};
}

/** The figures in the shape of flashbots_getUserStatsV2. */
export function userStatsV2({ isHighPriority, allTime, last7d, last1d }: UserFigures): unknown {
	return {
		isHighPriority,
		allTimeValidatorPayments: allTime,
		allTimeGasSimulated: NOT_COUNTED,
		last7dValidatorPayments: last7d,
		last7dGasSimulated: NOT_COUNTED,
		last1dValidatorPayments: last1d,
		last1dGasSimulated: NOT_COUNTED,
	};
}

/** The figures in the shape of flashbots_getUserStats. */
export function userStats({ isHighPriority, allTime, last7d, last1d }: UserFigures): unknown {
	return {
		is_high_priority: isHighPriority,
		all_time_miner_payments: allTime,
		all_time_gas_simulated: NOT_COUNTED,
		last_7d_miner_payments: last7d,
		last_7d_gas_simulated: NOT_COUNTED,
		last_1d_miner_payments: last1d,
		last_1d_gas_simulated: NOT_COUNTED,
	};
}
