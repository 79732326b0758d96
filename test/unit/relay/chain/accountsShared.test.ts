// Account states of two clients: whose are read next, who is refused, who has given up, and what is read afresh.

import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeAccounts, type NodeAccountsOptions } from "../../../../relay/chain/accounts.ts";
import { Background } from "../../../../shared/background.ts";
import type { RpcAnswer, RpcCall } from "../../../../shared/jsonrpc/client.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";

/** A node whose requests are answered when the test says so, and accounts at head 10 on it. */
class Fixture {
	readonly clock = new ManualClock();
	readonly accounts: NodeAccounts;
	/** Addresses of each request, in the order in which they were sent. */
	readonly requests: (readonly string[])[] = [];
	calls = 0;
	/** The node's own head. */
	block = 10;
	readonly #answers: (() => void)[] = [];

	constructor(options: NodeAccountsOptions = {}) {
		const background = new Background({ onFault: (task) => assert.fail(task) }, { log: silentLogger });
		const node = { batch: (calls: readonly RpcCall[]) => this.#take(calls) };
		this.accounts = new NodeAccounts(options, { node, background, clock: this.clock });
		this.accounts.setHead(10);
	}

	/** Answers the oldest request that waits. */
	async answer(): Promise<void> {
		this.#answers.shift()?.();
		await settled();
	}

	async answerAll(): Promise<void> {
		await settled();
		while (this.#answers.length > 0) await this.answer();
	}

	/** What it comes to, once all that was asked for is answered. */
	async told<T>(asked: Promise<T>): Promise<T> {
		await this.answerAll();
		return asked;
	}

	/** Which request asked for it, counted from 0. */
	requestOf(address: string): number {
		return this.requests.findIndex((addresses) => addresses.includes(address));
	}

	#take(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
		this.calls += calls.length;
		const addresses = calls.filter(({ method }) => method === "eth_getCode").map(({ params }) => params[0]);
		this.requests.push(addresses as string[]);
		return new Promise((resolve) =>
			this.#answers.push(() => {
				resolve(calls.map((call) => ({ ok: true, result: this.#result(call) })));
			}),
		);
	}

	/** Its balance is the block that it is of. */
	#result({ method, params }: RpcCall): string {
		const block = `0x${this.block.toString(16)}`;
		if (method === "eth_blockNumber") return block;
		if (method === "eth_getCode") return "0x";
		if (method === "eth_getTransactionCount") return "0x0";
		return params[1] === "latest" ? block : String(params[1]);
	}
}

/** All that was asked for in this turn of the event loop is sent, and what was answered is told, which takes some turns. */
async function settled(): Promise<void> {
	for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

function crowd(count: number): readonly string[] {
	return Array.from({ length: count }, (_, i) => `0x${i.toString(16).padStart(40, "0")}`);
}

function askAll(fixture: Fixture, addresses: readonly string[], client: string, urgent = false) {
	return addresses.map((address) =>
		fixture.accounts.get(address, client, urgent).then(
			() => "told",
			(thrown: unknown) => (thrown instanceof UpstreamError ? thrown.code : "fault"),
		),
	);
}

const HONEST = `0x${"ee".repeat(20)}`;

test("a client's 10,000 accounts delay another's by one request", async () => {
	const fixture = new Fixture();
	const many = askAll(fixture, crowd(10_000), "attacker");
	await settled();
	assert.equal(fixture.requests.length, 4);
	const honest = fixture.accounts.get(HONEST, "honest");
	await settled();
	assert.equal(fixture.requestOf(HONEST), -1);
	await fixture.answer();
	assert.equal(fixture.requestOf(HONEST), 4);
	await fixture.answerAll();
	assert.equal((await honest).address, HONEST);
	assert.ok((await Promise.all(many)).every((outcome) => outcome === "told"));
	assert.equal(fixture.requests.length, 101);
});

test("what is urgent goes first, another client's looks at a new head notwithstanding", async () => {
	const fixture = new Fixture();
	const looks = ["b", "c", "d"].flatMap((client, i) =>
		askAll(fixture, crowd(3_000).slice(1_000 * i, 1_000 * (i + 1)), client),
	);
	const urgent = askAll(fixture, [HONEST], "honest", true);
	const own = askAll(fixture, [`0x${"bb".repeat(20)}`], "b", true);
	await fixture.answer();
	assert.deepEqual(fixture.requests[4]?.slice(0, 2), [HONEST, `0x${"bb".repeat(20)}`]);
	await fixture.answerAll();
	assert.ok((await Promise.all([...looks, ...urgent, ...own])).every((outcome) => outcome === "told"));
});

test("where too many wait, whoever has the most of them is refused at once", async () => {
	const fixture = new Fixture({ maxWaiting: 500 });
	const many = askAll(fixture, crowd(901), "attacker");
	assert.equal(await many[900], "timeout");
	const honest = askAll(fixture, [HONEST], "honest");
	assert.equal(await many[899], "timeout");
	await fixture.answerAll();
	assert.deepEqual(await Promise.all(honest), ["told"]);
	assert.equal((await Promise.all(many)).filter((outcome) => outcome === "timeout").length, 2);
	// What was refused may be asked for again.
	const again = askAll(fixture, crowd(901).slice(900), "attacker");
	await fixture.answerAll();
	assert.deepEqual(await Promise.all(again), ["told"]);
});

test("what was given up leaves the queue: the node is not asked for it", async () => {
	const fixture = new Fixture({ timeoutMs: 1_000 });
	const many = askAll(fixture, crowd(1_000), "attacker");
	await settled();
	await fixture.clock.advance(600);
	const late = askAll(fixture, crowd(1_001).slice(999), "attacker");
	await fixture.clock.advance(500);
	assert.ok((await Promise.all(many)).every((outcome) => outcome === "timeout"));
	await fixture.answerAll();
	assert.deepEqual(await Promise.all(late), ["told", "told"]);
	// The last of them has somebody who still waits.
	assert.deepEqual(fixture.requests.slice(4), [crowd(1_001).slice(999)]);
});

test("a fresh state is asked for at the latest block, whatever is known, and kept where it is the head's", async () => {
	const fixture = new Fixture();
	const known = await fixture.told(fixture.accounts.get(HONEST, "honest"));
	const fresh = await fixture.told(fixture.accounts.fresh(HONEST, "honest"));
	assert.deepEqual(fresh, known);
	assert.equal(await fixture.accounts.get(HONEST, "another"), fresh);
	assert.equal(fixture.requests.length, 2);
});

for (const [where, block, told] of [
	["ahead of the tracked head: the later state, which is not kept", 12, 12],
	["behind it: nothing fresh, the head's state counts", 9, 10],
] as const) {
	test(`a fresh state of a node that is ${where}`, async () => {
		const fixture = new Fixture();
		fixture.block = block;
		const fresh = await fixture.told(fixture.accounts.fresh(HONEST, "honest"));
		assert.deepEqual([fresh.block, fresh.balance], [told, BigInt(told)]);
		const later = await fixture.told(fixture.accounts.get(HONEST, "honest"));
		assert.deepEqual([later.block, later.balance], [10, 10n]);
	});
}

test("states between two blocks are of neither: they are asked for again", async () => {
	const fixture = new Fixture();
	const numbers = ["0xa", "0xb"];
	const node = {
		batch: async (calls: readonly RpcCall[]): Promise<RpcAnswer[]> =>
			calls.map(({ method }) => ({
				ok: true,
				result: method === "eth_blockNumber" ? (numbers.shift() ?? "0xb") : "0x0",
			})),
	};
	const background = new Background({}, { log: silentLogger });
	const accounts = new NodeAccounts({}, { node, background, clock: fixture.clock });
	accounts.setHead(10);
	const asked = accounts.fresh(HONEST, "honest");
	await settled();
	await fixture.clock.advance(40);
	assert.equal((await asked).block, 11);
});
