// Filters that clients poll: how long they live, how many one client has, and what a reorganisation makes of logs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockLogs } from "../../../../relay/chain/blockLogs.ts";
import { PolledFilters } from "../../../../relay/chain/filters.ts";
import type { Block, ChainUpdate } from "../../../../relay/domain/chain.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import type { LogCriteria } from "../../../../shared/jsonrpc/logs.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const MINUTE = 60_000;
const ALL: LogCriteria = { filter: { address: [], topics: [] }, from: null, to: null, query: {} };

/** Each block has one log, whose address is the block's hash. */
function fixture() {
	const clock = new ManualClock();
	const node = { isDown: false, asked: 0 };
	const logs = new BlockLogs({
		node: {
			async call({ params }) {
				node.asked += 1;
				if (node.isDown) throw new UpstreamError("timeout");
				const [{ blockHash }] = params as [{ blockHash: string }];
				return { ok: true, result: [{ address: blockHash, topics: [] }] };
			},
		},
	});
	const filters = new PolledFilters({ logs, clock });
	const update = (applied: readonly [number, string][], reverted: readonly [number, string][] = []) => {
		const blocks = (of: readonly [number, string][]) =>
			of.map(([number, hash]) => ({ number, hash }) as Block);
		filters.onUpdate({
			applied: blocks(applied),
			reverted: blocks(reverted),
			gap: false,
		} as unknown as ChainUpdate);
	};
	return { clock, node, filters, update };
}

test("a filter that is asked lives on, one that is not ends after five minutes", async () => {
	const { clock, filters } = fixture();
	const [used, unused] = [filters.open("a", null), filters.open("a", null)];
	for (let minute = 0; minute < 6; minute += 1) {
		await clock.advance(MINUTE);
		assert.deepEqual(await filters.changes("a", used), []);
	}
	await assert.rejects(filters.changes("a", unused), /filter not found/);
	assert.equal(filters.close("a", unused), false);
});

test("a client has 64 at most, whatever others have", () => {
	const { filters } = fixture();
	const ids = Array.from({ length: 64 }, () => filters.open("a", null));
	assert.throws(() => filters.open("a", null), /64 filters a client/);
	filters.open("b", null);
	filters.close("a", ids[0] ?? "");
	filters.open("a", null);
});

test("logs of blocks that left the chain come again as removed, those outside of the range never", async () => {
	const { filters, update } = fixture();
	const all = filters.open("a", ALL);
	const ranged = filters.open("a", { ...ALL, from: 2n, to: 2n });
	update([
		[1, "0x1"],
		[2, "0x2"],
	]);
	update([[2, "0x2b"]], [[2, "0x2"]]);
	const told = async (id: string) =>
		((await filters.changes("a", id)) as { address: string; removed: boolean }[]).map(
			({ address, removed }) => [address, removed],
		);
	assert.deepEqual(await told(all), [
		["0x1", false],
		["0x2", false],
		["0x2", true],
		["0x2b", false],
	]);
	assert.deepEqual(await told(ranged), [
		["0x2", false],
		["0x2", true],
		["0x2b", false],
	]);
	assert.deepEqual(await told(all), []);
});

test("what the node could not tell is told when it can, and each block is asked for once", async () => {
	const { filters, update, node } = fixture();
	const [one, other] = [filters.open("a", ALL), filters.open("b", ALL)];
	update([[1, "0x1"]]);
	node.isDown = true;
	await assert.rejects(filters.changes("a", one), /internal error/);
	node.isDown = false;
	node.asked = 0;
	assert.equal((await filters.changes("a", one)).length, 1);
	assert.equal((await filters.changes("b", other)).length, 1);
	assert.equal(node.asked, 1);
});
