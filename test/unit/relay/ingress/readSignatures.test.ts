// The header of live reads: whom it opens them to, and what each refusal says was expected.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Wallet } from "ethers";
import { readVerifier } from "../../../../relay/ingress/readSignatures.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { type ReadOptions, readHeader } from "../../../support/typedSignatures.ts";

const KEY = `0x${"a1".repeat(32)}`;
const { address } = new Wallet(KEY);
const SIGNER = address.toLowerCase();
const NAME = "relay.example:8443";
const clock = new ManualClock();
const NOW = Math.floor(clock.now() / 1_000);
const DAY = 24 * 3_600;

function verifier(name: string | null) {
	return readVerifier({ chainId: 1n, name, clock });
}

const signed = (options: ReadOptions = {}) =>
	readHeader(KEY, { relay: NAME, chainId: 1, until: NOW + 60, ...options });

const expected = (relay: string, until: number, scope = "bundles") =>
	`expected a signature by ${SIGNER} over Read(relay "${relay}", scope "${scope}", until ${until}) on chain 1`;
const FORM = "expected address=0x…, relay=<name>, until=<seconds since 1970>, signature=0x…";
const LOOPBACK =
	"relay: expected localhost, 127.0.0.1 or [::1], since this relay has no name: its operator has to set PUBLIC_URL";

test("a key opens its own reads, in any case of hex, up to the second that it names", async () => {
	const verify = verifier(NAME);
	for (const until of [NOW, NOW + 60, NOW + DAY])
		assert.deepEqual(verify(await signed({ until }), "bundles"), { signer: SIGNER });
	assert.deepEqual(verify(await signed({ scope: "refunds" }), "refunds"), { signer: SIGNER });
	const header = await signed();
	assert.deepEqual(verify(header.replaceAll(", ", ","), "bundles"), { signer: SIGNER });
	const shouted = header.replace(address, `0x${address.slice(2).toUpperCase()}`);
	assert.deepEqual(verify(shouted, "bundles"), { signer: SIGNER });
});

test("a relay without a name accepts those of its machine, with any port", async () => {
	for (const relay of ["localhost", "127.0.0.1", "[::1]", "localhost:8080", "127.0.0.1:1", "[::1]:65535"])
		assert.deepEqual(verifier(null)(await signed({ relay }), "bundles"), { signer: SIGNER }, relay);
	for (const relay of [
		"relay.example",
		"127.0.0.1.example",
		"127.0.0.2",
		"localhost.",
		"::1",
		"localhost:",
	]) {
		const told = verifier(null)(await signed({ relay }), "bundles");
		assert.deepEqual(told, { error: `X-Leeward-Signature: ${LOOPBACK}` }, relay);
	}
});

test("anything else is refused with what was expected", async () => {
	const good = await signed();
	const [from = "", relay = "", until = "", signature = ""] = good.split(", ");
	const other = new Wallet(`0x${"b2".repeat(32)}`).address;
	const rows: readonly (readonly [string, string])[] = [
		["", FORM],
		[address, FORM],
		[`${address}:${signature.slice("signature=".length)}`, FORM],
		[`${good}, ${good}`, FORM],
		[`${good}00`, FORM],
		[[relay, from, until, signature].join(", "), FORM],
		[[from, relay, "until=tomorrow", signature].join(", "), FORM],
		[[from, relay, "until=-1", signature].join(", "), FORM],
		[await signed({ relay: "other.example" }), `relay: expected ${NAME}`],
		[await signed({ relay: "localhost" }), `relay: expected ${NAME}`],
		[await signed({ relay: NAME.toUpperCase() }), `relay: expected ${NAME}`],
		[await signed({ until: NOW - 1 }), `until: expired, it is ${NOW} here`],
		[
			await signed({ until: NOW + DAY + 1 }),
			`until: expected at most ${DAY} seconds from now, it is ${NOW} here`,
		],
		[await signed({ scope: "refunds" }), expected(NAME, NOW + 60)],
		[await signed({ chainId: 5 }), expected(NAME, NOW + 60)],
		[[from, relay, `until=${NOW + 61}`, signature].join(", "), expected(NAME, NOW + 61)],
		[[from, relay, until, `signature=0x${"00".repeat(65)}`].join(", "), expected(NAME, NOW + 60)],
		[
			[`address=${other}`, relay, until, signature].join(", "),
			expected(NAME, NOW + 60).replace(SIGNER, other.toLowerCase()),
		],
	];
	for (const [header, error] of rows) {
		const told = verifier(NAME)(header, "bundles");
		assert.deepEqual(told, { error: `X-Leeward-Signature: ${error}` }, header);
	}
});
