// What answers cost tells nothing either: bids on private transactions and on a hash that nobody has seen use up a limit
// alike and take equally long, also where the node is slow. And what the pages of a shared transaction leave out.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
	type BiddingFixture,
	backrunBy,
	bidder,
	EMITTER,
	PAYER,
	REASON,
	signedBy,
	startBidding,
} from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { gate } from "../../support/contracts.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import {
	bundleHashOf,
	holdSecrets,
	SECRET_BUILDERS,
	type Secrets,
	UNKNOWN,
} from "../../support/secretFixture.ts";
import { until } from "../../support/until.ts";

const PAIRS = 300;
const NODE_DELAY_MS = 100;
/** Far below one answer of the node, far above what a busy machine does to a median of 300. */
const MEDIAN_APART_MS = 40;
/**
 * Of two equal distributions the share of pairs that one wins has a deviation of 0.024 for 300 of each: seven of them.
 * https://en.wikipedia.org/wiki/Mann%E2%80%93Whitney_U_test
 */
const RANK_APART = 0.17;
const LIMIT = { env: { RATE_LIMIT_RPS: "1", TRUST_PROXY: "1" } };
/** Ten seconds' worth. */
const BURST = 10;

let fixture: BiddingFixture;
let secrets: Secrets;
before(async () => {
	fixture = await startBidding({ builders: SECRET_BUILDERS, proxied: true });
	secrets = await holdSecrets(fixture, 0);
});
after(() => fixture.stop());

test("bids take equally long, and ask the node for nothing, when it takes 100 ms for an answer", async () => {
	const names = [
		"on /fullprivacy",
		"on /nochecks",
		"on /fullprivacy, failing",
		"private, in place of a shared one",
	];
	fixture.system.node?.setDelay(NODE_DELAY_MS);
	const ws = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`);
	let asked = 0;
	/** One bid by an account that has never been asked for, in ms. */
	const time = async (target: string): Promise<number> => {
		asked += 1;
		const txs = [target, backruns[asked % backruns.length]];
		const begun = performance.now();
		ws.send({ jsonrpc: "2.0", id: 1, method: "eth_sendBundle", params: [{ txs }] });
		const { error } = await ws.next();
		const took = performance.now() - begun;
		assert.equal(error?.message, "target transaction not found");
		return took;
	};
	const backruns = Array.from({ length: 40 }, (_, i) => backrunBy(i + 10, 7_000n).raw);
	// A road that does ask the node is seen by the same measure.
	const shared = await fixture.target(50);
	const begun = performance.now();
	await fixture.call("eth_sendBundle", [{ txs: [shared, backrunBy(51, 7_000n).raw] }]);
	assert.ok(performance.now() - begun > NODE_DELAY_MS);
	for (let i = 0; i < 100; i++) await time(UNKNOWN);
	for (const name of names) {
		const hidden: number[] = [];
		const unknown: number[] = [];
		for (let i = 0; i < PAIRS; i++) {
			// Each goes first in turn.
			const first = i % 2 === 0;
			if (first) hidden.push(await time(secrets.hashes[name] ?? ""));
			unknown.push(await time(UNKNOWN));
			if (!first) hidden.push(await time(secrets.hashes[name] ?? ""));
		}
		const medians = [hidden, unknown].map(median);
		const apart = Math.abs((medians[0] ?? 0) - (medians[1] ?? 0));
		assert.ok(apart < MEDIAN_APART_MS, `${name}: medians ${medians.join(" and ")} ms`);
		const share = wins(hidden, unknown);
		assert.ok(
			Math.abs(share - 0.5) < RANK_APART,
			`${name}: longer than an unknown one in ${share} of all pairs`,
		);
	}
	ws.terminate();
	fixture.system.node?.setDelay(0);
});

test("bids use up a limit alike", async () => {
	const limited = await startBidding({ builders: SECRET_BUILDERS, ...LIMIT });
	const { system } = limited;
	try {
		const [hidden, unchecked] = [signedBy(0, { to: EMITTER }), signedBy(1, { to: EMITTER })];
		const here = { from: "198.51.100.200" };
		await limited.call("eth_sendRawTransaction", [hidden.raw], { ...here, path: "/fullprivacy" });
		await limited.call("eth_sendRawTransaction", [unchecked.raw], { ...here, path: "/nochecks" });
		await until("both are out", () =>
			[hidden, unchecked].every(({ raw }) => JSON.stringify(system.builder.requests()).includes(raw)),
		);
		const { raw } = backrunBy(2, 1_000n);
		const answers = await Promise.all(
			[UNKNOWN, hidden.hash, unchecked.hash].map(async (hash, i) => {
				const call = { jsonrpc: "2.0", method: "eth_sendBundle", params: [{ txs: [hash, raw] }] };
				const response = await fetch(system.client.url, {
					method: "POST",
					headers: { "content-type": "application/json", "x-forwarded-for": `198.51.100.${i}` },
					body: JSON.stringify(Array.from({ length: 3 * BURST }, (_, id) => ({ ...call, id }))),
				});
				return (await response.json()) as WireAnswer[];
			}),
		);
		for (const list of answers) {
			const codes = list.map(({ error }) => error?.code);
			assert.equal(codes.length, 3 * BURST);
			assert.equal(codes.filter((code) => code === -32_000).length, BURST, codes.join());
			assert.equal(codes.filter((code) => code === -32_005).length, 2 * BURST, codes.join());
		}
	} finally {
		await limited.stop();
	}
});

test("the pages of a shared one behind a private one tell nothing of the state behind that, nor that there is one", async () => {
	const { client, chain } = fixture.system;
	const place = `0x${"b7".repeat(20)}`;
	const reason = `0x${Buffer.from(REASON).toString("hex")}`;
	await chain.rpc("anvil_setCode", [place, gate(reason)]);
	// Each private link sets the gate that its shared one goes through: open for the one, shut for the other.
	for (const [account, set, stage] of [
		[52, 1, "BROADCAST"],
		[57, 0, "SIMULATION_FAILED"],
	] as const) {
		const hidden = signedBy(account, { to: place, data: `0x${String(set).padStart(64, "0")}` });
		const shared = signedBy(account, { to: place, nonce: 1 });
		await client.send(hidden.raw, "/fullprivacy");
		await client.send(shared.raw, "/maxbackruns");
		await until(`it is ${stage}`, async () => (await client.stage(shared.hash)) === stage);
		const pages = [await client.events(shared.hash), await client.status(shared.hash)];
		const text = JSON.stringify(pages);
		assert.ok(!text.includes(hidden.hash), text);
		assert.ok(!text.includes(REASON) && !text.includes(reason.slice(2)), text);
		assert.doesNotMatch(text, /"gasUsed":\d|"data":"|not shared|private/);
	}
});

test("the pages of a pending shared one tell nothing of what is bid on it", async () => {
	const { client } = fixture.system;
	const target = await fixture.target(53);
	const bids = [31_337_111n, 31_337_222n, 31_337_333n].map((value, i) => ({
		value,
		...backrunBy(54 + i, value),
	}));
	for (const { raw } of bids) await fixture.call("eth_sendBundle", [{ txs: [target, raw] }]);
	await until("all are counted", async () =>
		(await client.events(target)).some(({ type }) => type === "bundled"),
	);
	for (const path of [`/tx/${target}`, `/tx/${target}/events`]) {
		const text = (await (await fetch(`${client.url}${path}`)).text()).toLowerCase();
		for (const { value, hash, raw } of bids) {
			const told = [String(value), hash, bundleHashOf(target, hash), raw.slice(-60), value.toString(16)];
			for (const one of told) assert.ok(!text.includes(one.replace("0x", "")), text);
		}
		for (let i = 0; i < bids.length; i++) assert.ok(!text.includes(bidder(54 + i).address.slice(2)), text);
		assert.ok(!text.includes(PAYER.slice(2)), text);
	}
	for (const { hash } of bids) {
		assert.equal(await client.call("eth_getTransactionByHash", [hash]), null);
		assert.equal((await client.status(hash)).stage, undefined);
	}
	for (let i = 0; i < bids.length; i++) {
		const pending = await client.call("eth_getTransactionCount", [bidder(54 + i).address, "pending"]);
		assert.equal(pending, "0x0", "a bid does not raise its sender's pending nonce");
	}
});

function median(values: readonly number[]): number {
	return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** The share of all pairs of one of each in which the first one is greater. */
function wins(first: readonly number[], second: readonly number[]): number {
	let won = 0;
	for (const a of first) for (const b of second) won += a > b ? 1 : a === b ? 0.5 : 0;
	return won / (first.length * second.length);
}
