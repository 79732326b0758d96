// Account states at the tracked head: how often the node is asked, fairness between clients, and
// nodes that fail or lag.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Wallet } from "ethers";
import { NodeAccounts, type NodeAccountsOptions } from "../../../../relay/chain/accounts.ts";
import type { AccountState } from "../../../../relay/domain/chain.ts";
import { Background } from "../../../../shared/background.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { toQuantity } from "../../../../shared/ethereum/hex.ts";
import { type RpcAnswer, type RpcCall, UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";
import { fails, startProxiedChain } from "./nodeFixture.ts";

const READS = ["eth_getBalance", "eth_getCode", "eth_getTransactionCount"];

const { chain, proxy, reader, mine } = await startProxiedChain();
const background = new Background({ onFault: (task) => assert.fail(task) }, { log: silentLogger });
afterEach(() => background.join());

const TIMEOUT_MS = 1_000;
const newAccounts = (timeoutMs = TIMEOUT_MS) =>
	new NodeAccounts({ timeoutMs }, { node: reader(), background, clock: systemClock, log: silentLogger });
const HASH = `0x${"ab".repeat(32)}`;

async function headAt(number: number): Promise<{ number: number; hash: string }> {
	const { hash } = (await chain.rpc("eth_getBlockByNumber", [toQuantity(number), false])) as { hash: string };
	return { number, hash };
}

const account = (i: number) => chain.accounts[i]?.address.toLowerCase() ?? "";

test("delegated accounts are distinguished from contracts", async () => {
	const codes: readonly [string, AccountState["code"]][] = [
		["0x", "none"],
		[`0xef0100${"ab".repeat(20)}`, "delegated"],
		[`0xEF0100${"AB".repeat(20)}`, "delegated"],
		[`0xef0100${"ab".repeat(19)}`, "contract"],
		[`0xef0100${"ab".repeat(21)}`, "contract"],
		["0xef0101", "contract"],
		["0x00", "contract"],
		["0x6001600055", "contract"],
	];
	for (const [code, kind] of codes) {
		// Not on the chain: anvil dies of a delegation of the wrong length.
		const answers = ["0x0", "0x0", code].map((result) => ({ ok: true as const, result }));
		const node = { batch: async () => answers };
		const accounts = new NodeAccounts(
			{ timeoutMs: TIMEOUT_MS },
			{ node, background, clock: systemClock, log: silentLogger },
		);
		accounts.setHead({ number: 1, hash: HASH });
		assert.equal((await accounts.get(account(0), "a")).code, kind, code);
	}
});

test("an account is asked for once a head, however many want it and however its address is written", async () => {
	const accounts = newAccounts();
	const head = await mine();
	accounts.setHead(await headAt(head));
	const mixed = Wallet.createRandom().address;
	const release = proxy.hold();
	const first = Array.from({ length: 200 }, (_, i) => accounts.get(i % 2 ? mixed : mixed.toLowerCase(), "a"));
	await until("the first request", () => proxy.requests > 0);
	const late = Array.from({ length: 200 }, () => accounts.get(mixed, "a"));
	release();
	const states = await Promise.all([...first, ...late]);
	assert.equal(new Set(states).size, 1);
	await accounts.get(mixed, "a");
	assert.deepEqual(
		proxy
			.calls()
			.map(({ method }) => method)
			.sort(),
		READS,
	);
	const { hash } = await headAt(head);
	assert.ok(proxy.calls().every(({ params }) => isDeepStrictEqual(params[1], { blockHash: hash })));
	accounts.setHead(await headAt(head));
	await accounts.get(mixed, "a");
	assert.equal(proxy.calls().length, 6);
});

test("a read that the head overtakes is made again, and one that fails is not kept", async () => {
	const head = await mine(2);
	const accounts = newAccounts(300);
	accounts.setHead(await headAt(head - 1));
	const release = proxy.hold();
	const asked = accounts.get(account(5), "a");
	await until("the request", () => proxy.requests === 1);
	accounts.setHead(await headAt(head));
	release();
	assert.equal((await asked).block, head);
	proxy.setFault({ kind: "error", code: -32000, message: "header not found" });
	await assert.rejects(accounts.get(account(8), "a"), fails("notJsonRpc"));
	proxy.setFault(null);
	assert.equal((await accounts.get(account(8), "a")).nonce, 0n);
});

describe("a node behind a load balancer", () => {
	/** Refuses to read accounts at a block's hash. */
	const refuse = (_: string, [, block]: readonly unknown[]) =>
		typeof block === "object" ? { code: -32602, message: "invalid argument 1" } : null;

	test("another block of the head's number: no account is read until the node has the head itself", async () => {
		const accounts = newAccounts(2_000);
		const head = await mine();
		accounts.setHead({ number: head, hash: HASH });
		const early = accounts.get(account(6), "a");
		await until("it has asked twice", () => proxy.requests > 1);
		accounts.setHead(await headAt(head));
		assert.equal((await early).block, head);
		assert.ok(proxy.calls().every(({ params }) => typeof params[1] === "object"));
	});

	test("no reads by hash: it is read by number in two requests, from the first time on", async () => {
		const accounts = newAccounts();
		const head = await mine();
		accounts.setHead(await headAt(head));
		proxy.setRule({ refuse });
		for (const [i, [byHash, byNumber]] of [
			[1, 2],
			[0, 2],
		].entries()) {
			proxy.reset();
			assert.equal((await accounts.get(account(i), "a")).balance > 0n, true);
			const asked = proxy.calls("eth_getBalance").map(({ params }) => typeof params[1]);
			assert.deepEqual(asked, [...Array(byHash).fill("object"), ...Array(byNumber).fill("string")]);
		}
	});

	test("no reads by hash, and one answer of another fork: both are asked for again", async () => {
		const accounts = newAccounts(2_000);
		const head = await mine();
		accounts.setHead(await headAt(head));
		let lies = 1;
		proxy.setRule({
			refuse,
			answer: async (method, [, block]) =>
				method === "eth_getTransactionCount" && typeof block === "string" && lies-- > 0 ? "0x63" : undefined,
		});
		assert.equal((await accounts.get(account(9), "a")).nonce, 0n);
		assert.equal(proxy.calls("eth_getTransactionCount").length, 5);
	});
});

describe("accounts of two clients", () => {
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

		constructor(options: Partial<NodeAccountsOptions> = {}) {
			const background = new Background({ onFault: (task) => assert.fail(task) }, { log: silentLogger });
			const node = { batch: (calls: readonly RpcCall[]) => this.#take(calls) };
			this.accounts = new NodeAccounts(
				{ timeoutMs: TIMEOUT_MS, ...options },
				{ node, background, clock: this.clock, log: silentLogger },
			);
			this.accounts.setHead({ number: 10, hash: HASH });
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

		/** The result, once all that was asked for is answered. */
		async answered<T>(asked: Promise<T>): Promise<T> {
			await this.answerAll();
			return asked;
		}

		/** The index of the request that asked for it. */
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
			return params[1] === "latest" ? block : "0xa";
		}
	}

	/**
	 * Waits until all requests of this event loop turn are sent and their answers are returned, which
	 * takes some turns.
	 */
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

	for (const [where, block, told] of [
		["ahead of the tracked head: the later state, which is not kept", 12, 12],
		["behind it: nothing fresh, the head's state counts", 9, 10],
	] as const) {
		test(`a fresh state of a node that is ${where}`, async () => {
			const fixture = new Fixture();
			fixture.block = block;
			const fresh = await fixture.answered(fixture.accounts.fresh(HONEST, "honest"));
			assert.deepEqual([fresh.block, fresh.balance], [told, BigInt(told)]);
			const later = await fixture.answered(fixture.accounts.get(HONEST, "honest"));
			assert.deepEqual([later.block, later.balance], [10, 10n]);
		});
	}
});
