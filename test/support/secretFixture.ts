// For tests that searchers find no secret: fills a relay with every kind of transaction that they
// must not find, collects the answers about a hash, without the caller's own data, and compares
// their times with those about an unknown hash.

import assert from "node:assert/strict";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import {
	type BiddingFixture,
	backrunBy,
	EMITTER,
	MISER,
	PAYER,
	REASONER,
	REVERTER,
	type Signed,
	signedBy,
} from "./biddingFixture.ts";
import { postText, RawConnection, WsClient } from "./clients.ts";
import { until } from "./until.ts";

/** The builders: only the first may receive what is fully private. */
export const SECRET_BUILDERS = [{ name: "vault", fullPrivacy: true }, { name: "plain" }] as const;
/** Settings of a relay behind a proxy, so that users and searchers have different addresses. */
export const SECRET_ENV = { TRUST_PROXY: "1" } as const;
/** The searcher's address; users have others. */
const SEARCHER = { "X-Forwarded-For": "198.51.100.77" };
/** The hash of no transaction. */
export const UNKNOWN = `0x${"5e".repeat(32)}`;

/** The transactions that the relay holds. */
export interface Secrets {
	/**
	 * Hashes by the reason why they are hidden: answers about them must equal those about {@link
	 * UNKNOWN}.
	 */
	readonly hashes: Readonly<Record<string, string>>;
	/** Those of them that searchers must never learn of. */
	readonly unheard: readonly Signed[];
	/** A private transaction, and a shared one with the next nonce. */
	readonly link: { readonly hidden: Signed; readonly shared: Signed };
}

/**
 * Submits one of each from accounts `first` to `first + 7`, and waits until each has its final
 * stage for now.
 */
export async function holdSecrets(fixture: BiddingFixture, first: number): Promise<Secrets> {
	const { client, builders } = fixture.system;
	const one = (i: number, options: object = {}) =>
		signedBy(first + i, { to: EMITTER, value: 3n, ...options });
	const submit = async (path: string, tx: Signed, stage: string) => {
		await client.send(tx.raw, path);
		await until(`${path} at ${stage}`, async () => (await client.stage(tx.hash)) === stage);
	};
	const [passing, unchecked, gapped] = [one(0), one(1), one(2, { nonce: 3 })];
	const failing = one(3, { to: REVERTER });
	await submit("/fullprivacy", passing, "BROADCAST");
	await submit("/nochecks", unchecked, "BROADCAST");
	await submit("/fullprivacy", gapped, "QUEUED");
	await submit("/fullprivacy", failing, "SIMULATION_FAILED");
	const link = { hidden: one(4), shared: one(4, { nonce: 1 }) };
	await submit("/fullprivacy", link.hidden, "BROADCAST");
	await submit("/maxbackruns", link.shared, "BROADCAST");
	const behindUnchecked = one(5, { nonce: 1 });
	await submit("/nochecks", one(5), "BROADCAST");
	await submit("/maxbackruns", behindUnchecked, "QUEUED");
	const replaced = one(6);
	await submit("/maxbackruns", replaced, "BROADCAST");
	const fees = { maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 2_000_000_000n };
	const successor = one(6, { value: 4n, ...fees });
	await submit("/fullprivacy", successor, "BROADCAST");
	const unlikely = signedBy(first + 7, { value: 1n });
	await submit("/fast", unlikely, "BROADCAST");
	const [vault] = builders;
	await until("the first builder has them", () => {
		const sent = JSON.stringify(vault?.requests() ?? []);
		return [passing, unchecked, link.hidden, successor].every(({ raw }) => sent.includes(raw));
	});
	const hashes = {
		"on /fullprivacy": passing.hash,
		"on /nochecks": unchecked.hash,
		"on /fullprivacy, behind a gap": gapped.hash,
		"on /fullprivacy, failing": failing.hash,
		"shared, behind a private one": link.shared.hash,
		"shared, behind an unchecked one": behindUnchecked.hash,
		"replaced by a private one": replaced.hash,
		"private, in place of a shared one": successor.hash,
		"on /fast, not likely to be backrun": unlikely.hash,
	};
	const unheard = [passing, unchecked, gapped, failing, link.hidden, successor, unlikely];
	return { hashes, unheard, link };
}

/** `value` as JSON without the requested hash, in any case of its letters. */
function stripped(value: unknown, hash: string): string {
	const text = typeof value === "string" ? value : JSON.stringify(value);
	return text.replaceAll(new RegExp(hash.slice(2), "gi"), "HASH");
}

/**
 * Status, headers and text of the answer to each call, on one connection; the date and the
 * request's id are left out.
 */
export async function overHttp(
	fixture: BiddingFixture,
	hash: string,
	probes: readonly Probe[],
): Promise<string[]> {
	const connection = await RawConnection.open(fixture.system.relay.port);
	const answers: string[] = [];
	for (const { method, params } of probes) {
		connection.write(postText("/", { jsonrpc: "2.0", id: 1, method, params }, SEARCHER));
		const { status, headers, body } = await connection.answer();
		const { date: _, "x-request-id": __, ...rest } = headers;
		answers.push(stripped(JSON.stringify([status, rest, body]), hash));
	}
	connection.destroy();
	return answers;
}

/**
 * Makes all calls in one batch, over HTTP and over a websocket, and returns the texts of the
 * answers.
 */
export async function inBatches(
	fixture: BiddingFixture,
	hash: string,
	probes: readonly Probe[],
): Promise<string[]> {
	const batch = probes.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params }));
	const connection = await RawConnection.open(fixture.system.relay.port);
	connection.write(postText("/fast", batch, SEARCHER));
	const { body } = await connection.answer();
	connection.destroy();
	const ws = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers: SEARCHER });
	ws.send(batch);
	const answer = JSON.stringify(await ws.next());
	ws.terminate();
	return [body, answer].map((text) => stripped(text, hash));
}

/** A call, without its id. */
export interface Probe {
	readonly name: string;
	readonly method: string;
	readonly params: readonly unknown[];
	/** Whether it is a valid bid for a coming block, so that the answer depends on the target. */
	readonly asksForTarget: boolean;
}

const ZERO_HASH = `0x${"00".repeat(32)}`;

/** The hash of the bundle of a target and a backrun, as a searcher can compute it. */
export function bundleHashOf(target: string, backrun: string): string {
	const bytes = [target, backrun].map((hash) => Buffer.from(hash.slice(2), "hex"));
	return `0x${Buffer.from(keccak256(Buffer.concat(bytes))).toString("hex")}`;
}

/** Valid and invalid backruns of bidder `index`, by what is wrong with them. */
function backruns(index: number): Readonly<Record<string, string>> {
	const good = backrunBy(index, 5_000n).raw;
	return {
		paying: good,
		"paying nobody": signedBy(index, { to: MISER, value: 5n }).raw,
		reverting: signedBy(index, { to: REASONER }).raw,
		"with a nonce gap": backrunBy(index, 1n, { nonce: 7 }).raw,
		"without the funds": backrunBy(index, 10n ** 24n).raw,
		"of another chain": backrunBy(index, 1n, { chainId: 1n }).raw,
		"with too little gas": signedBy(index, { to: PAYER, gasLimit: 20_000 }).raw,
		"with a low fee cap": backrunBy(index, 1n, { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }).raw,
		"of bytes that are cut": good.slice(0, -20),
		"of a type that there is not": `0x7f${good.slice(4)}`,
	};
}

/** All calls about `hash`, for the current head. */
export async function probesNow(
	fixture: BiddingFixture,
	hash: string,
	index: number,
): Promise<readonly Probe[]> {
	const head = await fixture.head();
	const hex = (block: number) => `0x${block.toString(16)}`;
	const all = backruns(index);
	const good = all.paying ?? "";
	const txs = [hash, good];
	const probe = (method: string, what: string, param: unknown, asksForTarget = false): Probe => ({
		...{ name: `${method} ${what}`.trim(), method, params: [param], asksForTarget },
	});
	const bid = (what: string, bundle: object, asksForTarget = true) =>
		probe("eth_sendBundle", what, bundle, asksForTarget);
	const share = (what: string, bundle: object, asksForTarget = true) => {
		const whole = { version: "v0.1", inclusion: { block: hex(head + 1) }, ...bundle };
		return probe("mev_sendBundle", what, whole, asksForTarget);
	};
	const body = (tx: string) => [{ hash }, { tx, canRevert: false }];
	const decodes = (name: string) => !name.startsWith("of bytes") && !name.startsWith("of a type");
	return [
		...Object.entries(all).flatMap(([name, tx]) => [
			bid(name, { txs: [hash, tx] }, decodes(name)),
			share(name, { body: body(tx) }, decodes(name)),
		]),
		bid("for the head's number", { txs, blockNumber: hex(head) }),
		bid("for the next block", { txs, blockNumber: hex(head + 1), replacementUuid: "a" }),
		bid("for a block to come", { txs, blockNumber: hex(head + 20) }),
		bid("for a block that is past", { txs, blockNumber: "0x0" }, false),
		bid("for a block too far", { txs, blockNumber: hex(head + 99) }, false),
		bid("under a uuid", { txs, replacementUuid: "b" }),
		bid("in upper case", { txs: [`0x${hash.slice(2).toUpperCase()}`, good] }),
		bid("with the hash alone", { txs: [hash] }, false),
		bid("with the hash twice", { txs: [hash, hash] }, false),
		bid("with two backruns", { txs: [hash, good, good] }, false),
		share("over a range", { body: body(good), inclusion: { block: hex(head + 1), maxBlock: hex(head + 9) } }),
		share("with a refund", { body: body(good), validity: { refund: [{ bodyIdx: 0, percent: 95 }] } }),
		share(
			"with a refund too small",
			{ body: body(good), validity: { refund: [{ bodyIdx: 0, percent: 5 }] } },
			false,
		),
		share("for one builder", { body: body(good), privacy: { builders: ["plain"] } }),
		share("for a builder that there is not", { body: body(good), privacy: { builders: ["nobody"] } }, false),
		share("that is past", { body: body(good), inclusion: { block: "0x0" } }, false),
		probe("eth_cancelBundle", "", { replacementUuid: hash }),
		probe("eth_cancelTransaction", "", hash),
		probe("eth_getTransactionReceipt", "", hash),
		probe("eth_getTransactionByHash", "of the bundle", bundleHashOf(hash, ZERO_HASH)),
	];
}

/** `eth_callMany` with `hash` in a bundle of signed transactions, alone and among others. */
export function simulationsOf(hash: string, index: number, head: number): readonly Probe[] {
	const { raw } = backrunBy(index, 5_000n);
	const block = { blockNumber: `0x${(head + 1).toString(16)}`, stateBlockNumber: `0x${head.toString(16)}` };
	return [[hash], [hash, raw], [raw, hash], [hash, hash]].map((txs, i) => ({
		name: `eth_callMany ${i}`,
		method: "eth_callMany",
		params: [{ txs, ...block }],
		asksForTarget: true,
	}));
}

/** The number of calls timed for each of the two hashes. */
const PAIRS = 300;
/** How long the node takes for each answer during that. */
export const NODE_DELAY_MS = 100;
/**
 * The largest difference of the medians: far below the time of a node's answer, and far above
 * noise.
 */
const MEDIAN_APART_MS = 40;
/**
 * The largest difference from a half of the share of pairs that one hash wins (Mann-Whitney). For
 * equal distributions and 300 calls each its standard deviation is 0.024: this is seven of them.
 * https://en.wikipedia.org/wiki/Mann%E2%80%93Whitney_U_test
 */
const RANK_APART = 0.17;

/**
 * Calls about `hash` and about an unknown hash in turn, and asserts that the times come from one
 * distribution.
 */
export async function assertSameTime(
	what: string,
	hash: string,
	time: (hash: string) => Promise<number>,
): Promise<void> {
	const [known, unknown]: [number[], number[]] = [[], []];
	for (let i = 0; i < PAIRS; i++) {
		// They take turns at being first.
		for (const list of i % 2 === 0 ? [known, unknown] : [unknown, known])
			list.push(await time(list === known ? hash : UNKNOWN));
	}
	const [a, b] = [median(known), median(unknown)];
	assert.ok(Math.abs(a - b) < MEDIAN_APART_MS, `${what}: medians ${a} and ${b} ms`);
	const share = shareOfWins(known, unknown);
	assert.ok(
		Math.abs(share - 0.5) < RANK_APART,
		`${what}: longer than an unknown one in ${share} of all pairs`,
	);
}

function median(values: readonly number[]): number {
	return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** The share of all pairs, one time of each list, in which the first is greater. */
function shareOfWins(first: readonly number[], second: readonly number[]): number {
	let won = 0;
	for (const a of first) for (const b of second) won += a > b ? 1 : a === b ? 0.5 : 0;
	return won / (first.length * second.length);
}
