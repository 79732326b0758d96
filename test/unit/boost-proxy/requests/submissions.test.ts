// Submissions by the answer of each upstream: which is asked next, what the client gets, and what
// the journal keeps.

import assert from "node:assert/strict";
import type { Ending } from "../../../../boost-proxy/domain/row.ts";
import { nextTurn } from "../../../../shared/clock.ts";
import { ForeignRpcError } from "../../../../shared/jsonrpc/errors.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { refusal, type Said } from "../wire.ts";
import {
	ACKNOWLEDGED,
	BROKEN_OFF,
	hanging,
	INTERNAL,
	REFUSED,
	type RequestFixture,
	scenario,
} from "./requestFixture.ts";

const tx = (nonce: number, value = 0n, index = 0) =>
	signedTransaction({ nonce: BigInt(nonce), value, by: testAccount(index) });
const ONE = tx(0);
const REPLACING = tx(0, 1n);

/**
 * The relay's answer, and the upstreams that may have it when the fallback, if asked, has
 * acknowledged it.
 */
const AFTER: readonly (readonly [string, Said | "out" | "cut off" | "cut off unsent", readonly string[]])[] =
	[
		["acknowledges", ACKNOWLEDGED, ["relay"]],
		["refuses the connection", REFUSED, ["fallback"]],
		["is down", "out", ["fallback"]],
		["hangs", "hangs", ["relay", "fallback"]],
		["breaks off", BROKEN_OFF, ["relay", "fallback"]],
		["is cut off midway", "cut off", ["relay", "fallback"]],
		["is cut off before a byte has left", "cut off unsent", ["fallback"]],
		["says 502", { http: "502 Bad Gateway" }, ["relay", "fallback"]],
		["says -32603, which keeps nothing", INTERNAL, ["fallback"]],
		[
			"says that its pool is full for everybody",
			{ error: { code: -32000, message: "txpool is full", data: { scope: "pool" } } },
			["fallback"],
		],
	];
/** The relay's breaker opens while it has the request, or before a byte of it has left. */
async function cutOff(relay: RequestFixture["relay"], isSent: boolean): Promise<Said> {
	while (isSent && !relay.hasAny) await nextTurn();
	relay.isUnavailable = true;
	return "hangs";
}

for (const [name, delivery, holders] of AFTER) {
	scenario(`the relay ${name}: ${holders.join(" and ")} may have it`, async (fixture) => {
		const { submissions, journal, relay, fallback, request, clock } = fixture;
		if (delivery === "out") relay.isUnavailable = true;
		else if (delivery === "cut off" || delivery === "cut off unsent") {
			relay.deliveries = [() => cutOff(relay, delivery === "cut off")];
		} else relay.deliveries = [delivery];
		const state = request({ search: "referrer=a" });
		const submitted = submissions.submit(ONE.raw, state);
		if (delivery === "hangs") await clock.advance(5_000);
		assert.equal((await submitted).cancels, false);
		const { holders: found, acknowledged, inProgress } = journal.get(ONE.hash) ?? {};
		assert.deepEqual([found, acknowledged, inProgress], [holders, true, false]);
		const by = delivery === ACKNOWLEDGED ? relay : fallback;
		assert.equal(by.sent[0]?.target, "/fast?referrer=a");
		assert.deepEqual(fallback.hashes, by === relay ? [] : [ONE.hash]);
		assert.deepEqual([...state.routing.answeredBy], [by.name]);
	});
}

scenario("a verdict is returned unchanged, no other upstream is asked, nothing is kept", async (fixture) => {
	const { submissions, journal, relay, fallback, request, disk } = fixture;
	// With HTTP 429 for its full share of the relay's pool a client would retry by itself.
	const data = { reason: "CLIENT_FULL", scope: "client" };
	for (const error of [
		{ code: -32000, message: "nonce too low: next nonce 5, tx nonce 0" },
		{ code: -32005, message: "too many pending transactions from this client", data },
	]) {
		relay.deliveries = [{ error }];
		await assert.rejects(submissions.submit(ONE.raw, request()), (thrown: ForeignRpcError) => {
			assert.ok(thrown instanceof ForeignRpcError, "not as it came");
			const { code, message } = thrown;
			assert.deepEqual({ code, message, ...(thrown.data === undefined ? {} : { data: thrown.data }) }, error);
			return true;
		});
		const onDisk = [...disk.map.keys()].filter((key) => key.includes(ONE.hash));
		assert.deepEqual([fallback.sent.length, journal.depth, onDisk], [0, 0, []]);
	}
});

scenario(
	"after no verdict of the relay and one of the fallback, the relay's copy is observed",
	async (fixture) => {
		const { submissions, journal, relay, fallback, request } = fixture;
		relay.deliveries = [BROKEN_OFF, ACKNOWLEDGED];
		fallback.deliveries = [refusal("insufficient funds")];
		await assert.rejects(submissions.submit(ONE.raw, request()), /insufficient funds/);
		const row = journal.get(ONE.hash);
		assert.deepEqual([row?.holders, row?.acknowledged], [["relay"], false], "and handed to nobody");
		await submissions.submit(ONE.raw, request());
		assert.equal(journal.get(ONE.hash)?.acknowledged, true, "acknowledged when it is sent again");
	},
);

const NO_REVERTS = "the fallback does not protect from reverts";
/** The situation, and the client's answer. */
const NOBODY: readonly (readonly [string, { code: number; message: string; kind?: string }])[] = [
	["both out", { kind: "unavailable", code: -32603, message: "the relay and the fallback are down" }],
	[
		"no time",
		{
			kind: "unavailable",
			code: -32603,
			message: "neither the relay nor the fallback accepted or rejected it",
		},
	],
	["not for the fallback", { kind: "unavailable", code: -32603, message: NO_REVERTS }],
	["an internal error", { code: -32603, message: "internal error" }],
];
for (const [name, { message, ...expected }] of NOBODY) {
	scenario(
		`no upstream accepts it, ${name}: the reason is returned, and nothing is kept`,
		async (fixture) => {
			const { submissions, journal, relay, fallback, request, unfitPaths } = fixture;
			relay.isUnavailable = name === "both out" || name === "not for the fallback";
			fallback.isUnavailable = name === "both out" || name === "an internal error";
			unfitPaths.noreverts = NO_REVERTS;
			relay.deliveries = [INTERNAL];
			const state = request({
				...(name === "no time" ? { until: 0 } : {}),
				path: name === "not for the fallback" ? "noreverts" : "fast",
			});
			const why = "kind" in expected ? `no relay available: ${message}` : message;
			await assert.rejects(submissions.submit(ONE.raw, state), { ...expected, message: why });
			assert.deepEqual([fallback.sent.length, journal.get(ONE.hash)], [0, null]);
		},
	);
}

scenario(
	"refuses a client whose share of the journal is full before any upstream has it, and accepts others",
	async ({ submissions, journal, relay, fallback, request }) => {
		// A sixteenth of the rows is one.
		await submissions.submit(ONE.raw, request());
		const next = tx(0, 0n, 1);
		await assert.rejects(submissions.submit(next.raw, request()), {
			...{ name: "RpcError", code: -32005, message: "too many pending transactions from this client" },
			data: { reason: "CLIENT_FULL", scope: "client" },
		});
		assert.deepEqual([relay.hashes, fallback.hashes, journal.depth], [[ONE.hash], [], 1]);
		await submissions.submit(next.raw, request({ address: "192.0.2.2" }));
		assert.equal(journal.get(next.hash)?.acknowledged, true);
	},
	{ limits: { maxLive: 16 } },
);

scenario("the same bytes at the same time are one submission", async ({ submissions, relay, request }) => {
	const answer = hanging(relay);
	const both = [submissions.submit(ONE.raw, request()), submissions.submit(ONE.raw, request())];
	(await answer)(ACKNOWLEDGED);
	const hashes = (await Promise.all(both)).map((submitted) => submitted.tx.hash);
	assert.deepEqual([hashes, relay.sent.length], [[ONE.hash, ONE.hash], 1]);
});

scenario("the bytes of a live row are sent again, and the row stays whatever the result", async (fixture) => {
	const { submissions, journal, relay, request } = fixture;
	for (let i = 0; i < 2; i += 1) await submissions.submit(ONE.raw, request());
	relay.deliveries = [refusal("txpool is full")];
	await assert.rejects(submissions.submit(ONE.raw, request()), /txpool is full/);
	assert.deepEqual([relay.sent.length, journal.depth], [3, 1]);
	const row = journal.get(ONE.hash);
	assert.deepEqual([row?.holders, row?.acknowledged], [["relay"], true]);
});

const AGAIN: Readonly<Record<Ending, boolean>> = {
	...{ cancelled: false, replaced: false, mined: false, expired: true, dropped: true },
};
for (const [ending, isSent] of Object.entries(AGAIN) as [Ending, boolean][]) {
	const what = isSent ? "admitted anew" : "answered with their hash, and nothing is sent";
	scenario(`bytes of one that is ${ending} are ${what}`, async (fixture) => {
		const { submissions, journal, relay, request } = fixture;
		await submissions.submit(ONE.raw, request());
		await journal.end(ONE.hash, ending);
		relay.isUnavailable = !isSent;
		const state = request();
		assert.equal((await submissions.submit(ONE.raw, state)).tx.hash, ONE.hash);
		assert.deepEqual([...state.routing.answeredBy], [isSent ? "relay" : "journal"]);
		assert.equal(relay.sent.length, isSent ? 2 : 1);
		assert.deepEqual(journal.get(ONE.hash)?.holders, isSent ? ["relay"] : undefined);
	});
}

scenario(
	"the client gets the hash once it is on disk, or if that fails or takes two seconds",
	async (fixture) => {
		const { submissions, journal, disk, clock, request } = fixture;
		disk.hold = true;
		const answered: string[] = [];
		const submit = (nonce: number) =>
			submissions.submit(tx(nonce).raw, request()).then((submitted) => answered.push(submitted.tx.hash));
		const first = submit(0);
		await clock.advance(1_999);
		assert.deepEqual(answered, [], "acknowledged before it was on disk");
		disk.finish(true);
		await first;
		const second = submit(1);
		await clock.advance(2_000);
		assert.equal(answered.length, 2, "it hangs");
		disk.finish(false);
		disk.hold = false;
		disk.broken = true;
		await Promise.all([second, submit(2)]);
		assert.deepEqual(
			[answered.length, journal.rows.isDurable, journal.depth],
			[3, false, 3],
			"kept in memory",
		);
	},
);

scenario("a replacement ends what it replaces and is pending at the other holders", async (fixture) => {
	const { submissions, journal, relay, fallback, request, triggers } = fixture;
	relay.deliveries = [BROKEN_OFF, ACKNOWLEDGED];
	await submissions.submit(ONE.raw, request());
	await submissions.submit(REPLACING.raw, request());
	const { ending, cancelAt } = journal.justEnded(ONE.hash) ?? {};
	assert.deepEqual(
		[ending, cancelAt],
		["replaced", ["relay", "fallback"]],
		"neither a cancel of the next one nor its late first attempt may revive it",
	);
	const { holders, replacesAtUpstreams } = journal.get(REPLACING.hash) ?? {};
	assert.deepEqual([holders, replacesAtUpstreams], [["relay"], ["fallback"]]);
	assert.deepEqual(fallback.hashes, [ONE.hash]);
	assert.ok(triggers() > 0, "nobody sees to what is owed");
});

scenario("a replacement that is refused leaves what it would have replaced", async (fixture) => {
	const { submissions, journal, relay, request } = fixture;
	await submissions.submit(ONE.raw, request());
	relay.deliveries = [refusal("replacement transaction underpriced")];
	await assert.rejects(submissions.submit(REPLACING.raw, request()), /underpriced/);
	assert.deepEqual([journal.get(ONE.hash)?.holders, journal.get(REPLACING.hash)], [["relay"], null]);
});

scenario(
	"an account stays with an available fallback that alone has its pending transactions",
	async (fixture) => {
		const { submissions, journal, relay, fallback, request } = fixture;
		relay.isUnavailable = true;
		await submissions.submit(ONE.raw, request());
		relay.isUnavailable = false;
		for (const one of [tx(1), REPLACING]) await submissions.submit(one.raw, request());
		assert.deepEqual([relay.sent.length, fallback.sent.length], [0, 3]);
		await submissions.submit(tx(0, 0n, 7).raw, request());
		assert.equal(relay.sent.length, 1, "another account goes to the relay");
		fallback.isUnavailable = true;
		await submissions.submit(tx(2).raw, request());
		assert.equal(relay.sent.length, 2, "while the fallback is down");
		fallback.isUnavailable = false;
		for (const entry of [...journal.open()]) await journal.end(entry.hash, "mined");
		await submissions.submit(tx(3).raw, request());
		assert.equal(relay.sent.length, 3, "once they are mined it is the relay's again");
	},
);

scenario(
	"while the relay is unavailable, the account's lower nonces are delivered first",
	async (fixture) => {
		const { submissions, journal, relay, fallback, request } = fixture;
		await submissions.submit(ONE.raw, request());
		relay.isUnavailable = true;
		await submissions.submit(tx(1).raw, request());
		assert.deepEqual(fallback.hashes, [ONE.hash, tx(1).hash]);
		assert.deepEqual(fallback.sent[0]?.headers, {}, "no client is named");
		assert.deepEqual(journal.get(ONE.hash)?.holders, ["relay", "fallback"]);
	},
);

/** The account's next nonce, and what a fallback that takes no gaps gets of 0 and 2 before 3. */
for (const [nextNonce, lower] of [
	["0x0", [0]],
	["0x1", []],
	[null, []],
] as const) {
	scenario(
		`of the lower nonces none with a gap goes to a fallback that takes none, the next one being ${nextNonce}`,
		async (fixture) => {
			const { submissions, relay, fallback, request, chain } = fixture;
			for (const nonce of [0, 2]) await submissions.submit(tx(nonce).raw, request());
			relay.isUnavailable = true;
			chain.nextNonce = nextNonce;
			await submissions.submit(tx(3).raw, request());
			assert.deepEqual(
				fallback.hashes,
				[...lower, 3].map((nonce) => tx(nonce).hash),
			);
		},
		{ dialect: "flashbots" },
	);
}

scenario("lower nonces stay at an available relay that gave no verdict", async (fixture) => {
	const { submissions, relay, fallback, request } = fixture;
	await submissions.submit(ONE.raw, request());
	relay.deliveries = [BROKEN_OFF];
	await submissions.submit(tx(1).raw, request());
	assert.deepEqual(fallback.hashes, [tx(1).hash]);
});

scenario("the client gets a refusal once it is on disk", async (fixture) => {
	const { submissions, relay, disk, clock, request } = fixture;
	disk.hold = true;
	relay.deliveries = [refusal("insufficient funds")];
	let isTold = false;
	const told = assert.rejects(submissions.submit(ONE.raw, request())).then(() => {
		isTold = true;
	});
	await clock.advance(100);
	assert.equal(isTold, false);
	disk.finish(true);
	await told;
});

scenario("two of one nonce are handled one after the other", async (fixture) => {
	const { submissions, journal, relay, request } = fixture;
	const answer = hanging(relay);
	const both = [submissions.submit(ONE.raw, request()), submissions.submit(REPLACING.raw, request())];
	const say = await answer;
	assert.equal(relay.sent.length, 1);
	relay.deliveries = [ACKNOWLEDGED];
	say(ACKNOWLEDGED);
	await Promise.all(both);
	assert.equal(journal.justEnded(ONE.hash)?.ending, "replaced");
	assert.deepEqual(relay.hashes, [ONE.hash, REPLACING.hash]);
});
