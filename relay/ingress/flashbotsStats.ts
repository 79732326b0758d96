// A bundle and its owner's figures in the shapes of Flashbots' statistics, which libraries and bots read. Times are ISO 8601, wei
// and gas decimal strings. Libraries with types read nothing else: a key that is not known here is "0x", an amount "0", and a
// bundle that is not known has all its flags and lists.
// https://github.com/flashbots/ethers-provider-flashbots-bundle/blob/master/src/index.ts
// https://docs.rs/ethers-flashbots/0.15.0/ethers_flashbots/struct.BundleStats.html

import { isoTime } from "../../shared/clock.ts";
import type { BundleDelivery, BundleRecord } from "../domain/bundleStatus.ts";
import { type DayFigures, dayOf } from "../domain/searcherFigures.ts";

/** What both versions say of a bundle that its owner did not send for that block. */
const UNKNOWN = {
	isSimulated: false,
	isHighPriority: false,
	consideredByBuildersAt: [],
	sealedByBuildersAt: [],
};
/** Gas that was simulated: it is not counted here. */
const NOT_COUNTED = "0";

/** The bundle in `block`, as flashbots_getBundleStatsV2 tells it. */
export function bundleStatsV2(record: BundleRecord | null, block: number, hasRecord: boolean): unknown {
	const known = record === null ? null : inBlock(record, block, hasRecord);
	if (known === null) return UNKNOWN;
	const { sent: _, receivedAt, ...both } = known;
	return { ...both, receivedAt };
}

/** The same as flashbots_getBundleStats tells it; a "miner" is a builder. */
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

/** What both versions tell; null if it was not for that block. */
function inBlock(record: BundleRecord, block: number, hasRecord: boolean) {
	const status = record.blocks.find((one) => one.block === block);
	if (status === undefined) return null;
	const answers = status.isTold ? status.deliveries : [];
	const sent = answers.filter(({ kind, answer }) => kind === "bundle" && answer !== "unsent");
	const { simulatedAt, receivedAt } = record;
	return {
		isSimulated: simulatedAt !== null,
		isHighPriority: hasRecord,
		simulatedAt: simulatedAt === null ? null : isoTime(simulatedAt),
		receivedAt: isoTime(receivedAt),
		consideredByBuildersAt: sent.filter(({ answer }) => answer === "accepted").map(considered),
		// Builders do not tell which blocks they made.
		sealedByBuildersAt: [],
		sent,
	};
}

/** Builders are known by their names here. */
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

/** An owner's figures; `hasRecord`: whether it has one at a builder. Days are those of UTC, today included. */
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

/** As flashbots_getUserStatsV2 tells them. */
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

/** As flashbots_getUserStats tells them. */
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
