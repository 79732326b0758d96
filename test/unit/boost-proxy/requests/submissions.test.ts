// What boost does with a transaction, by what each upstream says of it: who is asked next, what the client hears, and
// what the journal holds of it afterwards.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delivery } from "../../../../boost-proxy/domain/request.ts";
import { ForeignRpcError, type RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { ACKNOWLEDGED, INTERNAL, REFUSED, rejected, requestFixture, TIMED_OUT } from "./requestFixture.ts";

const tx = (nonce: number, value = 0n, index = 0) =>
	signedTransaction({ nonce: BigInt(nonce), value, by: testAccount(index) });
const HOLDERS = (entry: { readonly holders: readonly string[] } | null) => entry?.holders;

test("a well relay acknowledges: the journal holds it there, and nobody else was asked", async () => {
	const { submissions, journal, relay, fallback, request } = await requestFixture();
	const one = tx(0);
	const state = request({ search: "referrer=a" });
	const { cancels } = await submissions.submit(one.raw, state);
	assert.equal(cancels, false);
	assert.deepEqual(HOLDERS(journal.get(one.hash)), ["relay"]);
	assert.equal(journal.get(one.hash)?.underWay, false);
	assert.equal(relay.sent[0]?.tx.search, "referrer=a");
	assert.deepEqual([relay.sent.length, fallback.sent.length], [1, 0]);
	assert.deepEqual([...state.routing.answeredBy], ["relay"]);
});

test("the relay gets 40 % of the time, the fallback all that is left", async () => {
	const { submissions, relay, fallback, clock, request } = await requestFixture();
	relay.deliveries = [
		async () => {
			await clock.advance(4_000);
			return TIMED_OUT;
		},
	];
	await submissions.submit(tx(0).raw, request());
	assert.equal(relay.sent[0]?.deadlineMs, 4_000);
	assert.equal(fallback.sent[0]?.deadlineMs, 6_000);
});

const AFTER: readonly (readonly [string, Delivery | "out", readonly string[]])[] = [
	["refused", REFUSED, ["fallback"]],
	["out", "out", ["fallback"]],
	["timed out with bytes sent", TIMED_OUT, ["relay", "fallback"]],
	["reset midway", { kind: "failed", fault: "reset", sent: true }, ["relay", "fallback"]],
	["cut off midway", { kind: "cut", sent: true }, ["relay", "fallback"]],
	["cut off before a byte left", { kind: "cut", sent: false }, ["fallback"]],
	["5xx", { kind: "failed", fault: "httpStatus", sent: true }, ["relay", "fallback"]],
	["-32603, which keeps nothing", INTERNAL, ["fallback"]],
	["a full pool", { kind: "failed", fault: "limited", sent: true }, ["fallback"]],
];
for (const [name, delivery, holders] of AFTER) {
	test(`the relay ${name}: the fallback acknowledges, and ${holders.join(" and ")} may have it`, async () => {
		const { submissions, journal, relay, fallback, request } = await requestFixture();
		if (delivery === "out") relay.isUnavailable = true;
		else relay.deliveries = [delivery];
		const one = tx(0);
		const state = request();
		await submissions.submit(one.raw, state);
		assert.deepEqual([...(HOLDERS(journal.get(one.hash)) ?? [])].sort(), [...holders].sort());
		assert.equal(journal.get(one.hash)?.acknowledged, true);
		assert.deepEqual(fallback.hashes, [one.hash]);
		assert.deepEqual([...state.routing.answeredBy], ["fallback"]);
	});
}

test("a verdict is returned with its code and words, nobody else is asked, nothing is kept", async () => {
	const { submissions, journal, relay, fallback, request, disk } = await requestFixture();
	relay.deliveries = [rejected("nonce too low: next nonce 5, tx nonce 0")];
	const one = tx(0);
	await assert.rejects(submissions.submit(one.raw, request()), (thrown: ForeignRpcError) => {
		assert.ok(thrown instanceof ForeignRpcError, "not as it came");
		assert.deepEqual([thrown.code, thrown.message], [-32000, "nonce too low: next nonce 5, tx nonce 0"]);
		return true;
	});
	assert.equal(fallback.sent.length, 0);
	assert.equal(journal.get(one.hash), null);
	assert.equal(journal.depth, 0);
	await journal.close();
	assert.deepEqual(
		[...disk.map.keys()].filter((key) => key.includes(one.hash.slice(2))),
		[],
	);
});

test("a verdict of the fallback's after doubt at the relay is returned; the relay's copy is followed, not handed on", async () => {
	const { submissions, journal, relay, fallback, request } = await requestFixture();
	relay.deliveries = [TIMED_OUT];
	fallback.deliveries = [rejected("insufficient funds")];
	const one = tx(0);
	await assert.rejects(submissions.submit(one.raw, request()), /insufficient funds/);
	assert.deepEqual(HOLDERS(journal.get(one.hash)), ["relay"]);
	assert.equal(journal.get(one.hash)?.acknowledged, false);
});

test("both out: -32603 with 503, and nothing is kept", async () => {
	const { submissions, journal, relay, fallback, request } = await requestFixture();
	relay.isUnavailable = true;
	fallback.isUnavailable = true;
	const one = tx(0);
	await assert.rejects(submissions.submit(one.raw, request()), (thrown: RpcError) => {
		assert.deepEqual([thrown.kind, thrown.code], ["unavailable", -32603]);
		assert.match(thrown.message, /^no relay available: the relay and the fallback are out$/);
		return true;
	});
	assert.equal(journal.get(one.hash), null);
});

test("an internal error of the relay's is passed on where the fallback is out", async () => {
	const { submissions, relay, fallback, request } = await requestFixture();
	relay.deliveries = [INTERNAL];
	fallback.isUnavailable = true;
	await assert.rejects(submissions.submit(tx(0).raw, request()), (thrown: ForeignRpcError) => {
		assert.equal(thrown.code, -32603);
		return thrown instanceof ForeignRpcError;
	});
});

test("what may not go to the fallback never does, and the reason is told", async () => {
	const { submissions, relay, fallback, request } = await requestFixture();
	fallback.refusals = { noreverts: "the fallback does not protect from reverts" };
	relay.isUnavailable = true;
	await assert.rejects(
		submissions.submit(tx(0).raw, request({ path: "noreverts" })),
		/^RpcError: no relay available: the fallback does not protect from reverts$/,
	);
	assert.equal(fallback.sent.length, 0);
	await submissions.submit(tx(0).raw, request({ path: "fast" }));
	assert.equal(fallback.sent.length, 1);
});

test("what is no transaction is refused in the relay's words, and a bad query too", async () => {
	const { submissions, relay, request } = await requestFixture();
	await assert.rejects(
		submissions.submit(Buffer.from("00", "hex"), request()),
		/transaction type not supported/,
	);
	await assert.rejects(
		submissions.submit(tx(0).raw, request({ search: "refundRecipient=0x12" })),
		/invalid params: refundRecipient: expected an address/,
	);
	assert.equal(relay.sent.length, 0);
});

test("the same bytes at the same time are one submission", async () => {
	const { submissions, relay, request } = await requestFixture();
	let answer = (_: Delivery): void => {};
	relay.deliveries = [() => new Promise((resolve) => (answer = resolve))];
	const one = tx(0);
	const both = [submissions.submit(one.raw, request()), submissions.submit(one.raw, request())];
	while (relay.sent.length === 0) await Promise.resolve();
	answer(ACKNOWLEDGED);
	const hashes = (await Promise.all(both)).map((submitted) => submitted.tx.hash);
	assert.deepEqual(hashes, [one.hash, one.hash]);
	assert.equal(relay.sent.length, 1);
});

test("bytes that are held are sent on again, and stay held once", async () => {
	const { submissions, journal, relay, request } = await requestFixture();
	const one = tx(0);
	await submissions.submit(one.raw, request());
	await submissions.submit(one.raw, request());
	assert.equal(relay.sent.length, 2);
	assert.equal(journal.depth, 1);
	relay.deliveries = [rejected("txpool is full")];
	await assert.rejects(submissions.submit(one.raw, request()), /txpool is full/);
	assert.deepEqual(
		HOLDERS(journal.get(one.hash)),
		["relay"],
		"a refusal of the second must not lose the first",
	);
	assert.equal(journal.get(one.hash)?.acknowledged, true);
});

test("one that was in doubt is acknowledged when it is sent again", async () => {
	const { submissions, journal, relay, fallback, request } = await requestFixture();
	relay.deliveries = [TIMED_OUT, ACKNOWLEDGED];
	fallback.isUnavailable = true;
	const one = tx(0);
	await assert.rejects(submissions.submit(one.raw, request()), /no relay available/);
	await submissions.submit(one.raw, request());
	assert.equal(journal.get(one.hash)?.acknowledged, true);
});

for (const ending of ["cancelled", "replaced", "mined"] as const) {
	test(`bytes of one that is ${ending} are answered with their hash, and nothing is sent`, async () => {
		const { submissions, journal, relay, request } = await requestFixture();
		const one = tx(0);
		await submissions.submit(one.raw, request());
		await journal.end(one.hash, ending);
		relay.isUnavailable = true;
		const state = request();
		assert.equal((await submissions.submit(one.raw, state)).tx.hash, one.hash);
		assert.deepEqual([...state.routing.answeredBy], ["journal"]);
		assert.equal(relay.sent.length, 1);
	});
}

for (const ending of ["expired", "dropped"] as const) {
	test(`bytes of one that is ${ending} are admitted anew`, async () => {
		const { submissions, journal, relay, request } = await requestFixture();
		const one = tx(0);
		await submissions.submit(one.raw, request());
		await journal.end(one.hash, ending);
		await submissions.submit(one.raw, request());
		assert.equal(relay.sent.length, 2);
		assert.deepEqual(HOLDERS(journal.get(one.hash)), ["relay"]);
	});
}

test("where the journal is full nothing is sent, and whoever sends is told so; what it holds is answered as ever", async () => {
	const { submissions, journal, relay, fallback, request } = await requestFixture({ maxEntries: 2 });
	await submissions.submit(tx(0).raw, request({ address: "192.0.2.1" }));
	await submissions.submit(tx(1).raw, request({ address: "192.0.2.2" }));
	await assert.rejects(submissions.submit(tx(2).raw, request({ address: "192.0.2.3" })), {
		kind: "unavailable",
		code: -32603,
		message: "no relay available: the journal is full",
	});
	assert.deepEqual([relay.sent.length, fallback.sent.length, journal.get(tx(2).hash)], [2, 0, null]);
	assert.equal((await submissions.submit(tx(1).raw, request())).tx.hash, tx(1).hash);
	await journal.end(tx(0).hash, "mined");
	await submissions.submit(tx(2).raw, request({ address: "192.0.2.3" }));
	assert.deepEqual(HOLDERS(journal.get(tx(2).hash)), ["relay"]);
});

test("a client with its share of the journal is refused as by the relay's pool; others are taken", async () => {
	const { submissions, relay, fallback, request } = await requestFixture({ maxEntries: 32 });
	for (const nonce of [0, 1]) await submissions.submit(tx(nonce).raw, request());
	await assert.rejects(submissions.submit(tx(2).raw, request()), {
		kind: "limit",
		code: -32005,
		message: "too many pending transactions from this client",
		data: { reason: "CLIENT_FULL", scope: "client" },
	});
	await submissions.submit(tx(0, 0n, 1).raw, request({ address: "192.0.2.2" }));
	assert.deepEqual([relay.sent.length, fallback.sent.length], [3, 0]);
});

test("a client with its share of the relay's pool is told so, and the fallback is not asked", async () => {
	const { submissions, journal, relay, fallback, request } = await requestFixture();
	const error = {
		...{ code: -32005, message: "too many pending transactions from this client" },
		data: { reason: "CLIENT_FULL", scope: "client" },
	};
	relay.deliveries = [{ kind: "rejected", error }];
	const refused = submissions.submit(tx(0).raw, request());
	await assert.rejects(refused, (thrown) => {
		// Under 200: a client that is told 429 would try again by itself.
		assert.ok(thrown instanceof ForeignRpcError);
		assert.deepEqual({ code: thrown.code, message: thrown.message, data: thrown.data }, error);
		return true;
	});
	assert.deepEqual([fallback.sent.length, journal.get(tx(0).hash)], [0, null]);
});

test("the relay's word is enough where the disk fails", async () => {
	const broken = await requestFixture();
	broken.disk.broken = true;
	assert.equal((await broken.submissions.submit(tx(0).raw, broken.request())).tx.hash, tx(0).hash);
	assert.equal(broken.journal.isDurable, false);
	assert.notEqual(broken.journal.get(tx(0).hash), null, "it is kept in memory");
});

test("the client hears of it only when it is on disk", async () => {
	const { submissions, disk, clock, request } = await requestFixture();
	disk.hold = true;
	let answered = false;
	const submitted = submissions.submit(tx(0).raw, request()).then(() => {
		answered = true;
	});
	await clock.advance(1_000);
	assert.equal(answered, false, "acknowledged before it was on disk");
	disk.hold = false;
	disk.finish(true);
	await submitted;
	assert.equal(answered, true);
});
