// A node, or the balancer before it, that refuses to simulate in one moment and simulates in the
// next: no bid, bundle or transaction misses its block for it.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { REVERTS } from "../../support/contracts.ts";
import { sized } from "../../support/length.ts";
import { GWEI } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

/** The node's answer to a simulation that it refuses. */
interface Refusal {
	readonly code: number;
	readonly message: string;
	readonly status?: number;
}

const HICCUP: Refusal = { code: -32000, message: "upstream hiccup" };
const REFUSALS: Readonly<Record<string, Refusal>> = {
	"words that nobody knows": HICCUP,
	"HTTP 402": { ...HICCUP, status: 402 },
	"invalid params": { code: -32602, message: "invalid argument 0" },
	"no such method": { code: -32601, message: "the method does not exist/is not available" },
	"HTTP 405": { ...HICCUP, status: 405 },
};

let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({ proxied: true });
});
after(() => fixture.system.stop());
afterEach(() => fixture.system.node?.setRule(null));

/**
 * The node refuses this many requests with each method by which it simulates; returns how many it
 * is still to refuse. `from`: only those that simulate this account's transactions, so that what is
 * simulated meanwhile for others, and what the relay asks to know what the node can do, does not
 * use them up.
 */
function refuses(refusal: Refusal, times: number, from = ""): () => number {
	const left = new Map([
		["eth_simulateV1", times],
		["debug_traceCall", times],
	]);
	fixture.system.node?.setRule({
		refuse(method, params) {
			if (!JSON.stringify(params).toLowerCase().includes(from)) return null;
			const count = left.get(method) ?? 0;
			if (count > 0) left.set(method, count - 1);
			return count > 0 ? refusal : null;
		},
	});
	return () => [...left.values()].reduce((sum, count) => sum + count, 0);
}

for (const [name, refusal] of Object.entries(REFUSALS).slice(0, sized(2, 5))) {
	describe(`a node that refuses once, by ${name}`, () => {
		it("keeps no bid out of the block that it comes into play for", async () => {
			const target = await fixture.target();
			const { backrun } = await fixture.offer(target, 5n * GWEI, { block: (await fixture.head()) + 2 });
			const left = refuses(refusal, 1, target.from);
			const head = await fixture.passBlock();
			await fixture.out(target, backrun);
			assert.deepEqual([left(), await fixture.head()], [0, head]);
			assert.deepEqual((await fixture.blockFrom(target)).slice(0, 2), [target.hash, backrun.hash]);
		});

		it("has no bid refused", async () => {
			const target = await fixture.target();
			const left = refuses(refusal, 1, target.from);
			const { backrun } = await fixture.offer(target, 5n * GWEI);
			assert.equal(left(), 0);
			await fixture.out(target, backrun);
			await fixture.system.nextBlock();
		});

		it("holds no transaction on /noreverts for a block", async () => {
			const head = await fixture.head();
			const tx = (await fixture.actor()).sign();
			const left = refuses(refusal, 1, tx.from);
			await fixture.submit("/noreverts", tx);
			await fixture.waitUntilSent(tx);
			assert.deepEqual([left(), await fixture.head()], [0, head]);
			await fixture.system.nextBlock();
		});
	});
}

describe("a node that refuses some times in a row", () => {
	it("keeps neither bid nor transaction out of the next block", async () => {
		const target = await fixture.target();
		const { backrun } = await fixture.offer(target, 5n * GWEI, { block: (await fixture.head()) + 2 });
		const tx = (await fixture.actor()).sign();
		refuses(HICCUP, 6);
		const head = await fixture.passBlock();
		await fixture.submit("/noreverts", tx);
		await fixture.waitUntilSent(tx);
		await fixture.out(target, backrun);
		assert.equal(await fixture.head(), head);
		await fixture.system.nextBlock();
	});

	it("has what fails on /fast taken back, though it was sent unsimulated before", async () => {
		const tx = (await fixture.actor()).sign({ to: await fixture.placeCode(REVERTS) });
		refuses(HICCUP, 1, tx.from);
		await fixture.submit("/fast", tx);
		await fixture.event(tx, "notSimulated");
		await fixture.reaches(tx, "SIMULATION_FAILED");
		await until("no builder has it", () => fixture.liveOrders(fixture.system.builder, tx) === 0);
		const block = await fixture.system.nextBlock();
		assert.deepEqual([await fixture.receipt(tx), await fixture.head()], [null, block]);
	});
});

describe("a node that runs one of a bid's simulations in the state of a later block", () => {
	it("has no bid refused as paying nothing", async () => {
		const target = await fixture.target();
		const payer = (await fixture.actor()).sign({ maxPriorityFeePerGas: 10n * GWEI });
		await fixture.publish(payer);
		// Only that block pays the coinbase, so that the balance without the backrun is the higher one.
		const isWithoutBackrun = (method: string, params: readonly unknown[]) => {
			const [{ blockStateCalls = [] } = {}] = params as {
				blockStateCalls?: { calls: { from: string }[] }[];
			}[];
			const [, ...backruns] = blockStateCalls[0]?.calls ?? [];
			const isOfTarget = blockStateCalls[0]?.calls[0]?.from === target.from.toLowerCase();
			return method === "eth_simulateV1" && isOfTarget && backruns.length === 0;
		};
		let block = 0;
		fixture.system.node?.setRule({
			async answer(method, params) {
				if (block !== 0 || !isWithoutBackrun(method, params)) return undefined;
				// The relay sees the block before the answer: a bid that is placed before would be for that
				// block.
				block = await fixture.mineUnseen();
				await fixture.seesHead(block);
				return undefined;
			},
			forward(call) {
				const { method, params = [] } = call;
				if (Number(params[1]) >= block || !isWithoutBackrun(method, params)) return call;
				return { ...call, params: [params[0], "latest"] };
			},
		});
		const { backrun } = await fixture.offer(target, 5n * GWEI);
		assert.ok(block > 0, "the block came during the simulation");
		await fixture.out(target, backrun);
		await fixture.system.nextBlock();
	});
});
