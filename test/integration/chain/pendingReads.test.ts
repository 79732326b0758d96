// Calls with the tag pending, and estimates without one, run behind the client's own private
// transactions: a wallet can estimate a swap while its approval is pending. The network address
// that submitted it may know of it. Everybody else sees the chain alone, and costs the node the
// same, whether or not there is a private transaction.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { JsonRpcProvider, Wallet } from "ethers";
import { createPublicClient, http } from "viem";
import { foundry } from "viem/chains";
import { BiddingFixture, type CallOptions } from "../../support/biddingFixture.ts";
import { REVERTS } from "../../support/contracts.ts";
import { FeedClient } from "../../support/feeds.ts";
import { sized } from "../../support/length.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { GWEI, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { SwapFixture, type Swapper } from "../../support/swapFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const HERE = { from: "198.51.100.1" };
const STRANGER = { from: "198.51.100.2" };
const PAGE = { ...HERE, origin: "https://app.example" };
const REVERTED = 3;

/** The reads that run behind pending transactions, by the parameters behind the call. */
const ALL_READS: readonly (readonly [method: string, more: readonly unknown[]])[] = [
	["eth_estimateGas", []],
	["eth_call", ["pending"]],
	["eth_estimateGas", ["pending"]],
	["eth_estimateGas", [null]],
	["eth_createAccessList", ["pending"]],
];
/**
 * Every one of them is read behind a pending transaction, and without one; these in all other
 * cases.
 */
const READS = ALL_READS.slice(0, sized(2, ALL_READS.length));

let system: TestSystem;
let fixture: RelayFixture;
let clients: BiddingFixture;
let node: NodeProxy;
let market: SwapFixture;
before(async () => {
	system = await startSystem({ proxied: true, env: { TRUST_PROXY: "1" } });
	assert.ok(system.node !== null);
	node = system.node;
	fixture = new RelayFixture(system);
	clients = new BiddingFixture(system);
	market = await SwapFixture.open(fixture);
});
after(() => system.stop());
beforeEach(() => node.setFault(null));

async function submit(tx: Signed, path = "/fast", who: CallOptions = HERE): Promise<void> {
	assert.equal(await clients.call("eth_sendRawTransaction", [tx.raw], { ...who, path }), tx.hash);
}

/** A user whose approval is pending. */
async function approved(path = "/fast"): Promise<Swapper & { readonly approval: Signed }> {
	const user = await market.swapper();
	const approval = user.approve();
	await submit(approval, path);
	await fixture.reaches(approval, "BROADCAST");
	return { ...user, approval };
}

/** How an answer ended: `runs`, or why not. */
function endOf({ result, error }: WireAnswer): string {
	if (error !== undefined) return error.code === REVERTED ? "reverts" : `${error.code} ${error.message}`;
	const failed = (result as { error?: string } | null)?.error;
	return failed === undefined ? "runs" : /revert/.test(failed) ? "reverts" : failed;
}

async function ends(
	user: Swapper,
	who: CallOptions,
	reads: typeof ALL_READS = READS,
): Promise<readonly string[]> {
	const all = [];
	for (const [method, more] of reads) all.push(endOf(await clients.ask(method, [user.swap, ...more], who)));
	return all;
}

const RUNS = READS.map(() => "runs");
const CHAIN_ALONE = READS.map(() => "reverts");

describe("the second step of two", () => {
	it("runs behind the first one for the network address that submitted it, signed or not", async () => {
		for (const path of ["/fast", "/noreverts", "/nochecks"]) {
			const user = await approved(path);
			const key = user.account.keyHex;
			const all = await ends(user, HERE, ALL_READS);
			assert.deepEqual(new Set(all), new Set(["runs"]), path);
			assert.deepEqual(await ends(user, { ...HERE, key }), RUNS, path);
		}
	});

	it("sees the chain alone for everybody else: a stranger, also with the sender's signature, a web page in its browser", async () => {
		const user = await approved();
		assert.deepEqual(new Set(await ends(user, STRANGER, ALL_READS)), new Set(["reverts"]));
		const key = user.account.keyHex;
		for (const who of [STRANGER, PAGE]) {
			assert.deepEqual(await ends(user, who), CHAIN_ALONE);
			assert.deepEqual(
				await ends(user, { ...who, key }),
				CHAIN_ALONE,
				"a signature can be repeated by anybody",
			);
		}
		const extension = { ...HERE, origin: "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn" };
		assert.deepEqual(await ends(user, extension), RUNS);
	});

	it("gets a long answer as the node gives it", async () => {
		const user = await approved();
		const large = { from: user.account.address, to: `0x${"00".repeat(19)}aa` };
		// Code that returns 250,000 bytes.
		await system.chain.rpc("anvil_setCode", [large.to, "0x6203d0905ff3"]);
		const answer = await clients.call("eth_call", [large, "pending"], HERE);
		assert.equal(answer, await system.chain.rpc("eth_call", [large, "latest"]));
	});

	it("is estimated to the gas that it uses in its block, and its access list is what it touches", async () => {
		const user = await approved();
		const estimate = Number(await clients.call("eth_estimateGas", [user.swap], HERE));
		const { accessList, gasUsed } = (await clients.call(
			"eth_createAccessList",
			[user.swap, "pending"],
			HERE,
		)) as { accessList: { address: string; storageKeys: string[] }[]; gasUsed: string };
		const out = await clients.call("eth_call", [user.swap, "pending"], HERE);
		await fixture.waitUntilSent(user.approval);
		await system.nextBlock();
		await fixture.reaches(user.approval, "INCLUDED");
		const rpc = (method: string) => system.chain.rpc(method, [user.swap, "latest"]);
		assert.equal(out, await rpc("eth_call"));
		assert.equal(estimate, Number(await rpc("eth_estimateGas")));
		const real = (await rpc("eth_createAccessList")) as { accessList: typeof accessList; gasUsed: string };
		const sorted = (list: typeof accessList) =>
			list
				.map(({ address, storageKeys }) => [address.toLowerCase(), ...storageKeys.toSorted()].join(" "))
				.toSorted();
		assert.deepEqual(sorted(accessList), sorted(real.accessList));
		assert.equal(Number(gasUsed), Number(real.gasUsed));
	});

	it("needs the tag: latest and numbers are the chain alone for its owner too", async () => {
		const user = await approved();
		const head = `0x${(await fixture.head()).toString(16)}`;
		for (const method of new Set(ALL_READS.map(([method]) => method))) {
			for (const block of ["latest", head]) {
				assert.equal(
					endOf(await clients.ask(method, [user.swap, block], HERE)),
					"reverts",
					`${method} ${block}`,
				);
			}
		}
		assert.equal(
			endOf(await clients.ask("eth_call", [user.swap], HERE)),
			"reverts",
			"eth_call's default is latest",
		);
	});
});

describe("what counts", () => {
	/**
	 * One of a user's transactions, in order of nonces from 1 on: its kind, its path, and its stage
	 * before the reads.
	 */
	type Step = readonly [kind: "approves" | "disapproves" | "reverts" | "pays", path: string, stage: string];
	const CASES: readonly (readonly [what: string, steps: readonly Step[], reads: "runs" | "reverts"])[] = [
		[
			"a chain of nonces",
			[
				["pays", "/fast", "BROADCAST"],
				["approves", "/fast", "BROADCAST"],
			],
			"runs",
		],
		[
			"the last of two that change the same",
			[
				["approves", "/fast", "BROADCAST"],
				["disapproves", "/noreverts", "BROADCAST"],
			],
			"reverts",
		],
		[
			"not what is held, nor what waits behind it",
			[
				["approves", "/fast", "BROADCAST"],
				["reverts", "/noreverts", "SIMULATION_FAILED"],
				["disapproves", "/fast", "QUEUED"],
			],
			"runs",
		],
		[
			"not what waits behind a held one",
			[
				["reverts", "/fast", "SIMULATION_FAILED"],
				["approves", "/fast", "QUEUED"],
			],
			"reverts",
		],
		[
			"what reverts on /nochecks, and what is behind it",
			[
				["reverts", "/nochecks", "BROADCAST"],
				["approves", "/nochecks", "BROADCAST"],
			],
			"runs",
		],
	];

	for (const [what, steps, expected] of CASES) {
		it(`${what}: ${expected}`, async () => {
			const user = await market.swapper();
			const reverter = await fixture.placeCode(REVERTS);
			for (const [i, [kind, path, stage]] of steps.entries()) {
				const nonce = 1 + i;
				const tx = {
					approves: () => user.approve(nonce),
					disapproves: () => user.approve(nonce, 0n),
					reverts: () => user.sign({ to: reverter, nonce }),
					pays: () => user.sign({ value: 1n, nonce }),
				}[kind]();
				await submit(tx, path);
				await fixture.reaches(tx, stage);
			}
			assert.deepEqual(
				await ends(user, HERE),
				READS.map(() => expected),
			);
		});
	}

	it("not what is behind a nonce gap, cancelled, or replaced", async () => {
		const gapped = await market.swapper();
		await submit(gapped.approve(2));
		assert.deepEqual(await ends(gapped, HERE), CHAIN_ALONE);
		await submit(gapped.sign({ value: 1n, nonce: 1 }));
		assert.deepEqual(await ends(gapped, HERE), RUNS, "the gap is closed");
		const user = await approved();
		await submit(user.sign({ nonce: 1, maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI }));
		assert.deepEqual(await ends(user, HERE), CHAIN_ALONE, "replaced");
		const other = await approved();
		assert.equal(await clients.call("eth_cancelTransaction", [other.approval.hash], HERE), true);
		assert.deepEqual(await ends(other, HERE), CHAIN_ALONE, "cancelled");
	});

	it("not what somebody else submitted, nor what is behind that", async () => {
		const user = await market.swapper();
		await submit(user.sign({ value: 1n, nonce: 1 }), "/fast", STRANGER);
		await submit(user.approve(2));
		assert.deepEqual(await ends(user, HERE), CHAIN_ALONE);
		assert.deepEqual(await ends(user, STRANGER), CHAIN_ALONE);
	});

	it("only of the call's sender, in any case of hex", async () => {
		const user = await approved();
		const from = `0x${user.address.slice(2).toUpperCase()}`;
		assert.equal(endOf(await clients.ask("eth_estimateGas", [{ ...user.swap, from }], HERE)), "runs");
		const { from: _, ...anonymous } = user.swap;
		for (const call of [
			anonymous,
			{ ...user.swap, from: (await fixture.actor()).address },
			"nonsense",
			null,
		]) {
			const [own, others] = [HERE, STRANGER].map((who) => clients.ask("eth_call", [call, "pending"], who));
			assert.deepEqual(await own, await others);
		}
	});
});

it("a proxy that is not believed proves nothing by its address, which all its clients share", async () => {
	const user = await market.swapper();
	const nobody = { from: "nobody" };
	await submit(user.approve(), "/fast", nobody);
	assert.deepEqual(await ends(user, nobody), CHAIN_ALONE);
	assert.deepEqual(await ends(user, {}), RUNS, "the same address without a proxy");
	assert.deepEqual(await ends(user, { ...nobody, key: user.account.keyHex }), CHAIN_ALONE);
});

describe("a stranger", () => {
	const seenBy = async (user: Swapper, who: CallOptions) => {
		node.reset();
		const answers = [];
		for (const [method, more] of ALL_READS)
			answers.push(await clients.ask(method, [user.swap, ...more], who));
		const methods = new Set(["debug_traceCall", ...ALL_READS.map(([method]) => method)]);
		return { answers, asked: node.calls().filter(({ method }) => methods.has(method)) };
	};

	it("gets the same answers, and has the node asked the same, whether or not there is a private transaction", async () => {
		for (const [stranger, signs] of [
			[STRANGER, false],
			[STRANGER, true],
			[PAGE, false],
		] as const) {
			const user = await market.swapper();
			const who = signs ? { ...stranger, key: user.account.keyHex } : stranger;
			const before = await seenBy(user, who);
			assert.equal(before.asked.length, ALL_READS.length);
			await submit(user.approve());
			assert.deepEqual(await seenBy(user, who), before);
			assert.notDeepEqual((await seenBy(user, HERE)).answers, before.answers);
			assert.deepEqual(await seenBy(user, who), before, "nothing is kept of the owner's reads");
		}
	});

	it("does not get the owner's answer to an equal read at the same time, nor the owner his", async () => {
		const user = await approved();
		const release = node.hold(["debug_traceCall", "eth_call"]);
		const asks = Array.from({ length: 8 }, (_, i) => [HERE, STRANGER][i % 2] as CallOptions);
		const answering = asks.map((who) => clients.ask("eth_call", [user.swap, "pending"], who));
		release();
		const answers = (await Promise.all(answering)).map(endOf);
		assert.deepEqual(
			answers,
			asks.map((who) => (who === HERE ? "runs" : "reverts")),
		);
	});
});

describe("the owner's call", () => {
	const overridden = async (user: Swapper, ...more: readonly unknown[]) =>
		endOf(await clients.ask("eth_call", [user.swap, "pending", ...more], HERE));

	it("keeps its own overrides, which come first", async () => {
		const user = await approved();
		const { weth } = market;
		assert.equal(await overridden(user, {}, {}), "runs");
		assert.equal(await overridden(user, null, null), "runs");
		assert.equal(await overridden(user, { [user.address]: { balance: "0x1" } }), "runs");
		const slot = `0x${"07".repeat(32)}`;
		const word = `0x${"0".repeat(63)}1`;
		assert.equal(await overridden(user, { [weth]: { stateDiff: { [slot]: word } } }), "runs", "beside ours");
		assert.equal(await overridden(user, { [weth]: { state: {} } }), "reverts", "no slot but its own");
		const code = "0x5f5ffd";
		assert.equal(await overridden(user, { [weth.toUpperCase().replace("X", "x")]: { code } }), "reverts");
		const [own, others] = [HERE, STRANGER].map((who) =>
			clients.ask("eth_call", [user.swap, "pending", "nonsense"], who),
		);
		assert.deepEqual(await own, await others, "malformed: the node says so");
	});

	it("runs in the next block, or in the one of its own block overrides", async () => {
		const user = await approved();
		// NUMBER PUSH0 MSTORE PUSH1 32 PUSH0 RETURN
		const to = await fixture.placeCode("0x435f5260205ff3");
		const call = { from: user.address, to };
		const at = async (...more: readonly unknown[]) =>
			Number(await clients.call("eth_call", [call, "pending", ...more], HERE));
		assert.equal(await at(), (await fixture.head()) + 1);
		assert.equal(await at({}, { number: "0x777" }), 0x777);
	});

	it("sees the chain alone where the node cannot trace, or does not answer in two seconds", async () => {
		const user = await approved();
		const methods = ["debug_traceCall"];
		node.setFault({ kind: "error", code: -32601, message: "the method does not exist" }, { methods });
		assert.deepEqual(await ends(user, HERE), CHAIN_ALONE);
		node.setFault({ kind: "hang" }, { methods });
		assert.equal(endOf(await clients.ask("eth_call", [user.swap, "pending"], HERE)), "reverts");
		node.setFault(null);
		assert.deepEqual(await ends(user, HERE), RUNS);
	});

	it("gets the node's own errors", async () => {
		const user = await approved();
		const tooDear = { ...user.swap, value: `0x${(10n ** 24n).toString(16)}` };
		const { error } = await clients.ask("eth_estimateGas", [tooDear], HERE);
		assert.match(error?.message ?? "", /insufficient/i);
	});

	it("works over a websocket", async () => {
		const user = await market.swapper();
		await submit(user.approve(), "/fast", {});
		const socket = await FeedClient.open(`ws://127.0.0.1:${system.relay.port}/ws`);
		const answer = (await socket.ask("eth_estimateGas", [user.swap])) as WireAnswer;
		socket.close();
		assert.equal(endOf(answer), "runs");
	});
});

it("ethers and viem estimate the second step as they do by default", async (t) => {
	const user = await market.swapper();
	const { swap, account } = user;
	// By default it takes the answer to an equal request of the last quarter of a second.
	const provider = new JsonRpcProvider(system.client.url, undefined, { cacheTimeout: -1 });
	t.after(() => provider.destroy());
	const wallet = new Wallet(account.keyHex, provider);
	const client = createPublicClient({ chain: foundry, transport: http(system.client.url) });
	const request = { to: swap.to as `0x${string}`, data: swap.data as `0x${string}` };
	const byViem = () => client.estimateGas({ ...request, account: account.address as `0x${string}` });
	await assert.rejects(wallet.estimateGas(request));
	await assert.rejects(byViem());
	await submit(user.approve(), "/fast", {});
	const gas = await wallet.estimateGas(request);
	assert.equal(await byViem(), gas);
	const { hash, nonce } = await wallet.sendTransaction(request);
	assert.equal(nonce, 2);
	await until("the builder has the swap", () => system.builder.liveOrders(hash).length > 0);
	await system.nextBlock();
	await until("the swap mined", async () => (await system.client.stage(hash)) === "INCLUDED");
});
