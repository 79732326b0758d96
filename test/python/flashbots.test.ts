// Flashbots' library for Python, unmodified, against a running relay: what docs/searchers.md says
// of it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type BiddingFixture, backrunBy, startBidding } from "../support/biddingFixture.ts";
import { bundleHashOf } from "../support/secretFixture.ts";
import { until } from "../support/until.ts";
import { FLASHBOTS, PythonCalls } from "./python.ts";

type Fields = Readonly<Record<string, unknown>>;

const KEY = `0x${"5e".repeat(32)}`;
const UUID = "10000000-0000-4000-8000-000000000000";

describe("flashbots 2.0.0", { skip: FLASHBOTS.absent }, () => {
	let fixture: BiddingFixture;
	let library: PythonCalls;
	let accounts = 0;
	before(async () => {
		fixture = await startBidding({ chain: { slotSeconds: 12 } });
		library = new PythonCalls(FLASHBOTS, "test/python/library.py", [fixture.system.client.url, KEY]);
	});
	after(async () => {
		await library.stop();
		await fixture.stop();
	});

	/** A target that is shared, a backrun, and the next block. */
	async function pair() {
		accounts += 2;
		const target = await fixture.target(accounts);
		return { target, backrun: backrunBy(accounts + 1, 5_000n), next: (await fixture.head()) + 1 };
	}

	test("send_raw_bundle bids, and cancel_bundles takes the bid back", async () => {
		const { target, backrun, next } = await pair();
		const options = { replacementUuid: UUID };
		const hash = bundleHashOf(target, backrun.hash);
		assert.equal(await library.ask(["send_raw_bundle", [target, backrun.raw], next, options]), hash);
		assert.deepEqual(await fixture.stages(hash, { key: KEY }), ["ACCEPTED"]);
		assert.deepEqual(await library.ask(["cancel_bundles", UUID]), { bundleHashes: 200 });
		assert.deepEqual(await fixture.stages(hash, { key: KEY }), ["CANCELLED"]);
	});

	test("the four calls of statistics report a bundle and what its searcher has paid", async () => {
		const { target, backrun, next } = await pair();
		const hash = await library.ask(["send_raw_bundle", [target, backrun.raw], next]);
		await fixture.system.builder.waitForRequest(({ params }) => JSON.stringify(params).includes(backrun.raw));
		const early = (await library.ask(["get_bundle_stats_v2", hash, next])) as Fields;
		assert.deepEqual(
			[early.isSimulated, early.isHighPriority, early.consideredByBuildersAt],
			[false, false, []],
			"its signature opens only what is settled",
		);
		await fixture.system.nextBlock();
		const told = await until("a builder had it", async () => {
			const stats = (await library.ask(["get_bundle_stats_v2", hash, next])) as Fields;
			return (stats.consideredByBuildersAt as unknown[] | undefined)?.length === 1 && stats;
		});
		assert.deepEqual([told.isSimulated, told.sealedByBuildersAt], [true, []]);
		const older = (await library.ask(["get_bundle_stats", hash, next])) as Fields;
		assert.deepEqual([older.submittedAt, older.isSentToMiners], [told.receivedAt, true]);
		const unknown = (await library.ask(["get_bundle_stats_v2", hash, next + 1])) as Fields;
		assert.deepEqual([unknown.isSimulated, unknown.receivedAt], [false, undefined]);
		const paid = await until("what it paid is known", async () => {
			const stats = (await library.ask(["get_user_stats_v2"])) as Fields;
			return stats.isHighPriority === true && stats;
		});
		assert.deepEqual(
			[paid.allTimeValidatorPayments, paid.last7dValidatorPayments, paid.allTimeGasSimulated],
			["5000", "5000", "0"],
		);
		const first = (await library.ask(["get_user_stats"])) as Fields;
		assert.deepEqual([first.is_high_priority, first.all_time_miner_payments], [true, "5000"]);
	});

	test("simulate tells what transactions pay", async () => {
		const { backrun, next } = await pair();
		const answer = await library.ask(["simulate", [{ signed_transaction: backrun.raw }], next]);
		const { results } = answer as { results: { ethSentToCoinbase: string }[] };
		assert.deepEqual(
			results.map(({ ethSentToCoinbase }) => ethSentToCoinbase),
			["5000"],
		);
	});
});
