// The transactions and cancels that the reconciler sends as upstreams become unavailable and come
// back. The plan itself is tested in plan.test.ts.

import assert from "node:assert/strict";
import { refusal, type Said } from "../wire.ts";
import {
	ACKNOWLEDGED,
	endingOf,
	fault,
	hashOf,
	type ReconcileFixture,
	refused,
	scenario,
	senderOf,
} from "./reconcileFixture.ts";

const CANCEL = "eth_cancelTransaction";

scenario("a row that only the fallback had is sent to the relay on its client's behalf", async (fixture) => {
	const hash = await fixture.opened(1, ["fallback"], { address: "192.0.2.7" });
	fixture.fallback.isOut = true;
	await fixture.clock.advance(100);
	assert.deepEqual(fixture.relay.hashes, [hash]);
	const { headers } = fixture.relay.submissions[0] ?? assert.fail();
	assert.equal(headers["x-forwarded-for"], "192.0.2.7");
	assert.ok(!("x-boost-signer" in headers || "x-flashbots-signature" in headers));
});

scenario(
	"nothing goes to the fallback while another boost instance reaches the relay, and takes it over",
	async (fixture) => {
		const { relay, fallback, clock, others } = fixture;
		const hash = await fixture.opened(1, ["relay"]);
		others.doOthersReach = true;
		relay.isOut = true;
		await clock.advance(10_000);
		assert.deepEqual(fallback.hashes, []);
		others.doOthersReach = false;
		await clock.advance(10_000);
		assert.deepEqual(fallback.hashes, [hash]);
	},
);

/**
 * The fallback's answers in order, a time in ms, the number of submissions to it in that time, and
 * the holders after it.
 */
const ANSWERS: readonly (readonly [string, readonly Said[], number, number, readonly string[]])[] = [
	["a refusal is not asked for again", [refused()], 20_000, 1, ["relay"]],
	["a fault without a byte sent: after 1, 2 and 4 s", Array(9).fill(fault(false)), 7_500, 4, ["relay"]],
	["faults wait 30 s at most", Array(99).fill(fault(false)), 130_000, 9, ["relay"]],
	["no verdict: a cancel must reach it", [fault(true)], 500, 1, ["relay", "fallback"]],
	[
		"no verdict: it gets it again until it says so",
		[fault(true), "breaks off", ACKNOWLEDGED, refused()],
		...([20_000, 3, ["relay", "fallback"]] as const),
	],
	["no verdict, then a refusal: it does not have it", [fault(true), refused()], 10_000, 2, ["relay"]],
];
for (const [what, answers, ms, count, holders] of ANSWERS) {
	scenario(what, async (fixture) => {
		const { relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1);
		const left = [...answers];
		fallback.onSubmission = () => left.shift() ?? ACKNOWLEDGED;
		relay.isOut = true;
		await clock.advance(ms);
		assert.deepEqual([fallback.submissions.length, fixture.holders(hash)], [count, holders]);
	});
}

for (const back of ["relay", "fallback"] as const) {
	scenario(
		`what was refused or failed is tried at once when the ${back} has been down and is back`,
		async (fixture) => {
			const { relay, fallback, clock } = fixture;
			const hash = await fixture.opened(1);
			fallback.onSubmission = () => (back === "relay" ? refused() : fault(false));
			relay.isOut = true;
			await clock.advance(100_000);
			const before = fallback.submissions.length;
			fallback.onSubmission = () => ACKNOWLEDGED;
			fixture[back].isOut = back === "fallback";
			await clock.advance(50);
			fixture[back].isOut = back === "relay";
			await clock.advance(50);
			assert.equal(fallback.submissions.length, before + 1);
			assert.deepEqual(fixture.holders(hash), ["relay", "fallback"]);
		},
	);
}

scenario(
	"a rate limit of the fallback pauses all deliveries to it, one of the relay concerns one client",
	async (fixture) => {
		const { relay, fallback, clock } = fixture;
		for (const n of [1, 2, 3]) await fixture.opened(n, ["relay"], { from: senderOf(n) });
		const limited: Said = { http: "429 Too Many Requests", headers: ["retry-after: 20"] };
		fallback.onSubmission = () => limited;
		relay.isOut = true;
		await clock.advance(4_500);
		assert.equal(fallback.submissions.length, 3, "those that were sent at the same time");
		assert.deepEqual(fixture.holders(hashOf(1)), ["relay"], "who says so keeps nothing");
		fallback.onSubmission = () => ACKNOWLEDGED;
		await fixture.opened(4, ["relay"], { from: senderOf(4) });
		await clock.advance(5_000);
		assert.equal(fallback.submissions.length, 3, "a new one waits too");
		await clock.advance(12_000);
		assert.equal(fallback.submissions.length, 7);
		relay.isOut = false;
		const [hash, other] = [await fixture.opened(5, ["fallback"], { from: senderOf(5) }), hashOf(6)];
		const full: Said = { error: { code: -32000, message: "txpool is full", data: { scope: "pool" } } };
		const answers = [full, refused("limit exceeded", -32005), full];
		relay.onSubmission = (tx) => (tx.hash === hash ? (answers.shift() ?? ACKNOWLEDGED) : ACKNOWLEDGED);
		fallback.isOut = true;
		await clock.advance(1_500);
		await fixture.opened(6, ["fallback"], { from: senderOf(6) });
		await clock.advance(1_500);
		assert.deepEqual([fixture.holders(hash), fixture.holders(other)], [["fallback"], ["relay", "fallback"]]);
		await clock.advance(40_000);
		assert.deepEqual(fixture.holders(hash), ["relay", "fallback"], "no refusal");
	},
);

for (const ending of ["cancelled", "mined"] as const) {
	scenario(`one that is ${ending} while it is being delivered`, async (fixture) => {
		const { journal, relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1);
		fallback.onSubmission = async () => {
			await journal.end(hash, ending);
			return ACKNOWLEDGED;
		};
		relay.isOut = true;
		await clock.advance(1_000);
		assert.deepEqual(fallback.asked(CANCEL), ending === "cancelled" ? [hash] : [], "it is taken back there");
		assert.deepEqual(journal.justEnded(hash)?.cancelAt, []);
	});
}

/**
 * Number 1 at both, then replaced at the fallback alone by number 2, while the relay is
 * unavailable.
 */
async function replacedInOutage(fixture: ReconcileFixture): Promise<string> {
	const { journal, relay, clock } = fixture;
	const earlier = await fixture.opened(1, ["relay", "fallback"]);
	relay.isOut = true;
	const later = await fixture.opened(2, ["fallback"], {
		nonce: 1n,
		replacesAtUpstreams: ["relay", "fallback"],
	});
	await journal.replacementDelivered(later, "fallback");
	await journal.end(earlier, "replaced");
	await clock.advance(2_000);
	assert.deepEqual(relay.hashes, [], "it is down");
	return later;
}

for (const [what, answer, holders] of [
	["reaches the holder of the earlier one when that is back", ACKNOWLEDGED, ["relay", "fallback"]],
	["that is refused there is not owed any more", refused("replacement underpriced"), ["fallback"]],
] as const) {
	scenario(`a replacement ${what}`, async (fixture) => {
		const later = await replacedInOutage(fixture);
		const { relay, fallback, journal, clock } = fixture;
		relay.onSubmission = () => answer;
		relay.isOut = false;
		await clock.advance(5_000);
		assert.deepEqual([relay.hashes, fallback.hashes], [[later], []]);
		assert.deepEqual([fixture.holders(later), journal.get(later)?.replacesAtUpstreams], [holders, []]);
	});
}

scenario(
	"pending cancels are sent on the client's behalf until no earlier attempt can bring it any more",
	async (fixture) => {
		const { journal, relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["relay", "fallback"]);
		const unknown = await fixture.opened(2);
		relay.stages.delete(unknown);
		for (const one of [relay, fallback]) one.isOut = true;
		await journal.end(hash, "cancelled", ["relay", "fallback"]);
		await journal.end(unknown, "cancelled", ["relay"]);
		await clock.advance(5_000);
		assert.equal(relay.calls.length + fallback.calls.length, 0, "both are down");
		relay.isOut = false;
		await clock.advance(100);
		assert.deepEqual(relay.asked(CANCEL), [hash, unknown]);
		assert.equal(relay.calls[0]?.headers["x-forwarded-for"], "192.0.2.1");
		const cancelAt = [hash, unknown].map((one) => journal.justEnded(one)?.cancelAt);
		assert.deepEqual(cancelAt, [["fallback"], ["relay"]], "what is not found may still come");
		fallback.isOut = false;
		await clock.advance(60_000);
		assert.deepEqual(fallback.calls[0]?.headers, {}, "no client is named to a third party");
		assert.deepEqual([relay.stages.get(hash), fallback.stages.get(hash)], ["CANCELLED", "CANCELLED"]);
		assert.equal(fallback.calls.length, 1, "that is final");
		assert.deepEqual(journal.justEnded(unknown)?.cancelAt, [], "nothing is under way for so long");
	},
);

scenario("after no answer, a rate limit or an internal error a cancel is sent again", async (fixture) => {
	const { journal, relay, clock } = fixture;
	const hash = await fixture.opened(1);
	const answers: Said[] = [
		"breaks off",
		refusal("limit exceeded", -32005),
		refusal("internal error", -32603),
	];
	relay.onCall = () => answers.shift() ?? "keeps";
	await journal.end(hash, "cancelled", ["relay"]);
	await clock.advance(10_500);
	assert.equal(relay.calls.length, 4);
	assert.deepEqual(journal.justEnded(hash)?.cancelAt, []);
});

/**
 * The holders before, the relay's answers when it gets the lost row again, the number of
 * submissions to the relay and to the fallback, and the holders after.
 */
const LOST = [
	[["relay"], [fault(false), ACKNOWLEDGED], 2, 1, ["relay", "fallback"]],
	[["relay"], [refused("txpool is full"), refused()], 1, 1, ["fallback"]],
	[["relay", "fallback"], [refused(), refused()], 1, 0, ["fallback"]],
] as const;
for (const [held, answers, toRelay, toFallback, holders] of LOST) {
	const said = JSON.stringify(answers[0]);
	scenario(`the relay gets a lost row again: ${said}, and ${held.join(" and ")} had it`, async (fixture) => {
		const { relay, fallback, clock, handover } = fixture;
		const hash = await fixture.opened(1, held);
		const left: Said[] = [...answers];
		relay.onSubmission = () => left.shift() ?? refused();
		handover.lost(hash, "relay");
		await clock.advance(60_000);
		assert.deepEqual([relay.submissions.length, fallback.submissions.length], [toRelay, toFallback]);
		assert.deepEqual(fixture.holders(hash), holders);
	});
}

for (const alone of [true, false]) {
	const who = alone ? "the relay, alone," : "everybody";
	scenario(
		`what ${who} refuses is tried again now and then, until somebody takes it`,
		async (fixture) => {
			const { relay, fallback, clock, handover } = fixture;
			const [hash, behind] = [await fixture.opened(1), await fixture.opened(2)];
			relay.onSubmission = (tx) => (tx.hash === hash ? refused("txpool is full") : ACKNOWLEDGED);
			fallback.onSubmission = () => refused();
			for (const one of [hash, behind]) handover.lost(one, "relay");
			await clock.advance(100);
			assert.deepEqual(relay.hashes, [hash, behind], "what stands behind it does not wait");
			await clock.advance(150_000);
			assert.ok(relay.hashes.length <= 12, `${relay.hashes.length} deliveries`);
			assert.deepEqual([fixture.holders(hash), endingOf(fixture, hash)], [[], null]);
			relay.onSubmission = () => ACKNOWLEDGED;
			await clock.advance(31_000);
			assert.deepEqual(fixture.holders(hash), ["relay"]);
		},
		{ alone },
	);
}

scenario("one that ends or is replaced while it waits for its bytes is not sent", async (fixture) => {
	const { journal, relay, fallback, clock } = fixture;
	const [cancelled, replaced] = [
		await fixture.opened(1),
		await fixture.opened(2, ["relay"], { from: senderOf(2) }),
	];
	const { rows } = journal;
	const read = rows.raw.bind(rows);
	rows.raw = async (hash) => {
		if (hash === cancelled) void journal.end(hash, "cancelled");
		else journal.setInProgress(hash, true);
		return read(hash);
	};
	relay.isOut = true;
	await clock.advance(3_000);
	assert.deepEqual(fallback.hashes, []);
	assert.deepEqual([endingOf(fixture, cancelled), fixture.holders(replaced)], ["cancelled", ["relay"]]);
});

scenario(
	"a replacement is pending at an upstream that got the earlier transaction meanwhile",
	async (fixture) => {
		const { journal, relay, fallback, clock } = fixture;
		const earlier = await fixture.opened(1, ["relay"], { nonce: 0n });
		const later = hashOf(2);
		fallback.onSubmission = async ({ hash }) => {
			if (hash !== earlier) return ACKNOWLEDGED;
			relay.isOut = false;
			await fixture.opened(2, ["relay"], { nonce: 0n, replacesAtUpstreams: ["relay"] });
			await journal.replacementDelivered(later, "relay");
			await journal.end(earlier, "replaced");
			return ACKNOWLEDGED;
		};
		relay.isOut = true;
		await clock.advance(3_000);
		assert.deepEqual(fallback.hashes, [earlier, later], "it knows no cancel, so it gets the replacement");
		assert.deepEqual(fixture.holders(later), ["relay", "fallback"]);
		assert.deepEqual(journal.justEnded(earlier)?.cancelAt, []);
	},
	{ dialect: "flashbots" },
);
