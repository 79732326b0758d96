// New heads for subscribers if the node fails, and the filters that clients poll.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BlockLogs } from "../../../../relay/chain/blockLogs.ts";
import { createHeadFeed } from "../../../../relay/chain/feeds.ts";
import { PolledFilters } from "../../../../relay/chain/filters.ts";
import type { Block, ChainUpdate } from "../../../../relay/domain/chain.ts";
import { NEW_HEADS } from "../../../../relay/domain/endpoints.ts";
import { Recoveries } from "../../../../relay/domain/recoveries.ts";
import { readBlock } from "../../../../relay/inclusion/blockReader.ts";
import { SubscriptionHub } from "../../../../relay/ingress/subscriptions.ts";
import { Background } from "../../../../shared/background.ts";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import type { LogCriteria } from "../../../../shared/jsonrpc/logs.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { EventLoopQueue } from "../../../../shared/shares/scheduler.ts";
import { Listener } from "../../../support/feeds.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import type { NodeFault } from "../../../support/nodes.ts";
import { startProxiedChain } from "./nodeFixture.ts";

type Header = Readonly<Record<string, unknown>>;

const BLOCKS = 80;
const { chain, proxy, reader, mine } = await startProxiedChain();
await mine(BLOCKS);
const calls = Array.from({ length: BLOCKS }, (_, i) => ({
	method: "eth_getBlockByNumber",
	params: [`0x${(i + 1).toString(16)}`, true],
}));
const read = (await chain.batch(calls)).map((outcome) => {
	assert.ok("result" in outcome);
	return readBlock(outcome.result, new Recoveries());
});
const blocks = await Promise.all(read);

function fixture() {
	const failed: string[] = [];
	const background = new Background({ onFault: (task) => failed.push(task) }, { log: silentLogger });
	const turns = new EventLoopQueue({ clock: new ManualClock() });
	const hub = new SubscriptionHub({ log: silentLogger, turns });
	const feed = createHeadFeed({ node: reader(), publisher: hub, background, log: silentLogger });
	const listener = new Listener();
	const listen = () => hub.subscribe(listener, NEW_HEADS);
	const heads = () => listener.received.map(({ params }) => params.result as Header);
	return { feed, hub, background, listen, heads, failed };
}

const numbers = (heads: readonly Header[]) => heads.map(({ number }) => Number(number));

const FAULTS: Readonly<Record<string, NodeFault>> = {
	"is gone": { kind: "destroy" },
	refuses: { kind: "error", code: -32000, message: "secret-of-the-node" },
	"answers another block": { kind: "result", result: { hash: `0x${"99".repeat(32)}`, number: "0x1" } },
	"never answers": { kind: "hang" },
};
for (const [name, fault] of Object.entries(FAULTS)) {
	test(`new heads have the fields that the relay knows if the node ${name}`, async () => {
		const { feed, background, listen, heads, failed } = fixture();
		listen();
		proxy.setFault(fault);
		feed.onHeads(blocks.slice(7, 9));
		await background.join();
		proxy.setFault(null);
		feed.onHeads(blocks.slice(9, 10));
		await background.join();
		const [short, , full] = heads();
		const known = (await chain.rpc("eth_getBlockByNumber", ["0x8", false])) as Header;
		const fields = [
			...["number", "hash", "parentHash", "miner", "gasLimit", "gasUsed", "timestamp", "baseFeePerGas"],
			...["blobGasUsed", "excessBlobGas"],
		];
		assert.deepEqual(short, Object.fromEntries(fields.map((field) => [field, known[field]])));
		assert.deepEqual(numbers(heads()), [8, 9, 10]);
		assert.equal(typeof full?.stateRoot, "string", "the next one is whole again");
		assert.deepEqual(failed, []);
		assert.ok(!JSON.stringify(heads()).includes("secret-of-the-node"));
	});
}

describe("filters that clients poll", () => {
	const MINUTE = 60_000;
	const ALL: LogCriteria = { filter: { address: [], topics: [] }, from: null, to: null, query: {} };

	/** Each block has one log, whose address is the block's hash. */
	function fixture() {
		const clock = new ManualClock();
		const node = { isDown: false, asked: 0, data: "0x" };
		const logs = new BlockLogs({
			node: {
				async call({ params }) {
					node.asked += 1;
					if (node.isDown) throw new UpstreamError("timeout");
					const [{ blockHash }] = params as [{ blockHash: string }];
					return { ok: true, result: [{ address: blockHash, topics: [], data: node.data }] };
				},
			},
		});
		const filters = new PolledFilters({ logs, clock, turns: new EventLoopQueue({ clock }) });
		const update = (applied: readonly [number, string][], reverted: readonly [number, string][] = []) => {
			const blocks = (of: readonly [number, string][]) =>
				of.map(([number, hash]) => ({ number, hash }) as Block);
			filters.onUpdate({
				applied: blocks(applied),
				reverted: blocks(reverted),
				gap: false,
			} as unknown as ChainUpdate);
		};
		const changes = async (id: string): Promise<unknown> => {
			const life = new ClientLife(0);
			const { pieces } = await filters.changes(id, { client: "a", life });
			life.end();
			return JSON.parse(String(Buffer.concat(pieces)));
		};
		return { clock, node, filters, update, changes };
	}

	test("a filter that is asked lives on, one that is not ends after five minutes", async () => {
		const { clock, filters, changes } = fixture();
		const [used, unused] = [filters.open("a", null), filters.open("a", null)];
		for (let minute = 0; minute < 6; minute += 1) {
			await clock.advance(MINUTE);
			assert.deepEqual(await changes(used), []);
		}
		await assert.rejects(changes(unused), /filter not found/);
		assert.equal(filters.close(unused), false);
	});

	test("a client has 64 at most, whatever others have", () => {
		const { filters } = fixture();
		const ids = Array.from({ length: 64 }, () => filters.open("a", null));
		assert.throws(() => filters.open("a", null), /64 filters per client/);
		filters.open("b", null);
		filters.close(ids[0] ?? "");
		filters.open("a", null);
	});

	test("an answer has 8 MiB at most, and so have all polls of a batch; what does not fit comes with the next poll", async () => {
		const MIB = 1024 * 1024;
		const { filters, update, node } = fixture();
		node.data = `0x${"00".repeat(MIB)}`;
		const [one, other] = [filters.open("a", ALL), filters.open("a", ALL)];
		const hashes = Array.from({ length: 9 }, (_, i) => `0x${i}`);
		update(hashes.map((hash, i) => [i + 1, hash]));
		const told: Record<string, string[]> = { [one]: [], [other]: [] };
		const refused: string[] = [];
		for (let batch = 0; batch < 7; batch++) {
			const life = new ClientLife(0);
			let bytes = 0;
			for (const id of [one, other]) {
				try {
					const { pieces } = await filters.changes(id, { client: "a", life });
					const text = String(Buffer.concat(pieces));
					bytes += text.length;
					told[id]?.push(...(JSON.parse(text) as { address: string }[]).map(({ address }) => address));
				} catch (thrown) {
					refused.push((thrown as Error).message);
				}
			}
			assert.ok(bytes <= 8 * MIB, `${bytes} bytes`);
			life.end();
		}
		assert.deepEqual(told, { [one]: hashes, [other]: hashes });
		assert.deepEqual(
			[...new Set(refused)],
			["limit exceeded: too many results for one batch, poll fewer filters at once"],
		);
	});

	test("answers that are not sent yet are bounded for a client, and others are not refused", async () => {
		const { filters, update, node } = fixture();
		node.data = `0x${"00".repeat(3 * 1024 * 1024)}`;
		const ids = Array.from({ length: 4 }, () => filters.open("a", ALL));
		update([[1, "0x1"]]);
		const lives = ids.map(() => new ClientLife(0));
		const poll = (i: number, client: string) =>
			filters.changes(ids[i] ?? "", { client, life: lives[i] ?? new ClientLife(0) });
		for (let i = 0; i < 2; i++) await poll(i, "a");
		await assert.rejects(poll(2, "a"), /too many results/);
		await poll(3, "b");
		lives[0]?.end();
		await poll(2, "a");
	});

	test("logs of blocks that left the chain come again as removed, those outside of the range never", async () => {
		const { filters, update, changes } = fixture();
		const all = filters.open("a", ALL);
		const ranged = filters.open("a", { ...ALL, from: 2n, to: 2n });
		update([
			[1, "0x1"],
			[2, "0x2"],
		]);
		update([[2, "0x2b"]], [[2, "0x2"]]);
		const told = async (id: string) =>
			((await changes(id)) as { address: string; removed: boolean }[]).map(({ address, removed }) => [
				address,
				removed,
			]);
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
});
