// A bundle and a searcher's figures in Flashbots' shapes: the whole answers, and what is not known.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleBlockStatus, BundleRecord } from "../../../../relay/domain/bundleStatus.ts";
import { noFigures } from "../../../../relay/domain/searcherFigures.ts";
import {
	bundleStats,
	bundleStatsV2,
	userFigures,
	userStats,
	userStatsV2,
} from "../../../../relay/ingress/flashbotsStats.ts";

const AT = Date.UTC(2026, 1, 3, 4, 5, 6, 100);
const at = (ms: number) => new Date(AT + ms).toISOString();
const delivery = (builder: string, answer: "accepted" | "rejected" | "unsent", ms: number) =>
	({ at: AT + ms, builder, kind: "bundle", answer, ms: 2 }) as const;

const status: BundleBlockStatus = {
	...{ block: 7, stage: "LOST", reason: null, bid: 80n, paid: null, placed: true, isDisclosed: true },
	...{ blockHash: null, since: AT, at: AT },
	deliveries: [
		delivery("full", "unsent", 8),
		delivery("one", "accepted", 12),
		delivery("two", "rejected", 14),
		{ ...delivery("one", "accepted", 20), kind: "cancel" },
	],
};
const record: BundleRecord = {
	...{
		owner: "me",
		client: "me",
		hash: "0x",
		bidder: null,
		target: "0x",
		receivedAt: AT,
		feedMs: 40,
		simulatedAt: AT + 4,
	},
	...{ firstBlock: 7, lastBlock: 8, blocks: [status] },
};
const both = {
	isSimulated: true,
	isHighPriority: true,
	simulatedAt: at(4),
	consideredByBuildersAt: [{ pubkey: "0x", builder: "one", timestamp: at(12) }],
	sealedByBuildersAt: [],
};

test("a bundle in its block, in both shapes", () => {
	assert.deepEqual(bundleStatsV2(record, 7, true), { ...both, receivedAt: at(0) });
	assert.deepEqual(bundleStats(record, 7, true), {
		...{ ...both, submittedAt: at(0), isSentToMiners: true, sentToMinersAt: at(10) },
	});
});

test("nobody's bundle, and one that was not for that block, have flags and empty lists, and no times", () => {
	const lists = { consideredByBuildersAt: [], sealedByBuildersAt: [] };
	const unknown = { isSimulated: false, isHighPriority: false, ...lists };
	for (const [stats, more] of [
		[bundleStats, { isSentToMiners: false }],
		[bundleStatsV2, {}],
	] as const) {
		assert.deepEqual(stats(null, 7, false), { ...unknown, ...more });
		assert.deepEqual(stats(record, 8, true), { ...unknown, ...more });
	}
});

type Check = (value: unknown) => boolean;
const isTime: Check = (value) => typeof value === "string" && new Date(value).toISOString() === value;
const flag: Check = (value) => typeof value === "boolean";
const amount: Check = (value) => typeof value === "string" && /^\d+$/.test(value);
const maybeTime: Check = (value) => value === undefined || value === null || isTime(value);
const entries: Check = (value) =>
	Array.isArray(value) &&
	value.every(({ pubkey, timestamp }) => /^0x([0-9a-f]{2})*$/.test(pubkey) && maybeTime(timestamp));
const amounts = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, amount]));

/**
 * The fields that ethers-flashbots of Rust declares, up to 0.10 without V2 and from 0.12 on with
 * it.
 */
const RUST: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
	bundleStats: {
		...{ isSimulated: flag, isSentToMiners: flag, isHighPriority: flag },
		...{ simulatedAt: maybeTime, submittedAt: maybeTime, sentToMinersAt: maybeTime },
	},
	bundleStatsV2: {
		...{ isHighPriority: flag, isSimulated: flag, simulatedAt: maybeTime, receivedAt: maybeTime },
		...{ consideredByBuildersAt: entries, sealedByBuildersAt: entries },
	},
	userStats: {
		is_high_priority: flag,
		...amounts("all_time_miner_payments", "all_time_gas_simulated", "last_7d_miner_payments"),
		...amounts("last_7d_gas_simulated", "last_1d_miner_payments", "last_1d_gas_simulated"),
	},
	userStatsV2: {
		isHighPriority: flag,
		...amounts("allTimeValidatorPayments", "allTimeGasSimulated", "last7dValidatorPayments"),
		...amounts("last7dGasSimulated", "last1dValidatorPayments", "last1dGasSimulated"),
	},
};

test("ethers-flashbots of Rust reads every answer: each field that it declares has its type", () => {
	const figures = userFigures([], false, AT);
	const early = { ...record, simulatedAt: null, blocks: [{ ...status, deliveries: [] }] };
	const answers = { bundleStats, bundleStatsV2, userStats, userStatsV2 };
	for (const [name, fields] of Object.entries(RUST)) {
		const told =
			name === "userStats" || name === "userStatsV2"
				? [answers[name](figures)]
				: [record, early, null].map((one) => answers[name as "bundleStats"](one, 7, true));
		for (const one of told as Record<string, unknown>[])
			for (const [field, check] of Object.entries(fields))
				assert.ok(check(one[field]), `${name}.${field}: ${JSON.stringify(one[field])}`);
	}
});

test("of one that no builder has yet, and that was withdrawn before its simulation had ended, the times are null", () => {
	const early = { ...record, simulatedAt: null, blocks: [{ ...status, deliveries: [] }] };
	const none = { isSimulated: false, simulatedAt: null, consideredByBuildersAt: [], sealedByBuildersAt: [] };
	assert.deepEqual(bundleStats(early, 7, true), {
		...{ ...none, isHighPriority: true, submittedAt: at(0), isSentToMiners: false, sentToMinersAt: null },
	});
});

test("a bid whose bidder has a record has priority; before its block no builder is reported", () => {
	const stats = (one: BundleRecord, hasRecord: boolean) =>
		bundleStatsV2(one, 7, hasRecord) as { isHighPriority: boolean; consideredByBuildersAt: unknown[] };
	assert.deepEqual([stats(record, true).isHighPriority, stats(record, false).isHighPriority], [true, false]);
	const before = { ...record, blocks: [{ ...status, stage: "ACCEPTED" as const, isDisclosed: false }] };
	assert.deepEqual(stats(before, true).consideredByBuildersAt, []);
	assert.deepEqual((bundleStats(before, 7, true) as { isSentToMiners: boolean }).isSentToMiners, false);
});

test("what was paid today, in seven days and ever, in both shapes", () => {
	const today = Math.floor(AT / 86_400_000);
	const days = [0, 1, 6, 7, 400].map((ago, i) => ({
		...noFigures(today - ago),
		paid: 10n ** BigInt(i + 20),
	}));
	const figures = userFigures(days, true, AT);
	const told = { all: `11111${"0".repeat(20)}`, week: `111${"0".repeat(20)}`, day: `1${"0".repeat(20)}` };
	assert.deepEqual(userStatsV2(figures), {
		isHighPriority: true,
		...{ allTimeValidatorPayments: told.all, allTimeGasSimulated: "0" },
		...{ last7dValidatorPayments: told.week, last7dGasSimulated: "0" },
		...{ last1dValidatorPayments: told.day, last1dGasSimulated: "0" },
	});
	assert.deepEqual(userStats(figures), {
		is_high_priority: true,
		...{ all_time_miner_payments: told.all, all_time_gas_simulated: "0" },
		...{ last_7d_miner_payments: told.week, last_7d_gas_simulated: "0" },
		...{ last_1d_miner_payments: told.day, last_1d_gas_simulated: "0" },
	});
	const none = userStatsV2(userFigures([], false, AT)) as Record<string, unknown>;
	assert.deepEqual([none.isHighPriority, none.last1dValidatorPayments], [false, "0"]);
});
