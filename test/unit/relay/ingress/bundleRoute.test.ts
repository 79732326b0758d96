// `GET /bundle/{hash}` without a server: who sees a bundle, and that everybody else sees what unknown hashes get.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleRecord } from "../../../../relay/domain/bundleStatus.ts";
import { bundleRoute, bundleView } from "../../../../relay/ingress/bundleViews.ts";
import { createBodySigner, verifyBody } from "../../../../shared/ethereum/signatures.ts";
import type { HttpAnswer } from "../../../../shared/http/httpAnswer.ts";
import { ADDRESS } from "./bundleFixture.ts";

const HASH = `0x${"0a".repeat(32)}`;
const OTHER = `0x${"0b".repeat(32)}`;
const signer = createBodySigner(`0x${"11".repeat(32)}`);
const stranger = createBodySigner(`0x${"22".repeat(32)}`);

function recordOf(hash: string): BundleRecord {
	return {
		owner: ADDRESS,
		hash,
		bidder: null,
		target: null,
		receivedAt: 0,
		firstBlock: 1,
		lastBlock: 1,
		blocks: [],
	};
}

/** Two bundles: HASH is of the address, OTHER of the signer. */
async function get(hash: string, headers: Record<string, string> = {}, address = ADDRESS) {
	const owners = new Map([
		[`${ADDRESS} ${HASH}`, recordOf(HASH)],
		[`${signer.address} ${OTHER}`, recordOf(OTHER)],
	]);
	const bundle = (owner: string, wanted: string) => owners.get(`${owner} ${wanted}`) ?? null;
	const bundles = { bundle, standing: () => null };
	const route = bundleRoute({ bundles, verifySignature: verifyBody });
	assert.deepEqual([route.path, route.weight], ["/bundle/{hash}", 1]);
	const query = new URLSearchParams();
	const answer: HttpAnswer = await route.handle({ path: "", params: { hash }, query, headers, address });
	return { status: answer.status, body: JSON.parse(String(answer.body)), answer };
}

const signed = (by: typeof signer, text: string) => ({ "x-flashbots-signature": by.sign(text) });

test("the client that sent it sees it, by its address", async () => {
	const { status, body } = await get(HASH);
	assert.deepEqual([status, body], [200, bundleView(recordOf(HASH), null)]);
});

test("a hash is taken in any case", async () => {
	assert.equal((await get(HASH.toUpperCase())).status, 200);
	assert.equal((await get(OTHER.toUpperCase(), signed(signer, OTHER))).status, 200);
});

test("the client that signed it sees it by its signature, from anywhere", async () => {
	assert.deepEqual(
		(await get(OTHER, signed(signer, OTHER), "198.51.100.7")).body,
		bundleView(recordOf(OTHER), null),
	);
});

test("everybody else gets what unknown hashes get", async () => {
	const unknown = await get(`0x${"0c".repeat(32)}`);
	assert.equal(unknown.status, 404);
	assert.deepEqual(unknown.body, { error: "no bundle of yours with this hash was seen here" });
	for (const strange of [
		await get(HASH, {}, "198.51.100.7"),
		await get(HASH, signed(stranger, HASH)),
		await get(HASH, signed(signer, HASH)),
		await get(HASH, { origin: "https://app.example" }),
		await get(OTHER),
		await get(OTHER, signed(stranger, OTHER)),
	]) {
		assert.deepEqual(strange.answer, unknown.answer);
	}
});

test("what is no hash is refused", async () => {
	for (const text of ["0x", "nope", HASH.slice(2), `${HASH}0a`, HASH.slice(0, -2), `${HASH.slice(0, -1)}g`]) {
		const { status, body } = await get(text);
		assert.deepEqual([status, body.error], [400, "expected a bundle hash of 32 bytes as 0x hex"], text);
	}
});

test("a signature that does not verify is refused, known hash or not", async () => {
	const told = (reason: string) =>
		`X-Flashbots-Signature does not verify: ${reason}: expected a signature over the bundle's hash as lower-case hex`;
	for (const hash of [HASH, OTHER, `0x${"0c".repeat(32)}`]) {
		for (const [header, reason] of [
			["", "malformed"],
			["nope", "malformed"],
			[signer.sign(HASH.toUpperCase()), "mismatch"],
			[signer.sign(""), "mismatch"],
			[`${stranger.address}${signer.sign(hash).slice(42)}`, "mismatch"],
			[`${signer.address}:0x${"00".repeat(65)}`, "invalid"],
		] as const) {
			const { status, body } = await get(hash, { "x-flashbots-signature": header });
			assert.deepEqual([status, body.error], [400, told(reason)]);
		}
	}
});
