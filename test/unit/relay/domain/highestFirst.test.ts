// The order behind a head: what a chain of nonces pays, whose turn it is, and that the block loop
// keeps to it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { chainWorth, HighestFirst } from "../../../../relay/domain/highestFirst.ts";
import type { PoolEntry } from "../../../../relay/transactions/pool.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import { scenario } from "../stagesFixture.ts";

const GWEI = 1_000_000_000;
const NEXT = { baseFee: BigInt(10 * GWEI), blobBaseFee: 1n };

const entry = ({ gas = 21_000, ...tx }: TxOptions & { gas?: number }): PoolEntry => ({
	transaction: privateTransaction({ maxFeePerGas: 100 * GWEI, maxPriorityFeePerGas: GWEI, ...tx }),
	gas,
	...{ durable: true, given: null, isNonExecutable: false },
});
const tip = (gwei: number) => ({ maxPriorityFeePerGas: gwei * GWEI });

/** Worth in gwei of a unit of gas, over the gas of a transfer. */
const CHAINS: readonly (readonly [string, readonly Parameters<typeof entry>[0][], number])[] = [
	["nothing", [], 0],
	["one", [tip(3)], 3],
	["one that needs twice the gas", [{ ...tip(3), gas: 42_000 }], 6],
	["what is left of the fee cap above the base fee", [{ ...tip(3), maxFeePerGas: 11 * GWEI }], 1],
	["one that can't be in the block", [{ ...tip(3), maxFeePerGas: 9 * GWEI }], 0],
	["a high one behind a low one: both together", [tip(1), tip(9)], 5],
	["a low one behind a high one: the high one alone", [tip(9), tip(1)], 9],
	["the best of all beginnings", [tip(2), tip(8), tip(1), tip(1)], 5],
	["nothing behind one that can't go", [tip(2), { maxFeePerGas: 9 * GWEI }, tip(50)], 2],
	["many low ones are no high one", Array.from({ length: 64 }, () => tip(1)), 1],
];

test("a chain is worth what its first transactions pay on average, as many as make it most", () => {
	for (const [name, chain, gwei] of CHAINS)
		assert.equal(chainWorth(chain.map(entry), NEXT), gwei * 21_000 * GWEI, name);
});

/** Senders as `client worth`, in the order in which they are added and served. */
const TURNS: readonly (readonly [string, readonly string[], readonly string[]])[] = [
	["the highest of one client first", ["a 1", "a 3", "a 2"], ["a 3", "a 2", "a 1"]],
	["the highest of many clients first", ["a 1", "b 3", "c 2"], ["b 3", "c 2", "a 1"]],
	[
		"a flood of high ones of one client shuts nobody out",
		["a 9", "a 8", "a 7", "a 6", "b 1", "c 2", "c 1"],
		["a 9", "c 2", "b 1", "a 8", "c 1", "a 7", "a 6"],
	],
];

test("clients are served in turn, each with its highest, and in each round the highest first", () => {
	for (const [name, added, expected] of TURNS) {
		const order = new HighestFirst<{ client: string; worth: number }>();
		for (const one of added) order.add({ client: one.slice(0, 1), worth: Number(one.slice(2)) });
		const served = [...order.inOrder()].map(({ client, worth }) => `${client} ${worth}`);
		assert.deepEqual(served, expected, name);
	}
});

for (const path of ["fast", "noreverts", "nochecks"] as const) {
	scenario(
		`behind a head builders get what pays most first, on /${path}, whatever came first`,
		async (fixture) => {
			// Each of a sender of its own, whose nonce tells them apart; two clients, of whom one floods.
			const tips = [2, 9, 5, 7, 1, 8];
			const all = tips.map((gwei, i) => {
				const by = testAccount(100 + i);
				fixture.node.nonces.set(by.address, BigInt(gwei));
				const submitterAddress = gwei === 1 ? "10.0.0.2" : "10.0.0.1";
				const fees = { maxFeePerGas: 100 * GWEI, ...tip(gwei) };
				return privateTransaction({ by, nonce: gwei, ...fees, path, submitterAddress });
			});
			await fixture.take(...all);
			fixture.builders.take();
			await fixture.block();
			const nonces = fixture.builders.take().map((line) => Number(line.split(" ")[1]));
			assert.deepEqual(nonces, [9, 1, 8, 7, 5, 2]);
		},
	);
}

scenario(
	"what pays less waits until a builder has taken what pays more, and a later head waits for nothing",
	async (fixture) => {
		const count = 150;
		const all = Array.from({ length: count }, (_, i) => {
			const by = testAccount(100 + i);
			fixture.node.nonces.set(by.address, BigInt(i + 1));
			const fees = { maxFeePerGas: 1_000 * GWEI, ...tip(i + 1) };
			return privateTransaction({ by, nonce: i + 1, ...fees });
		});
		await fixture.take(...all);
		const sent: number[] = [];
		const isSent = (least: number) => {
			for (const line of fixture.builders.take()) sent.push(Number(line.split(" ")[1]));
			return sent.length >= least;
		};
		fixture.builders.take();
		fixture.builders.leastWaiting = 1_000;
		const first = fixture.block();
		await until("the first ones", () => isSent(1));
		const sentFirst = sent.length;
		assert.ok(sentFirst < count);
		fixture.builders.leastWaiting = 0;
		await fixture.clock.advance(10);
		await first;
		assert.ok(isSent(count));
		const expected = Array.from({ length: count }, (_, i) => count - i);
		assert.deepEqual(sent, expected);
		// Nobody takes anything: the next head comes all the same, and with it all that the one before
		// has left.
		sent.length = 0;
		fixture.builders.leastWaiting = 1_000;
		const second = fixture.block();
		await until("the first ones", () => isSent(1));
		const third = fixture.block();
		await until("the rest, and the first ones again", async () => {
			await fixture.clock.advance(1);
			return isSent(count + 1);
		});
		assert.deepEqual(sent.slice(0, count), expected);
		await fixture.clock.advance(5_000);
		await Promise.all([second, third]);
		assert.ok(isSent(2 * count));
	},
);

scenario(
	"a head is processed in turns of the event loop, however many transactions a sender has",
	async (fixture) => {
		const [senders, each] = [6, 60];
		for (let i = 0; i < senders; i += 1) {
			const by = testAccount(100 + i);
			const fees = { maxFeePerGas: 1_000 * GWEI, path: "nochecks" } as const;
			await fixture.take(
				...Array.from({ length: each }, (_, nonce) => privateTransaction({ by, nonce, ...fees })),
			);
		}
		fixture.builders.take();
		let isOver = false;
		const block = fixture.block().then(() => {
			isOver = true;
		});
		const turns: number[] = [];
		while (!isOver) {
			await nextTurn();
			turns.push(fixture.builders.take().length);
		}
		await block;
		assert.equal(
			turns.reduce((sum, count) => sum + count, 0),
			senders * each,
		);
		assert.ok(Math.max(...turns) <= 2 * 64, `${turns}`);
	},
);
