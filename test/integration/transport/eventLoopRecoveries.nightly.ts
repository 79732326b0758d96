// Recoveries of authorizations (EIP-7702) block the event loops of relay and boost for 20 ms at
// most, and nothing is recovered twice. A bundle full of them delays nobody in
// test/attacks/floods.test.ts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BOOST_SECRET, boostEnv } from "../../faults/boostHere.ts";
import { heldSoFar, metered, turnLimit } from "../../support/eventLoopTime.ts";
import { type RelayProcess, startRelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";

const ROUNDS = 5;
const GWEI = 10n ** 9n;
const SENDERS = 100;
const STRANGER = testAccount(5_000_000);

/** The account with number `i` of one test's round. */
const accountOf = (group: number, i: number) => testAccount(6_000_000 + 1_000 * group + i);

/**
 * A transaction with `count` different authorizations that all its bundle's new accounts might have
 * signed.
 */
function crowded(options: TxOptions, count: number, chainId = 0n): string {
	const authorizations = Array.from({ length: count }, (_, i) => ({
		by: STRANGER,
		address: `0x${i.toString(16).padStart(40, "0")}`,
		...{ chainId, nonce: 0n },
	}));
	const gasLimit = options.gasLimit ?? 21_000 + 25_000 * count + 50_000;
	return hex({ type: 4, maxFeePerGas: 3n * GWEI, ...options, gasLimit, authorizations });
}

function hex(options: TxOptions): string {
	return `0x${rawTransaction(options).toString("hex")}`;
}

/** 100 transactions of an account each, two of them with 600 authorizations. */
function mixed(group: number): readonly string[] {
	return Array.from({ length: SENDERS }, (_, i) =>
		i < 2
			? crowded({ by: accountOf(group, i) }, 600)
			: hex({ by: accountOf(group, i), gasLimit: 21_000, maxFeePerGas: 3n * GWEI }),
	);
}

let system: ProcessSystem;
let relay: RelayProcess;
let boost: RelayProcess;
let limitMs = 0;
let group = 0;

before(async () => {
	system = await startProcessSystem({ env: { BOOST_SECRET } });
	relay = await startRelayProcess({ ...metered("relay/main.ts"), env: system.env });
	const places = { relayUrl: relay.url, fallbackUrl: relay.url, folder: system.folder };
	const env = { ...boostEnv(places), LOG_LEVEL: "info" };
	boost = await startRelayProcess({ ...metered("boost-proxy/main.ts"), env });
	limitMs = turnLimit();
});
after(async () => {
	await boost?.kill();
	await relay?.kill();
	await system?.stop();
});

/** Funds the accounts of a new group, and returns its number. */
async function funded(count = SENDERS): Promise<number> {
	group += 1;
	const accounts = Array.from({ length: count }, (_, i) => accountOf(group, i));
	await system.chain.fund(accounts);
	await nextBlock();
	return group;
}

async function nextBlock(): Promise<number> {
	return system.nextBlock(relay);
}

async function post(url: string, body: unknown): Promise<Answer> {
	const headers = { "content-type": "application/json" };
	const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
	return (await answer.json()) as Answer;
}
interface Answer {
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
}

const call = (method: string, params: readonly unknown[]) => ({ jsonrpc: "2.0", id: 1, method, params });

function bundle(raws: readonly string[], block: number, maxBlock = block): unknown {
	const inclusion = { block: `0x${block.toString(16)}`, maxBlock: `0x${maxBlock.toString(16)}` };
	const body = raws.map((tx) => ({ tx, canRevert: false }));
	return call("mev_sendBundle", [{ version: "v0.1", inclusion, body }]);
}

/** The longest turn of both processes during `work`, in ms; the shortest of some rounds counts. */
async function assertQuick(work: (url: string, round: number) => Promise<unknown>): Promise<void> {
	for (const { url } of [relay, boost]) {
		let best = Number.POSITIVE_INFINITY;
		for (let round = 0; round < ROUNDS && best >= limitMs; round++) {
			const prepared = await funded();
			for (const one of [relay, boost]) await heldSoFar(one);
			await work(url, prepared);
			best = Math.min(best, Math.max(await heldSoFar(relay), await heldSoFar(boost)));
		}
		assert.ok(best < limitMs, `${best.toFixed(1)} ms, at most ${limitMs.toFixed(1)}`);
	}
}

test("a bundle of 100 transactions with 1,200 authorizations, accepted for 30 blocks, and the heads behind it", async () => {
	await assertQuick(async (url, prepared) => {
		const next = Number(await system.chain.rpc("eth_blockNumber")) + 1;
		const answer = await post(url, bundle(mixed(prepared), next, next + 29));
		assert.ok(answer.error === undefined, JSON.stringify(answer.error));
		// The builder takes no block of its own from bundles here: they are tried again at each head.
		for (let head = 0; head < 3; head++) await system.chain.rpc("evm_mine", []);
		await nextBlock();
	});
	const status = (await (await fetch(`${boost.url}/status`)).json()) as { relay: { state: string } };
	assert.equal(status.relay.state, "closed");
});

/**
 * Accounts that the code of {@link PAYER} pays 1 wei each, and which have delegated to code that
 * does nothing.
 */
const DELEGATED = 200;
const FIRST = 0x77n << 152n;
const PAYER = `0x${"d7".repeat(20)}`;
/** For i from 200 to 1: CALL(3,000 gas, FIRST + i, 1 wei). */
const PAYS_ALL = `0x60${DELEGATED.toString(16)}5b5f5f5f5f60018573${FIRST.toString(16).padStart(40, "0")}01610bb8f150600190038060025700`;

test("a simulation that touches 200 delegated accounts behind 400 authorizations", async () => {
	const code = `0xef0100${"00".repeat(19)}ff`;
	for (let i = 1n; i <= DELEGATED; i++)
		await system.chain.rpc("anvil_setCode", [`0x${(FIRST + i).toString(16).padStart(40, "0")}`, code]);
	await system.chain.rpc("anvil_setCode", [PAYER, PAYS_ALL]);
	await system.chain.rpc("anvil_setBalance", [PAYER, "0xffff"]);
	await assertQuick(async (url, prepared) => {
		const tx = crowded({ by: accountOf(prepared, 0), to: PAYER, gasLimit: 16_000_000 }, 400);
		const second = hex({ by: accountOf(prepared, 1), gasLimit: 21_000, maxFeePerGas: 3n * GWEI });
		const next = Number(await system.chain.rpc("eth_blockNumber")) + 1;
		const blockNumber = `0x${next.toString(16)}`;
		const { result, error } = await post(
			url,
			call("eth_callMany", [{ txs: [tx, second], blockNumber, stateBlockNumber: "latest" }]),
		);
		assert.deepEqual(result, [[{ value: "" }, { value: "" }]], JSON.stringify(error));
	});
});

test("four bundles of 1,200 authorizations at once", async () => {
	await assertQuick(async (url, prepared) => {
		const next = Number(await system.chain.rpc("eth_blockNumber")) + 1;
		const all = Array.from({ length: 4 }, (_, i) => {
			const raws = [600, 600, 1].map((count, k) => crowded({ by: accountOf(prepared, 3 * i + k) }, count));
			return post(url, bundle(raws, next));
		});
		const answers = await Promise.all(all);
		// The node, too, recovers them, which may take longer than the relay waits.
		assert.ok(
			answers.some(({ error }) => error === undefined),
			JSON.stringify(answers),
		);
	});
});

test("a bundle with more authorizations than a block has room for is refused without recovering them", async () => {
	await assertQuick(async (url, prepared) => {
		const next = Number(await system.chain.rpc("eth_blockNumber")) + 1;
		const raws = Array.from({ length: 8 }, (_, i) => crowded({ by: accountOf(prepared, i) }, 650));
		const { error } = await post(url, bundle(raws, next));
		assert.match(error?.message ?? "", /^exceeds block gas limit/);
	});
});

test("a sender's chain of transactions with 600 authorizations each, and a block full of them", async () => {
	await assertQuick(async (url, prepared) => {
		const by = accountOf(prepared, 0);
		for (let nonce = 0; nonce < 4; nonce++) {
			const { error } = await post(url, call("eth_sendRawTransaction", [crowded({ by, nonce }, 600)]));
			assert.equal(error, undefined, JSON.stringify(error));
		}
		for (const i of [1, 2])
			await system.chain.rpc("eth_sendRawTransaction", [crowded({ by: accountOf(prepared, i) }, 550)]);
		await system.chain.rpc("evm_mine", []);
		await nextBlock();
	});
});
