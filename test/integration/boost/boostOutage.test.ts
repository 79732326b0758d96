// Tests boost while its relay is down, as clients see it: what is served by whom, how the rest is
// refused, and that what they read of accounts and transactions stays continuous through the outage
// and after it.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { JsonRpcProvider } from "ethers";
import { createPublicClient, http } from "viem";
import { foundry } from "viem/chains";
import { RPC_PATHS } from "../../../relay/ingress/methods/transactions.ts";
import { MEV_SHARE } from "../../../relay/ingress/mevShareStream.ts";
import { recordRoutesOf } from "../../../relay/ingress/routes.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { RelayClient, type WireAnswer, type WireStatus } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { seesHead } from "../../support/systems.ts";
import { testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import { httpText, type RecordingFallback, startRecordingFallback } from "../../support/upstreams.ts";

const ZEROS = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" };
const OUT = "no relay available: the relay is down";
const UNKNOWN_PATH = [404, { code: -32600, message: "invalid request: unknown path" }];

let fixture: BoostFixture;
let boost: BoostClient;
before(async () => {
	fixture = await startBoostFixture();
	boost = fixture.boost;
});
after(() => fixture?.stop());
afterEach(() => fixture.recovers());

const send = ({ raw }: Signed, path = "/fast") => boost.result("eth_sendRawTransaction", [raw], { path });
const pending = ({ address }: Actor) => boost.result("eth_getTransactionCount", [address, "pending"]);
const byHash = async ({ hash }: Signed) =>
	(await boost.result("eth_getTransactionByHash", [hash])) as Record<string, unknown> | null;
const status = async ({ hash }: Signed) => (await boost.get(`/tx/${hash}`)).json as WireStatus;

function zeros(found: Record<string, unknown> | null): unknown {
	const { gasPrice, v, r, s, yParity } = found ?? {};
	return { gasPrice, v, r, s, yParity };
}

describe("what only the relay serves", () => {
	it("is refused in the form that the client expects, with Retry-After", async () => {
		await fixture.fails();
		for (const path of ["/fullprivacy", "/maxbackruns", "/nochecks", "/ws"]) {
			const reply = await boost.call("eth_chainId", [], { path });
			assert.equal(reply.status, 200, path);
			assert.deepEqual(reply.json, { jsonrpc: "2.0", id: 1, error: { code: -32603, message: OUT } }, path);
			assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/, path);
		}
		const call = { jsonrpc: "2.0", method: "eth_chainId", params: [] };
		const batch = await boost.post([{ ...call, id: "a" }, call, { ...call, id: 2 }], { path: "/nochecks" });
		assert.deepEqual([batch.status, (batch.json as { id: unknown }[]).map(({ id }) => id)], [200, ["a", 2]]);
		const large = await boost.post({ ...call, id: 1, params: ["0".repeat(100_000)] }, { path: "/nochecks" });
		assert.deepEqual([large.status, (large.json as { id: unknown }).id], [200, 1]);
		for (const path of ["/info", `/tx/0x${"ab".repeat(32)}/events`, "/bundle/0x", "/mev-share"]) {
			const reply = await boost.get(path);
			assert.deepEqual([reply.status, reply.json], [503, { error: OUT }], path);
			assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/, path);
		}
		// A browser's EventSource would be closed for good by a 503.
		for (const path of ["/mev-share", `/tx/0x${"ab".repeat(32)}/events`]) {
			const stream = await EventStreamReader.open(boost.url + path);
			assert.equal(await stream.over(), "end");
			const { "content-type": type } = stream.headers;
			assert.deepEqual([stream.status, type], [200, "text/event-stream; charset=utf-8"], path);
			assert.match(stream.text, /^retry: [1-9]\d*000\n\n: no relay available: the relay is down\n\n$/, path);
		}
		const { status: code, headers } = await boost.send({ verb: "OPTIONS", path: "/fullprivacy" });
		assert.deepEqual([code, headers["access-control-allow-origin"]], [204, "*"]);
	});

	it("every path of the relay is not available, and any other does not exist", async () => {
		await fixture.fails();
		const routes = recordRoutesOf(
			true,
			() => null,
			() => assert.fail("nobody is asked"),
		);
		const own = ["/", "/fast", "/noreverts", "/tx/{hash}", "/stats/service.json"];
		const paths = new Set([...RPC_PATHS, MEV_SHARE, "/info", ...routes.map(({ path }) => path)]);
		for (const path of paths) {
			if (own.includes(path)) continue;
			const reply = await boost.get(path.replaceAll(/[{}]/g, ""));
			assert.deepEqual([reply.status, reply.json], [503, { error: OUT }], path);
		}
		for (const path of ["/nope", "/tx", "/bundle", "/mev-share/x", "/relay", "/relay/operators"]) {
			const reply = await boost.get(path);
			assert.deepEqual([reply.status, reply.json], [404, { error: "unknown path" }], path);
		}
	});

	it("a near miss of a path goes nowhere and gets 404; a wrong verb gets 405", async () => {
		await fixture.fails();
		const asked = fixture.wires.fallback.requests().length;
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "net_version" });
		const headers = { "content-type": "application/json-rpc" };
		const said = async (verb: string, path: string) => {
			const { status, json } = await boost.send({ verb, path, body, headers });
			return [status, (json as WireAnswer).error];
		};
		for (const path of ["/Fast", "/fast/x", "/fast%2F", "/rpc", "//v1//KEY", "/fullprivacy/"]) {
			for (const verb of ["POST", "PUT"]) {
				const expected = path === "/fullprivacy/" ? [200, { code: -32603, message: OUT }] : UNKNOWN_PATH;
				assert.deepEqual(await said(verb, path), expected, `${verb} ${path}`);
			}
		}
		for (const [verb, path, allow] of [
			["PUT", "/fast", "POST, OPTIONS"],
			["GET", "//noreverts/", "POST, OPTIONS"],
			["POST", `/tx/0x${"ab".repeat(32)}`, "GET, HEAD, OPTIONS"],
			["POST", "/livez", "GET, HEAD, OPTIONS"],
		] as const) {
			const message = `invalid request: expected one of ${allow}`;
			assert.deepEqual(await said(verb, path), [405, { code: -32600, message }], `${verb} ${path}`);
		}
		const strayed = fixture.wires.fallback.requests().slice(asked);
		assert.ok(strayed.every(({ calls }) => calls.every(({ method }) => method !== "net_version")));
		const { json } = await boost.send({ path: "//fast//", body, headers });
		assert.deepEqual(json, { jsonrpc: "2.0", id: 1, result: "31337" }, "this one is /fast");
	});

	it("boost itself is live, and ready as long as one upstream is available", async () => {
		await fixture.fails();
		assert.deepEqual([(await boost.get("/livez")).status, (await boost.get("/readyz")).status], [200, 200]);
		await fixture.wires.fallback.set({ kind: "refuse" });
		await boost.reaches("both are down", ({ fallback }) => fallback?.state !== "closed");
		assert.deepEqual([(await boost.get("/livez")).status, (await boost.get("/readyz")).status], [200, 503]);
	});
});

describe("reads of clients' transactions", () => {
	it("show a pending type 4 with its authorizations, whose signatures are hidden, to ethers and viem", async (t) => {
		const address = `0x${"ab".repeat(20)}`;
		const authorizations = [{ by: testAccount(77), address }];
		const tx = (await fixture.users.actor()).sign({ type: 4, gasLimit: 200_000, authorizations });
		await send(tx);
		const provider = new JsonRpcProvider(boost.url, undefined, { staticNetwork: true, cacheTimeout: -1 });
		t.after(() => provider.destroy());
		const client = createPublicClient({ chain: foundry, transport: http(boost.url) });
		const assertShown = async () => {
			const [byEthers, byViem] = await Promise.all([
				provider.getTransaction(tx.hash),
				client.getTransaction({ hash: tx.hash as `0x${string}` }),
			]);
			const [seen] = byEthers?.authorizationList ?? [];
			const zeros = `0x${"0".repeat(64)}`;
			assert.deepEqual([seen?.address.toLowerCase(), seen?.signature.r], [address, zeros]);
			assert.deepEqual(byViem.authorizationList, [
				{ chainId: 31_337, address, nonce: 0, yParity: 0, r: "0x0", s: "0x0" },
			]);
		};
		await assertShown();
		await fixture.fails();
		await assertShown();
	});

	it("work during and after an outage: nonce, transaction, status, receipt", async () => {
		const actor = await fixture.users.actor();
		const [first, second, third, fourth] = [0, 1, 2, 3].map((nonce) => actor.sign({ nonce })) as [
			...[Signed, Signed, Signed, Signed],
		];
		await send(first, "/noreverts");
		await send(second);
		await fixture.fails();
		assert.equal(await pending(actor), "0x2", "what the relay held");
		assert.equal(await send(third), third.hash);
		assert.equal(await send(fourth, "/noreverts"), fourth.hash);
		assert.equal(await pending(actor), "0x4");
		for (const tx of [first, second, third, fourth]) {
			const found = await byHash(tx);
			assert.deepEqual([found?.hash, found?.blockHash, zeros(found)], [tx.hash, null, ZEROS]);
			const { stage, status: word, fastMode } = await status(tx);
			assert.deepEqual([stage, word, fastMode], ["HELD", "UNKNOWN", tx === second || tx === third]);
			assert.equal(
				(await boost.call("eth_getTransactionReceipt", [tx.hash])).body.includes('"result":null'),
				true,
			);
		}
		await fixture.recovers();
		assert.equal(await pending(actor), "0x4");
		for (const tx of [first, second, third, fourth]) {
			assert.deepEqual(zeros(await byHash(tx)), ZEROS);
			await fixture.users.waitUntilSent(tx);
		}
		await fixture.system.nextBlock();
		await boost.reaches("nothing is open any more", ({ journal }) => journal.depth === 0);
		assert.equal(await pending(actor), "0x4");
		for (const tx of [first, second, third, fourth]) assert.equal((await status(tx)).status, "INCLUDED");
	});

	it("what is mined during an outage is read from the chain", async () => {
		const actor = await fixture.users.actor();
		const [before, during] = [actor.sign(), actor.sign({ nonce: 1 })];
		await send(before);
		await fixture.fails();
		await send(during);
		for (const tx of [before, during]) await fixture.users.waitUntilSent(tx);
		const block = await fixture.system.nextBlock();
		// The chain is read through the fallback, which calls its own transactions pending until it has
		// seen their block.
		await seesHead(new RelayClient(fixture.fallbackUrl), block);
		for (const tx of [before, during]) {
			const receipt = (await boost.result("eth_getTransactionReceipt", [tx.hash])) as { status: string };
			assert.equal(receipt.status, "0x1");
			const found = await byHash(tx);
			assert.deepEqual([found?.blockNumber !== null, zeros(found)], [true, ZEROS]);
			const { status: word, stage } = await status(tx);
			assert.deepEqual([word, stage], ["INCLUDED", "INCLUDED"]);
		}
		assert.equal(await pending(actor), "0x2");
	});

	it("what only the fallback knows is read from there, without the signature", async () => {
		const actor = await fixture.users.actor();
		const tx = actor.sign();
		const url = `${fixture.fallbackUrl}/fast`;
		const body = JSON.stringify({
			jsonrpc: "2.0",
			id: 1,
			method: "eth_sendRawTransaction",
			params: [tx.raw],
		});
		await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
		assert.equal(await byHash(tx), null, "the relay is healthy and knows nothing of it");
		await fixture.fails();
		const found = await byHash(tx);
		assert.deepEqual([found?.hash, zeros(found)], [tx.hash, ZEROS]);
		assert.equal(await pending(actor), "0x1");
		assert.equal((await status(tx)).stage, "HELD");
	});

	it("a fallback without cancels is named in the answer, and the user's own self-transfer is sent there", async (t) => {
		const recorder = await startRecordingFallback();
		t.after(() => recorder.stop());
		const env = {
			FALLBACK_URL: recorder.url,
			FALLBACK_DIALECT: "flashbots",
			ETH_RPC_URL: fixture.system.chain.url,
		};
		const other = await fixture.startBoost({ env });
		t.after(() => other.stop());
		await fixture.fails(undefined, other);
		const actor = await fixture.users.actor();
		const [tx, back] = [actor.sign(), actor.sign({ to: actor.address, maxFeePerGas: 60_000_000_000n })];
		await other.result("eth_sendRawTransaction", [tx.raw]);
		const { error } = (await other.call("eth_cancelTransaction", [tx.hash])).json as WireAnswer;
		assert.deepEqual(error, {
			code: -32000,
			message: "the fallback has it: send a self-transfer with nonce 0",
		});
		assert.equal(await other.result("eth_sendRawTransaction", [back.raw]), back.hash);
		const sent = recorder.posts.filter(({ body }) => body.includes("eth_sendRawTransaction"));
		assert.deepEqual(
			sent.map(({ calls: [call] }) => call?.params),
			[[tx.raw], [back.raw]],
		);
		assert.ok(!recorder.methods.includes("eth_cancelTransaction"), "it is not asked what it cannot do");
	});

	it("a fallback that shows signatures and prices does not show them through boost", async (t) => {
		const recorder: RecordingFallback = await startRecordingFallback();
		t.after(() => recorder.stop());
		const other = await fixture.startBoost({ env: { FALLBACK_URL: recorder.url } });
		t.after(() => other.stop());
		const hash = `0x${"5e".repeat(32)}`;
		const shown = {
			...{ hash, blockHash: null, blockNumber: null, transactionIndex: null, type: "0x2", chainId: "0x7a69" },
			...{
				nonce: "0x0",
				from: `0x${"11".repeat(20)}`,
				to: `0x${"22".repeat(20)}`,
				value: "0x1",
				input: "0x",
			},
			...{
				gas: "0x5208",
				gasPrice: "0x77",
				maxFeePerGas: "0x99",
				maxPriorityFeePerGas: "0x1",
				accessList: [],
			},
			...{ v: "0x1", r: "0x1234", s: "0x5678", yParity: "0x1" },
		};
		recorder.answerWith(({ calls: [call] }) => {
			if (call?.method !== "eth_getTransactionByHash") return undefined;
			return httpText(JSON.stringify({ jsonrpc: "2.0", id: call.id, result: shown }));
		});
		await fixture.fails(undefined, other);
		const found = (await other.result("eth_getTransactionByHash", [hash])) as Record<string, unknown>;
		assert.deepEqual([found.hash, found.maxFeePerGas, zeros(found)], [hash, "0x99", ZEROS]);
	});

	it("a replacement during an outage ends the earlier one everywhere", async () => {
		const actor = await fixture.users.actor();
		const bumped = { maxFeePerGas: 60_000_000_000n, maxPriorityFeePerGas: 3_000_000_000n };
		const [earlier, later] = [actor.sign(), actor.sign({ ...bumped, value: 7n })];
		await send(earlier);
		await fixture.fails();
		assert.equal(await send(later), later.hash);
		assert.equal(await byHash(earlier), null);
		assert.deepEqual([(await status(earlier)).stage, (await status(later)).stage], ["REPLACED", "HELD"]);
		assert.equal(await pending(actor), "0x1");
		await fixture.recovers();
		// It was taken back from the relay before its successor came there.
		await until("the relay has heard of it", async () =>
			/^(REPLACED|CANCELLED)$/.test((await fixture.users.status(earlier)).stage ?? ""),
		);
		assert.equal(await send(earlier), earlier.hash, "never revived");
		assert.deepEqual([await byHash(earlier), await pending(actor)], [null, "0x1"]);
	});
});

describe("eth_sendRawTransactionSync", () => {
	/** On a connection of its own: it may take its time. */
	async function wait({ raw }: Signed, ...timeout: unknown[]): Promise<{ code: number; json: WireAnswer }> {
		const call = { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransactionSync", params: [raw, ...timeout] };
		const headers = { "content-type": "application/json" };
		const answer = await fetch(`${boost.url}/fast`, { method: "POST", headers, body: JSON.stringify(call) });
		return { code: answer.status, json: (await answer.json()) as WireAnswer };
	}

	it("returns the receipt while the relay is healthy, while it is down, and if it fails meanwhile", async () => {
		for (const when of ["well", "out", "between"]) {
			const tx = (await fixture.users.actor()).sign();
			if (when === "out") await fixture.fails();
			// An invalid timeout is the default (EIP-7966).
			const waiting = wait(tx, "12 s");
			await fixture.users.waitUntilSent(tx);
			if (when === "between") await fixture.fails();
			await fixture.system.nextBlock();
			const { code, json } = await waiting;
			const { transactionHash, status: word } = json.result as Record<string, string>;
			assert.deepEqual([code, transactionHash, word], [200, tx.hash, "0x1"], when);
			await fixture.recovers();
		}
	});

	it("returns the timeout error, and while the relay is available the error that it can't be mined soon", async () => {
		const actor = await fixture.users.actor();
		const [first, gapped, far] = [actor.sign(), actor.sign({ nonce: 5 }), actor.sign({ nonce: 7 })];
		const never = await wait(gapped, 10_000);
		assert.deepEqual([never.code, never.json.error?.code, never.json.error?.data], [200, 5, gapped.hash]);
		await fixture.fails();
		for (const tx of [first, far]) {
			const { json } = await wait(tx, 300);
			assert.deepEqual([json.error?.code, json.error?.data], [4, tx.hash]);
		}
	});

	it("is refused at once if no upstream accepts it", async () => {
		const tx = (await fixture.users.actor()).sign();
		await fixture.wires.fallback.set({ kind: "refuse" });
		await fixture.fails();
		await boost.reaches("both are down", ({ fallback }) => fallback?.state !== "closed");
		const { code, json } = await wait(tx, 20_000);
		assert.deepEqual([code, json.error?.code], [200, -32603]);
	});
});
