// Only its owner may end a transaction that boost has acknowledged, by a signature for this chain.
// Neither a signature for another chain nor a fallback's answer ends it.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import httpProxy from "http-proxy";
import { type Clock, systemClock } from "../../../shared/clock.ts";
import { freePort } from "../../devnet/freePort.ts";
import { startRelayHere } from "../../faults/world.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { WsClient } from "../../support/clients.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";
import { startRecordingFallback } from "../../support/upstreams.ts";

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture?.stop());

async function stage(hash: string): Promise<unknown> {
	return ((await fixture.boost.get(`/tx/${hash}`)).json as { stage?: unknown }).stage;
}

const SOFT = { path: "/noreverts?softCancellations=true" };

describe("a self-transfer that was signed for another chain with the same nonce", () => {
	for (const [name, isOut] of [
		["while the relay is down", true],
		["while the relay is healthy", false],
	] as const) {
		it(`ends nothing ${name}, from any client; the one for this chain does`, async () => {
			const { sign, address } = await fixture.users.actor();
			const tx = sign({ gasLimit: 21_000n });
			assert.equal(await fixture.boost.result("eth_sendRawTransaction", [tx.raw], SOFT), tx.hash);
			if (isOut) await fixture.goesOut();
			for (const type of [0, 2] as const) {
				const elsewhere = sign({ type, to: address, chainId: 11_155_111n, gasLimit: 21_000n });
				const { json } = await fixture.boost.call("eth_sendRawTransaction", [elsewhere.raw]);
				const { message } = (json as WireAnswer).error ?? {};
				assert.equal(message, "invalid chain id for signer: have 11155111 want 31337");
			}
			const found = (await fixture.boost.result("eth_getTransactionByHash", [tx.hash])) as { hash?: string };
			assert.equal(found.hash, tx.hash);
			await fixture.comesBack();
			await until("it is where it was", async () => (await stage(tx.hash)) === "BROADCAST");
			const cancel = sign({ to: address, gasLimit: 21_000n });
			assert.equal(await fixture.boost.result("eth_sendRawTransaction", [cancel.raw], SOFT), cancel.hash);
			assert.equal(await stage(tx.hash), "CANCELLED");
		});
	}
});

it("/status, polled by a searcher, is the same before, with and after a hidden transaction", async () => {
	const polled = async () => {
		const { json } = await fixture.boost.get("/status");
		return JSON.stringify(json, (key, value) => (key === "nextProbeAt" ? undefined : value));
	};
	const before = await polled();
	const { sign } = await fixture.users.actor();
	const tx = sign();
	await fixture.boost.result("eth_sendRawTransaction", [tx.raw]);
	assert.ok((await fixture.boost.status()).journal.depth > 0, "its operator sees it");
	assert.equal(await polled(), before);
	assert.equal(await fixture.boost.result("eth_cancelTransaction", [tx.hash]), true);
	assert.equal(await polled(), before);
});

describe("a relay that does not believe boost about its clients", () => {
	/** Appends to X-Forwarded-For, and the relay counts on none that does. */
	let proxy: ReturnType<typeof httpProxy.createProxyServer>;
	let port: number;
	before(async () => {
		port = await freePort();
		proxy = httpProxy.createProxyServer({ target: fixture.system.client.url, xfwd: true });
		proxy.listen(port, "127.0.0.1");
	});
	after(() => new Promise<void>((resolve) => proxy.close(resolve)));
	for (const [what, env, words] of [
		[
			"has another BOOST_SECRET",
			() => ({ BOOST_SECRET: "another" }),
			"its BOOST_SECRET differs from boost's",
		],
		[
			"counts other proxies",
			() => ({ RELAY_URL: `http://127.0.0.1:${port}` }),
			"its TRUST_PROXY is not the number of proxies between them",
		],
	] as const) {
		it(`and ${what}: boost is not ready, says so, and no stranger cancels through it`, async () => {
			const why = `the relay does not trust boost's client addresses: ${words}`;
			const boost = await fixture.startBoost({ env: { TRUST_PROXY: "1", ...env() } });
			const ready = await boost.get("/readyz");
			const { checks } = ready.json as { checks: { clients: unknown } };
			assert.deepEqual([ready.status, checks.clients], [503, { ok: false, reason: why }]);

			const { sign } = await fixture.users.actor();
			const [own, direct] = [sign(), sign({ nonce: 1 })];
			const user = { "x-forwarded-for": "198.51.100.1" };
			const stranger = { "x-forwarded-for": "198.51.100.2" };
			assert.equal(await boost.result("eth_sendRawTransaction", [own.raw], { headers: user }), own.hash);
			await fixture.users.submit("/fullprivacy", direct);
			const cancels = [own, direct].map(({ hash }, id) => ({
				...{ jsonrpc: "2.0", id, method: "eth_cancelTransaction", params: [hash] },
			}));
			for (const path of ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"]) {
				const socket = await WsClient.open(`${boost.url}${path}`, { headers: stranger });
				for (const body of [
					...cancels,
					cancels,
					[...cancels, { ...cancels[0], method: "eth_sendRawTransaction" }],
				]) {
					const { body: text } = await boost.post(body, { path, headers: stranger });
					assert.doesNotMatch(text, /"result"/, `${path}: ${text}`);
					socket.send(body);
					assert.doesNotMatch(JSON.stringify(await socket.next()), /"result"/, path);
				}
				socket.terminate();
			}
			for (const tx of [own, direct])
				assert.notEqual(await fixture.system.client.stage(tx.hash), "CANCELLED");
			const { json } = await boost.post(cancels[0], { headers: user });
			const { message } = (json as WireAnswer).error ?? {};
			assert.match(
				message ?? "",
				/^no relay available: the relay does not trust boost/,
				"not even its owner",
			);
			await boost.stop();
		});
	}

	it("though it has their addresses from TRUST_PROXY: boost is not ready, and no bundle is said to be cancelled", async (t) => {
		const folder = mkdtempSync(join(tmpdir(), "leeward-trust-"));
		const settings = { ...fixture.system.env, TRUST_PROXY: "1", DATA_DIR: folder };
		const relay = await startRelayHere(settings);
		t.after(async () => {
			await relay.stop();
			rmSync(folder, { recursive: true });
		});
		const RELAY_URL = `http://127.0.0.1:${relay.port}`;
		const boost = await fixture.startBoost({ env: { RELAY_URL, TRUST_PROXY: "1", BOOST_SECRET: "another" } });
		const { json } = await boost.get("/readyz");
		const { checks } = json as { checks: { clients: { ok: boolean } } };
		assert.equal(checks.clients.ok, false);
		for (const [method, params] of [
			["eth_cancelBundle", [{ replacementUuid: "x" }]],
			["eth_sendBundle", [{ txs: [], replacementUuid: "x" }]],
		] as const) {
			const { error } = (await boost.call(method, params)).json as WireAnswer;
			assert.match(error?.message ?? "", /^bundle not cancelled: the relay does not trust boost/, method);
		}
		await boost.stop();
	});

	it("and then does: boost is ready, and passes on", async () => {
		const { boost } = fixture;
		await until("it is ready", async () => (await boost.get("/readyz")).status === 200);
		const { hash, raw } = (await fixture.users.actor()).sign();
		const sent = await boost.result("eth_sendRawTransaction", [raw], { path: "/fullprivacy" });
		assert.equal(sent, hash);
		assert.equal(await boost.result("eth_cancelTransaction", [hash], { path: "/fullprivacy" }), true);
	});
});

for (const days of [8, -8]) {
	it(`a machine's clock that is ${days} days wrong for a while expires nothing that boost has acknowledged`, async () => {
		let wrongBy = 0;
		const clock: Clock = { ...systemClock, now: () => systemClock.now() + wrongBy };
		const fallback = await startRecordingFallback();
		const boost = await fixture.startBoost({
			clock,
			env: { FALLBACK_URL: fallback.url, TX_TTL_BLOCKS: "25" },
		});
		await fixture.fails(undefined, boost);
		const before = (await fixture.users.actor()).sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [before.raw]), before.hash);
		wrongBy = days * 24 * 3600 * 1000;
		const during = (await fixture.users.actor()).sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [during.raw]), during.hash);
		const pages = () => fallback.posts.filter(({ target }) => target.startsWith("/tx/")).length;
		for (const wrong of [wrongBy, 0]) {
			wrongBy = wrong;
			const seen = pages();
			// Each pass of the observers looks at ages first.
			await until("some passes", () => pages() >= seen + 4);
		}
		assert.equal((await boost.status()).journal.depth, 2);
		await fixture.recovers(boost);
		await fallback.stop();
		for (const tx of [before, during]) await fixture.users.reaches(tx, "BROADCAST");
		await boost.stop();
	});
}
