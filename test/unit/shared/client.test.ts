// Clients and their limits: the trusted address and its normal form, origins that are web pages,
// rate limits, and the limit of unread bytes.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	addressReader,
	clientHeaders,
	clientOf,
	isOthersPage,
	isWebPage,
	normalAddress,
} from "../../../shared/client.ts";
import { callContext } from "../../../shared/http/callContext.ts";
import { RateLimiter } from "../../../shared/http/rateLimit.ts";
import type { ReceivedCall } from "../../../shared/jsonrpc/envelope.ts";
import { ManualClock } from "../../support/manualClock.ts";

const SECRET = "s3cret";

/**
 * By the number of trusted proxies, X-Forwarded-For and X-Boost-Auth on a connection of 10.0.0.1.
 */
const FORWARDED: readonly (readonly [number, string | undefined, string | undefined, string])[] = [
	[0, undefined, undefined, "10.0.0.1"],
	[0, "1.1.1.1", undefined, "10.0.0.1"],
	[1, "1.1.1.1", undefined, "1.1.1.1"],
	// The last entry, whatever the client wrote before it; with two proxies the last but one.
	[1, "9.9.9.9, 1.1.1.1", undefined, "1.1.1.1"],
	[2, "9.9.9.9,1.1.1.1 , 2.2.2.2", undefined, "1.1.1.1"],
	[2, "1.1.1.1", undefined, "10.0.0.1"],
	[1, undefined, undefined, "10.0.0.1"],
	[1, "unknown", undefined, "10.0.0.1"],
	[1, "1.1.1.1,", undefined, "10.0.0.1"],
	[1, "1.1.1.1:5555", undefined, "1.1.1.1"],
	[1, "2001:DB8::0001", undefined, "2001:db8::1"],
	[1, "[2001:db8::1]:443", undefined, "2001:db8::1"],
	[0, "1.1.1.1", SECRET, "1.1.1.1 vouched"],
	[0, "1.1.1.1", "s3creT", "10.0.0.1"],
	[0, "1.1.1.1", "", "10.0.0.1"],
	// No proxy appended to this list, so the client wrote it.
	[0, "9.9.9.9, 1.1.1.1", SECRET, "10.0.0.1"],
	// Through one proxy, which appended boost's address, and directly.
	[1, "1.1.1.1, 5.5.5.5", SECRET, "1.1.1.1 vouched"],
	[1, "1.1.1.1", SECRET, "1.1.1.1 vouched"],
	[0, "nobody", SECRET, "10.0.0.1"],
	[0, undefined, SECRET, "10.0.0.1"],
];

test("the client's address is taken from a trusted proxy, and from boost if it sends the secret", () => {
	for (const [trustProxy, forwarded, secret, expected] of FORWARDED) {
		const headers = {
			...(forwarded === undefined ? {} : { "x-forwarded-for": forwarded }),
			...(secret === undefined ? {} : { "x-boost-auth": secret }),
		};
		const read = addressReader({ trustProxy, boostSecret: SECRET })(headers, "10.0.0.1");
		const { address, vouched, isProxy } = read;
		assert.equal(`${address}${vouched ? " vouched" : ""}`, expected, `${trustProxy} ${forwarded} ${secret}`);
		const isUnbelieved = forwarded !== undefined && address === "10.0.0.1";
		assert.equal(isProxy, isUnbelieved ? true : undefined, `${trustProxy} ${forwarded} ${secret}: a proxy's`);
	}
});

const CROSS = { "sec-fetch-site": "cross-site" };

/** Headers of a request to this host, and whether another's web page sends it. */
const PAGES: readonly (readonly [boolean, string, Readonly<Record<string, string>>])[] = [
	[false, "relay.example", {}],
	[true, "relay.example", { origin: "https://app.example" }],
	[true, "relay.example", { origin: "HTTP://APP.EXAMPLE" }],
	[true, "relay.example", { origin: "null" }],
	[true, "relay.example", { origin: "https://relay.example.evil.example" }],
	[true, "relay.example", { origin: "https://relay.example:8443" }],
	[true, "relay.example", { origin: "https://" }],
	[true, "relay.example", { origin: "https://a.example, https://relay.example" }],
	[true, "relay.example", { origin: "https://evil.example@relay.example" }],
	[false, "relay.example", { origin: "https://relay.example" }],
	[false, "Relay.Example", { origin: "https://relay.example" }],
	[false, "relay.example", { origin: "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn" }],
	[false, "relay.example", { origin: "moz-extension://0" }],
	[false, "relay.example", { origin: "capacitor://localhost" }],
	// Over http a page may have pointed its own name to the relay's address (DNS rebinding).
	[true, "evil.example:8080", { origin: "http://evil.example:8080" }],
	[true, "localhost.evil.example", { origin: "http://localhost.evil.example" }],
	[false, "127.0.0.1:8080", { origin: "http://127.0.0.1:8080" }],
	[true, "127.0.0.1:8080", { origin: "http://127.0.0.1:8081" }],
	[false, "[::1]:8080", { origin: "http://[::1]:8080" }],
	[false, "localhost:8080", { origin: "http://localhost:8080" }],
	[true, "localhost:8080", { origin: "http://127.0.0.1:8080" }],
	// Without an origin: images, links, and reads whose answer the page does not get.
	[true, "relay.example", CROSS],
	[true, "relay.example", { "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" }],
	[true, "relay.example", { ...CROSS, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" }],
	[false, "relay.example", { ...CROSS, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }],
	[false, "relay.example", { "sec-fetch-site": "same-origin" }],
	[false, "relay.example", { "sec-fetch-site": "none" }],
	[false, "relay.example", { ...CROSS, origin: "chrome-extension://0" }],
];

test("recognises another site's web page by the headers that browsers send", () => {
	for (const [expected, host, headers] of PAGES)
		assert.equal(isOthersPage({ host, ...headers }), expected, `${host} ${JSON.stringify(headers)}`);
});

test("the web pages at an address are one client beside it, and boost tells the relay so", () => {
	const read = addressReader({ trustProxy: 1, boostSecret: SECRET });
	const page = { host: "relay.example", origin: "https://app.example" };
	for (const [address, network] of [
		["1.1.1.1", "1.1.1.1"],
		["2001:db8::1", "2001:db8:0:0::/56"],
	] as const) {
		const wallet = read({ "x-forwarded-for": address }, "10.0.0.1").address;
		const pages = read({ "x-forwarded-for": address, ...page }, "10.0.0.1").address;
		assert.deepEqual([wallet, pages], [address, `web ${address}`]);
		assert.deepEqual([clientOf(wallet), clientOf(pages)], [network, `web ${network}`]);
		for (const client of [network, `web ${network}`]) assert.equal(clientOf(client), client);
		for (const one of [wallet, pages]) {
			const vouched = { ...clientHeaders(one), "x-boost-auth": SECRET };
			// Boost has judged by the host that the page was asked for; here it is another.
			for (const headers of [vouched, { ...vouched, ...page }])
				assert.equal(read(headers, "10.0.0.1").address, one);
			const { address: unbelieved } = read({ ...clientHeaders(one), host: "relay.example" }, "10.0.0.1");
			assert.equal(unbelieved, address, "the word of somebody without the secret");
		}
	}
	assert.equal(read(page, undefined).address, "unknown");
});

test("if no secret is set, no sender can vouch", () => {
	for (const boostSecret of [undefined, ""]) {
		const read = addressReader({ trustProxy: 0, ...(boostSecret === undefined ? {} : { boostSecret }) });
		const headers = { "x-forwarded-for": "1.1.1.1", "x-boost-auth": "" };
		const direct = { address: "10.0.0.1", vouched: false, isProxy: true };
		assert.deepEqual(read(headers, "10.0.0.1"), { ...direct, unbelieved: "BOOST_SECRET" });
	}
});

test("addresses have one normal form", () => {
	const rows: [string, string | undefined][] = [
		["1.2.3.4", "1.2.3.4"],
		[" 1.2.3.4 ", "1.2.3.4"],
		["::FFFF:1.2.3.4", "1.2.3.4"],
		["fe80::1%eth0", "fe80::1"],
		["::ffff:102:304", "1.2.3.4"],
		["0:0:0:0:0:ffff:0102:0304", "1.2.3.4"],
		["64:ff9b::192.0.2.33", "192.0.2.33"],
		["64:FF9B::c000:221", "192.0.2.33"],
		["[64:ff9b::c000:221]:443", "192.0.2.33"],
		["64:ff9b::c000:0", "192.0.0.0"],
		["64:ff9b::1", "0.0.0.1"],
		["64:ff9b::", "0.0.0.0"],
		["64:ff9b:1::c000:221", "64:ff9b:1::c000:221"],
		["64:ff9b::1:c000:221", "64:ff9b::1:c000:221"],
		["2001:0DB8:0:0:0:0:0:1", "2001:db8::1"],
		["[::1]", "::1"],
		["::", "::"],
		["1.2.3", undefined],
		["1.2.3.256", undefined],
		["01.2.3.4", undefined],
		["", undefined],
		["localhost", undefined],
		["[1.2.3.4", undefined],
		["1.2.3.4:x", undefined],
		["2001:db8::1::", undefined],
	];
	for (const [given, made] of rows) assert.equal(normalAddress(given), made, given);
});

test("a client is an IPv4 address or an IPv6 /56 network", () => {
	const rows: [string, string][] = [
		["1.2.3.4", "1.2.3.4"],
		["unknown", "unknown"],
		["2001:db8:1:2:3:4:5:6", "2001:db8:1:0::/56"],
		["2001:db8:1:2ff::6", "2001:db8:1:200::/56"],
		["2001:db8::6", "2001:db8:0:0::/56"],
		["2001:db8:0:ff:1::", "2001:db8:0:0::/56"],
		["::1", "0:0:0:0::/56"],
		["::", "0:0:0:0::/56"],
		["1::", "1:0:0:0::/56"],
	];
	for (const [address, network] of rows) assert.equal(clientOf(address), network);
});

test("distinguishes origins of web pages from those of extensions and wallets", () => {
	const rows: [string | null, boolean][] = [
		[null, false],
		["", false],
		["https://app.example", true],
		["http://localhost:3000", true],
		["HTTPS://APP.EXAMPLE", true],
		[" https://app.example", true],
		["null", true],
		["null ", true],
		["nullx", false],
		["httpsx://a", false],
		["chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn", false],
		["moz-extension://0-1", false],
	];
	for (const [origin, is] of rows) assert.equal(isWebPage(origin), is, String(origin));
});

function limited(rps = 100, maxClients = 1_000) {
	const clock = new ManualClock();
	const limiter = new RateLimiter(
		{ rps, maxClients },
		{ clock, freePoll: (method, params) => (method === "poll" ? String(params[0]) : undefined) },
	);
	/** How many calls of `weight` are allowed now. */
	const passing = (address: string, weight = 1): number => {
		let count = 0;
		while (count < 50_000 && limiter.takeFrom({ address }, weight) === 0) count++;
		return count;
	};
	const take = (address: string, method: string, params: readonly unknown[] | null): number => {
		const context = callContext(
			{ path: "/", search: "" },
			{ address, signer: null, vouched: false },
			null,
			null,
		);
		const call: ReceivedCall = { id: 1, isStrict: true, method, params, paramsSize: 0, fault: null };
		return limiter.take(context, call, 1);
	};
	return { clock, limiter, passing, take };
}

test("a client may use ten seconds' worth at once, then the rate per second", async () => {
	const { clock, limiter, passing } = limited();
	assert.equal(passing("a"), 1_000);
	assert.equal(passing("a"), 0);
	// A refused call costs nothing.
	for (let i = 0; i < 100; i++) limiter.takeFrom({ address: "a" }, 1);
	await clock.advance(1_000);
	assert.equal(passing("a", 10), 10, "weights count");
	await clock.advance(50);
	assert.equal(passing("a"), 5);
	await clock.advance(3_600_000);
	assert.equal(passing("a"), 1_000, "a bucket holds ten seconds' worth at most");
});

test("each client has its own bucket, and an IPv6 network is one client", () => {
	const { passing } = limited();
	for (const address of ["192.0.2.1", "192.0.2.2", "2001:db8::1"]) assert.equal(passing(address), 1_000);
	assert.equal(passing("2001:db8:0:ff::1"), 0);
});

test("a call that weighs more than a full bucket is allowed when it is full, and the debt is paid off before the next", async () => {
	const { clock, limiter, passing } = limited(1);
	const client = { address: "a" };
	assert.equal(limiter.takeFrom(client, 25), 0);
	assert.equal(limiter.takeFrom(client, 1), 16_000);
	await clock.advance(16_000);
	assert.equal(passing("a"), 1);
});

const KIB_16 = 16 * 1024;

test("a body weighs at least one for each 16 KiB, of which its calls take theirs", () => {
	const { limiter, passing } = limited(10);
	const sends = (address: string, bytes: number, calls: number) => {
		const client = { address, signer: null, vouched: false };
		const life = { bytes, onGone() {} };
		const context = callContext({ path: "/", search: "" }, client, null, null, null, life);
		const answer = limiter.takeBody(client, Buffer.alloc(bytes, " "), life);
		if (answer !== null) return answer.retryMs;
		return Array.from({ length: calls }, () => limiter.take(context, null, 1)).filter((wait) => wait > 0)
			.length;
	};
	assert.equal(sends("a", KIB_16 - 1, 0), 0);
	assert.equal(passing("a"), 100);
	assert.equal(sends("b", 2 * 1024 * 1024 - 1, 0), 0, "more than a full bucket");
	assert.equal(passing("b"), 0);
	assert.equal(sends("c", 40 * KIB_16, 0), 0);
	assert.equal(sends("c", 80 * KIB_16, 0), 2_000, "the rest of the bucket is too little");
	assert.equal(passing("c"), 60);
	assert.equal(sends("d", 40 * KIB_16, 100), 0, "a hundred calls of a fresh client, whatever their size");
	assert.equal(passing("d"), 0);
	assert.equal(sends("e", 40 * KIB_16, 30), 0);
	assert.equal(passing("e"), 60, "a body's weight is taken also where its calls weigh less");
});

test("a body that is refused for its size is answered with the ids of its calls", () => {
	const { limiter } = limited(10);
	const client = { address: "a" };
	const pad = " ".repeat(100 * KIB_16);
	const refused = (body: string) => {
		const bytes = Buffer.from(body);
		const { status, text } = limiter.takeBody(client, bytes, { bytes: bytes.length, onGone() {} }) ?? {};
		assert.equal(status, 429);
		return String(text ?? "").replace(
			/,"error":\{"code":-32005,"message":"limit exceeded: try again in 10 s"\}/g,
			"",
		);
	};
	assert.equal(limiter.takeBody(client, Buffer.alloc(100 * KIB_16), { bytes: 0, onGone() {} }), null);
	const rows = [
		[`{"method":"m","id":12345678901234567890${pad}}`, '{"jsonrpc":"2.0","id":12345678901234567890}'],
		[`{"id":"é","params":["${pad}"],"method":"m"}`, '{"jsonrpc":"2.0","id":"é"}'],
		[`{"method":"m"}${pad}`, '{"jsonrpc":"2.0","id":null}'],
		[`{"id":1${pad}`, '{"jsonrpc":"2.0","id":null}'],
		[`{"id":1x}${pad}`, '{"jsonrpc":"2.0","id":null}'],
		[`{"id":"${"x".repeat(500_000)}"}${pad}`, '{"jsonrpc":"2.0","id":null}'],
		[`[{"id":1},{"id":null},{"method":"m"},{"id":1.0}]${pad}`, "[1,null,1.0]"],
		[`[${"0,".repeat(2_000)}{"id":1}]${pad}`, '{"jsonrpc":"2.0","id":null}'],
	] as const;
	for (const [body, ids] of rows) {
		const text = refused(body);
		const short = text.startsWith("[") ? text.replace(/\{"jsonrpc":"2.0","id":([^}]*)\}/g, "$1") : text;
		assert.equal(short, ids, body.slice(0, 60));
	}
});

test("a poll is free once a second, for each object and client", async () => {
	const { clock, passing, take } = limited();
	passing("a");
	assert.equal(take("a", "poll", ["x"]), 0);
	assert.notEqual(take("a", "poll", ["x"]), 0, "twice within a second");
	assert.equal(take("a", "poll", ["y"]), 0, "another object");
	passing("b");
	assert.equal(take("b", "poll", ["x"]), 0, "another client");
	assert.notEqual(take("a", "other", ["x"]), 0);
	assert.notEqual(take("a", "poll", null), 0, "no parameters");
	passing("a");
	await clock.advance(999);
	passing("a");
	assert.notEqual(take("a", "poll", ["x"]), 0);
	await clock.advance(1);
	assert.equal(take("a", "poll", ["x"]), 0);
});
