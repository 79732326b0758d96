// Contract of every fallback dialect, and the specification's table of dialects row by row: dropped
// parameters are not sent, revert protection is never lost unless the operator vouches for it, and
// no query makes a dialect throw.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { dialectOf } from "../../boost-proxy/dialects/dialects.ts";
import { DIALECTS, type Dialect, type DialectName } from "../../boost-proxy/domain/ports.ts";
import { BOOST_PATHS } from "../../boost-proxy/domain/request.ts";
import { createTransportSet } from "../../boost-proxy/upstreams.ts";
import { systemClock } from "../../shared/clock.ts";
import { httpText, RawUpstream } from "../support/upstreams.ts";

const A = `0x${"a1".repeat(20)}`;
const HASH = `0x${"ab".repeat(32)}`;
/**
 * Those whose two treatments differ by themselves; for the others the operator has to vouch for
 * revert protection.
 */
const PROTECTS: Readonly<Record<DialectName, boolean>> = { mevblocker: true, flashbots: true, plain: false };

const GARBAGE = [
	"&&==&",
	"a=%zz&%=%&%80=1",
	"refundRecipient=%zz&referrer=%",
	`refundRecipient=${A}&refundRecipient=${A.replace("a", "b")}`,
	"refundRecipient=0x1",
	`refundRecipient=${A}:50%26refund%3D0xb0b:99`,
	"referrer=&referrer=x&referrer=y",
	"a[]=1&a[]=2&__proto__=x&constructor=y",
	`x=${"y".repeat(10_000)}`,
	`${"n".repeat(10_000)}=1`,
	Array.from({ length: 1_000 }, (_, i) => `p${i}=${i}`).join("&"),
	"referrer=\ud800&\udfff=1",
	"na%0D%0Ax-injected: 1=v&a,b=c",
	"#part",
	"?again=1",
];

for (const name of DIALECTS) {
	const dialect = dialectOf(name);

	test(`${name}: the two treatments differ, or /noreverts needs the operator's word`, () => {
		const targets = BOOST_PATHS.map((path) => dialect.target(path, "").target);
		assert.equal(new Set(targets).size === 2, PROTECTS[name]);
	});

	test(`${name}: a query of any kind neither throws nor gets out of its place`, () => {
		for (const search of GARBAGE) holds(dialect, search);
		const anything = fc.oneof(fc.string({ unit: "binary" }), fc.webQueryParameters(), fc.string());
		fc.assert(fc.property(anything, (search) => holds(dialect, search)));
	});

	test(`${name}: dropped parameters are not sent, and are reported`, () => {
		const search = `dropme1=x&softCancellations=true&refundRecipient=${A}&dropme2=%79&referrer=me`;
		for (const path of BOOST_PATHS) {
			const { target, dropped } = dialect.target(path, search);
			for (const one of dropped) assert.ok(!target.includes(one), `${one} in ${target}`);
			for (const one of ["dropme1", "softCancellations", "refundRecipient", "dropme2", "referrer"]) {
				const isKept = target.includes(one === "refundRecipient" ? A : one === "referrer" ? "me" : one);
				assert.equal(isKept, !dropped.includes(one), `${one} of ${target}`);
			}
		}
	});

	test(`${name}: its own words are verdicts, no others`, () => {
		for (const words of ["internal error", "internal server error", "", "x".repeat(1_000_000)]) {
			assert.equal(dialect.isVerdict(words), false, words.slice(0, 30));
		}
		assert.equal(dialect.isVerdict("invalid nonce"), name === "flashbots");
	});
}

function holds(dialect: Dialect, search: string): void {
	for (const path of BOOST_PATHS) {
		const { target, dropped } = dialect.target(path, search);
		assert.match(target, /^($|\/|\?)/, "behind the address");
		assert.ok(target.startsWith(dialect.target(path, "").target), "the path does not depend on the query");
		for (const name of dropped) assert.match(name, /^[\w.!~*'()%-]*$/, "a header can carry it");
		assert.ok(dropped.join(", ").length < 16 * 1024, "and would");
		assert.equal(new Set(dropped).size, dropped.length);
	}
}

const QUERY = `refundRecipient=${A}&referrer=m%26e&softcancel=1`;
/**
 * The dialects' targets for `QUERY` on `/fast` and on `/noreverts`, and the parameters that they
 * drop.
 */
const TARGETS: Readonly<Record<DialectName, readonly [string, string, readonly string[]]>> = {
	mevblocker: [`/fast?${QUERY}`, `/noreverts?${QUERY}`, []],
	flashbots: [
		`/fast?refund=${encodeURIComponent(`${A}:90`)}&originId=m%26e`,
		`/?refund=${encodeURIComponent(`${A}:90`)}&originId=m%26e`,
		["softcancel"],
	],
	plain: ["", "", ["refundRecipient", "referrer", "softcancel"]],
};

test("paths and queries are those of the table", () => {
	for (const name of DIALECTS) {
		const dialect = dialectOf(name);
		const [fast, noreverts, dropped] = TARGETS[name];
		assert.deepEqual(dialect.target("fast", QUERY), { target: fast, dropped });
		assert.deepEqual(dialect.target("noreverts", QUERY), { target: noreverts, dropped });
	}
	assert.deepEqual(dialectOf("flashbots").target("noreverts", ""), { target: "/", dropped: [] });
	// As it came: what looks the same is not always the same to the other side.
	const odd = "a=%zz&&b=%41&b=+&referrer=%6de";
	assert.deepEqual(dialectOf("mevblocker").target("fast", odd), { target: `/fast?${odd}`, dropped: [] });
});

test("a refund goes to an address or nowhere, and nothing rides on it", () => {
	const { target, dropped } = dialectOf("flashbots").target("fast", `refundRecipient=${A}%26builder%3Dx`);
	assert.deepEqual([target, dropped], ["/fast", ["refundRecipient"]]);
	const other = dialectOf("flashbots").target("fast", "refund=0xb0b:99&canRevert=true&useMempool=true");
	assert.deepEqual([other.target, other.dropped], ["/fast?hint=hash", ["refund", "canRevert", "useMempool"]]);
});

const SHOWN = "the fallback may show it to searchers";
const PERCENT = "the fallback refunds 90 percent";
const BLOCKS = "the fallback may keep it for another number of blocks";
const ELSEWHERE = "the fallback may send it to other builders";
/**
 * Queries with Flashbots' parameters: what each dialect makes of them on `/noreverts`, or why it
 * may not have them.
 */
const FLASHBOTS: readonly (readonly [string, Readonly<Record<DialectName, string>>])[] = [
	["hint=hash", { mevblocker: SHOWN, flashbots: "/?hint=hash", plain: SHOWN }],
	["originId=w", { mevblocker: SHOWN, flashbots: "/?originId=w&hint=hash", plain: SHOWN }],
	[
		"HINT=calldata&hint=logs",
		{ mevblocker: "/noreverts", flashbots: "/?hint=calldata&hint=logs", plain: "" },
	],
	[
		`hint=calldata&refund=${A}:90`,
		{
			mevblocker: `/noreverts?refundRecipient=${A}`,
			flashbots: `/?hint=calldata&refund=${encodeURIComponent(`${A}:90`)}`,
			plain: "",
		},
	],
	[
		"hint=calldata&builder=a&builder=b",
		{ mevblocker: ELSEWHERE, flashbots: "/?hint=calldata&builder=a&builder=b", plain: ELSEWHERE },
	],
	[
		`hint=calldata&refund=${A}:50`,
		{
			mevblocker: PERCENT,
			flashbots: `/?hint=calldata&refund=${encodeURIComponent(`${A}:50`)}`,
			plain: PERCENT,
		},
	],
	[
		"hint=calldata&blockRange=5",
		{ mevblocker: BLOCKS, flashbots: "/?hint=calldata&blockRange=5", plain: BLOCKS },
	],
	["hint=unread", { mevblocker: SHOWN, flashbots: "/?hint=unread", plain: SHOWN }],
];

test("Flashbots' parameters keep their meaning at a fallback, or it may not have the transaction", () => {
	for (const [search, expected] of FLASHBOTS) {
		for (const name of DIALECTS) {
			const dialect = dialectOf(name);
			const route = { path: "noreverts", search } as const;
			const made = dialect.whyUnfit(route) ?? dialect.target("noreverts", search).target;
			assert.equal(made, expected[name], `${name} ${search}`);
			// There Flashbots shows all to searchers in TEEs, and sends to all builders.
			const onFast = dialect.whyUnfit({ ...route, path: "fast" });
			const unfit = dialectOf("plain").whyUnfit(route);
			assert.equal(onFast, unfit, `${name} ${search} on /fast`);
		}
	}
});

/**
 * Whether it takes batches, the cancel by hash, whether a self-transfer cancels, whether it knows
 * private transactions and takes nonce gaps; the path of a status page on its own base, and where
 * pages have a URL of their own.
 */
const ROWS: Readonly<Record<DialectName, readonly (boolean | string | null)[]>> = {
	mevblocker: [true, "eth_cancelTransaction", true, true, true, `/tx/${HASH}`, `/${HASH}`],
	flashbots: [false, null, true, false, false, null, `/${HASH}`],
	plain: [false, null, false, false, true, null, null],
};

test("the other rows of the table", () => {
	for (const name of DIALECTS) {
		const one = dialectOf(name);
		const own = dialectOf(name, { hasStatusUrl: true }).statusPath(HASH);
		const { batches, cancelMethod, softCancels, knowsPrivate, acceptsNonceGaps } = one;
		const row = [
			batches,
			cancelMethod,
			softCancels,
			knowsPrivate,
			acceptsNonceGaps,
			one.statusPath(HASH),
			own,
		];
		assert.deepEqual(row, ROWS[name], name);
	}
});

test("what Protect says of a transaction under -32603 is a verdict, what it says of itself is not", () => {
	const { isVerdict } = dialectOf("flashbots");
	const verdicts = [
		"invalid nonce",
		"Invalid nonce",
		"nonce too low",
		"invalid target for large tx",
		"relay error: tx was already cancelled",
		"tx has already expired",
		"tx not found",
		"insufficient funds for gas * price + value",
	];
	for (const words of verdicts) assert.ok(isVerdict(words), words);
	for (const words of ["redis: tx not found", "invalid nonces", "no invalid nonce"]) {
		assert.equal(isVerdict(words), false, words);
	}
});

test("a base gets paths, a whole address keeps its own, statuses have theirs: seen on the wire", async () => {
	const upstream = await RawUpstream.start(({ socket }) => void socket.write(httpText("{}")));
	const addresses = {
		dialect: "flashbots",
		baseUrl: `${upstream.url}/base`,
		wholeUrls: { fast: `${upstream.url}/mine?key=k`, noreverts: null },
		statusUrl: `${upstream.url}/status/`,
	} as const;
	const { dialect, transports, statusTransport, close } = createTransportSet(addresses, {
		clock: systemClock,
	});
	for (const path of BOOST_PATHS) {
		const { transport, asIs } = transports[path];
		const { target } = dialect.target(path, "referrer=me");
		const query = target.slice(target.indexOf("?"));
		await transport.post({ target: asIs ? query : target, body: "{}", headers: {}, deadlineMs: 10_000 });
	}
	await statusTransport?.get(dialect.statusPath(HASH) ?? "", 10_000);
	const lines = upstream.requests.map((request) => request.split(" HTTP/")[0]);
	assert.deepEqual(lines, ["POST /mine?key=k&originId=me", "POST /base?originId=me", `GET /status/${HASH}`]);
	await close();
	await upstream.close();
});

test("without a base the other path's address serves reads; statuses are returned where something is known", async () => {
	const one = { dialect: "mevblocker", baseUrl: null, statusUrl: null } as const;
	const whole = { fast: null, noreverts: "http://127.0.0.1:1/only" };
	const alone = createTransportSet({ ...one, wholeUrls: whole }, { clock: systemClock });
	assert.equal(alone.transports.fast.transport, alone.transports.noreverts.transport);
	assert.deepEqual([alone.transports.fast.asIs, alone.statusTransport], [true, null]);
	await alone.close();
	const wholeUrls = { fast: null, noreverts: null };
	const hosts = [
		["https://rpc.flashbots.net", `/${HASH}`],
		["https://rpc.flashbots.net.example", null],
	] as const;
	for (const [baseUrl, path] of hosts) {
		const addresses = { dialect: "flashbots", baseUrl, wholeUrls, statusUrl: null } as const;
		const transports = createTransportSet(addresses, { clock: systemClock });
		assert.equal(transports.dialect.statusPath(HASH), path, baseUrl);
		await transports.close();
	}
	assert.throws(() => createTransportSet({ ...one, wholeUrls }, { clock: systemClock }), TypeError);
});
