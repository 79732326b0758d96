// Observing the relay: what each stage does to a row, and that mined rows are observed for some
// slots.

import assert from "node:assert/strict";
import { refusal } from "../wire.ts";
import {
	advanceInSteps,
	endingOf,
	entryOf,
	hashOf,
	INTERVAL_MS,
	SLOT_MS,
	scenario as scenarioOf,
	senderOf,
} from "./reconcileFixture.ts";

const METHOD = "service_transactionStatuses";
/** The observer has begun. */
const scenario = (...[name, body, options]: Parameters<typeof scenarioOf>) =>
	scenarioOf(name, body, { followed: true, ...options });

scenario("each stage of the relay", async (fixture) => {
	const { relay, fallback, clock, journal } = fixture;
	const ends = {
		CANCELLED: "cancelled",
		REPLACED: "replaced",
		INCLUDED: "mined",
		REVERTED: "mined",
		EXPIRED: "expired",
		DROPPED: "dropped",
	};
	const alone = new Map<string, string>();
	const both = new Map<string, string>();
	for (const [i, stage] of Object.keys(ends).entries()) {
		alone.set(stage, await fixture.opened(2 * i, ["relay"]));
		both.set(stage, await fixture.opened(2 * i + 1, ["relay", "fallback"]));
		for (const hashes of [alone, both]) relay.stages.set(hashes.get(stage) ?? "", stage);
	}
	await clock.advance(INTERVAL_MS);
	for (const [stage, ending] of Object.entries(ends)) {
		assert.equal(endingOf(fixture, alone.get(stage) ?? ""), ending, `${stage} at the relay alone`);
		const hash = both.get(stage) ?? "";
		const givenUp = stage === "EXPIRED" || stage === "DROPPED";
		assert.equal(endingOf(fixture, hash), givenUp ? null : ending, `${stage} at both`);
		if (givenUp) assert.deepEqual(fixture.holders(hash), ["fallback"]);
	}
	const taken = ["CANCELLED", "REPLACED"].map((stage) => both.get(stage));
	await clock.advance(100);
	assert.deepEqual(fallback.asked("eth_cancelTransaction"), taken, "the other holder receives the cancel");
	assert.deepEqual([...journal.pendingCancels()], []);
	fallback.isOut = true;
	await clock.advance(2_000);
	assert.deepEqual(relay.hashes, [], "what it has given up, it does not get again");
});

scenario(
	"a row that the relay reports as live lives on, one past its time without an answer expires",
	async (fixture) => {
		const { relay, clock } = fixture;
		const hash = await fixture.opened(1);
		const until = entryOf(fixture, hash).aliveUntil;
		relay.stages.set(hash, "QUEUED");
		await clock.advance(600_000);
		assert.ok(entryOf(fixture, hash).aliveUntil > until + 500_000, "it waits as long as the relay does");
		relay.isOut = true;
		await clock.advance(280_000);
		assert.equal(endingOf(fixture, hash), null);
		await clock.advance(40_000);
		assert.equal(endingOf(fixture, hash), "expired");
	},
);

scenario(
	"no record twice in a row, from a relay available all the time, is a loss: it gets the row again",
	async (fixture) => {
		const { relay, clock } = fixture;
		const hash = await fixture.opened(1);
		relay.stages.delete(hash);
		await clock.advance(INTERVAL_MS);
		assert.deepEqual(relay.hashes, [], "once may be a question that overtook the answer");
		relay.stages.set(hash, "PENDING");
		await clock.advance(INTERVAL_MS);
		relay.stages.delete(hash);
		await clock.advance(INTERVAL_MS);
		assert.deepEqual(relay.hashes, [], "not in a row");
		await clock.advance(INTERVAL_MS + 50);
		assert.deepEqual(relay.hashes, [hash]);
		await clock.advance(10_000);
		assert.deepEqual(relay.hashes, [hash]);
	},
);

scenario(
	"the relay's record of an earlier owner's cancel does not end what another owner submits again",
	async (fixture) => {
		const { relay, journal, clock } = fixture;
		const hash = await fixture.opened(1);
		// The relay has not answered the submission of the other owner.
		journal.rows.change(hash, (row) => {
			const [owner] = row.owners;
			assert.ok(owner !== undefined);
			const earlier = { ...owner, address: "192.0.2.200", cancelled: true };
			const at = { ...row.at, relay: { ...row.at.relay, presence: "given" } } as const;
			return { ...row, owners: [earlier, owner], at };
		});
		relay.stages.set(hash, "CANCELLED");
		await clock.advance(INTERVAL_MS + 50);
		assert.equal(endingOf(fixture, hash), null);
		assert.deepEqual(relay.hashes, [hash], "it gets it again");
		assert.match(relay.submissions[0]?.target ?? "", /again=/);
	},
);

scenario("no record is ignored if the relay's health changed meanwhile", async (fixture) => {
	const { relay, fallback, clock } = fixture;
	fallback.isOut = true;
	await fixture.opened(1);
	relay.onCall = ({ method, params: [hashes] }) => {
		if (method !== METHOD || !Array.isArray(hashes)) return "keeps";
		relay.isOut = true;
		relay.isOut = false;
		return { result: hashes.map((one) => ({ hash: one, status: "UNKNOWN", stage: null })) };
	};
	await clock.advance(2_000);
	assert.ok(relay.calls.length > 3, "it is asked at once each time");
	assert.deepEqual(relay.hashes, []);
});

scenario("an unacknowledged row is observed until the delivery can no longer arrive", async (fixture) => {
	const { relay, clock } = fixture;
	const hash = await fixture.opened(1, ["relay"], { acknowledged: false });
	await clock.advance(14_000);
	assert.deepEqual(fixture.holders(hash), ["relay"]);
	await clock.advance(3_000);
	assert.equal(fixture.holders(hash), null, "forgotten");
	assert.equal(endingOf(fixture, hash), null);
	const late = await fixture.opened(2, ["relay"], { acknowledged: false });
	await clock.advance(10_000);
	relay.stages.set(late, "BROADCAST");
	await clock.advance(10_000);
	assert.deepEqual(fixture.holders(late), ["relay"]);
	assert.deepEqual(relay.hashes, [], "never sent again");
});

scenario(
	"a large journal is asked for in parts, and as a whole when the relay is back",
	async (fixture) => {
		const { relay } = fixture;
		for (let n = 1; n <= 1_100; n += 1) await fixture.opened(n, ["relay"], { from: senderOf(n) });
		await advanceInSteps(fixture, 5 * INTERVAL_MS);
		const asked = relay.asked(METHOD) as readonly (readonly string[])[];
		assert.deepEqual(
			asked.map(({ length }) => length),
			[1_000, 100, 1_000, 100, 1_000],
		);
		assert.equal(new Set(asked.flat()).size, 1_100);
		relay.isOut = true;
		await advanceInSteps(fixture, INTERVAL_MS);
		relay.isOut = false;
		await advanceInSteps(fixture, 1);
		const all = (relay.asked(METHOD) as readonly (readonly string[])[]).slice(5);
		assert.deepEqual([all.length, new Set(all.flat()).size], [2, 1_100]);
	},
	{ alone: true },
);

scenario("a relay without the method is not asked again until it has been unavailable", async (fixture) => {
	const { relay, chain, clock } = fixture;
	relay.onCall = () => refusal("the method does not exist", -32601);
	const hash = await fixture.opened(1);
	await clock.advance(INTERVAL_MS * 5);
	assert.equal(relay.calls.length, 1);
	chain.nonces.set(senderOf(1), 2n);
	chain.receipts.add(hash);
	await clock.advance(SLOT_MS);
	assert.equal(endingOf(fixture, hash), "mined");
	relay.onCall = () => "keeps";
	const next = await fixture.opened(2);
	relay.stages.set(next, "CANCELLED");
	relay.isOut = true;
	relay.isOut = false;
	await clock.advance(50);
	assert.equal(endingOf(fixture, next), "cancelled");
});

scenario("malformed answers are ignored", async (fixture) => {
	const hash = await fixture.opened(1);
	const words: unknown[] = [null, undefined, 7, "x", {}, [null], [{ hash }], [{ hash, stage: 1 }]];
	words.push([{ hash: 1, stage: "CANCELLED" }], [{ hash: hashOf(9), stage: "CANCELLED" }]);
	fixture.relay.onCall = () => ({ result: words.shift() ?? null });
	await fixture.clock.advance(INTERVAL_MS * words.length);
	assert.deepEqual([words, fixture.holders(hash)], [[], ["relay"]]);
});

scenario(
	"an answer is ignored if the row was opened again or a request about it is in progress",
	async (fixture) => {
		const { relay, journal, clock } = fixture;
		const [again, busy] = [await fixture.opened(1), await fixture.opened(2)];
		let once = true;
		relay.onCall = async ({ method }) => {
			if (method !== METHOD || !once) return "keeps";
			once = false;
			const result = [again, busy].map((hash) => ({ hash, status: "FAILED", stage: "EXPIRED" }));
			await journal.end(again, "expired");
			await fixture.opened(1, ["relay"], { receivedAt: clock.now() + 1 });
			journal.setInProgress(busy, true);
			return { result };
		};
		await clock.advance(INTERVAL_MS);
		assert.equal(once, false);
		assert.deepEqual([fixture.holders(again), fixture.holders(busy)], [["relay"], ["relay"]]);
	},
);

scenario("if the relay has no record of a mined row, the chain shows a reorganisation", async (fixture) => {
	const { relay, chain, clock } = fixture;
	const hash = await fixture.opened(1);
	relay.stages.set(hash, "INCLUDED");
	await clock.advance(INTERVAL_MS);
	relay.stages.delete(hash);
	chain.receipts.add(hash);
	await clock.advance(2 * SLOT_MS);
	assert.equal(endingOf(fixture, hash), "mined");
	chain.receipts.delete(hash);
	await clock.advance(2 * SLOT_MS);
	assert.deepEqual(fixture.holders(hash), ["relay"]);
});

for (const [stage, ending] of [
	["INCLUDED", "mined"],
	["DROPPED", "dropped"],
] as const) {
	scenario(`a row that the relay reported as ${ending} is reopened by its later stage`, async (fixture) => {
		const { relay, clock } = fixture;
		const hash = await fixture.opened(1);
		relay.stages.set(hash, stage);
		await clock.advance(INTERVAL_MS);
		assert.equal(endingOf(fixture, hash), ending);
		relay.stages.set(hash, "BROADCAST");
		await clock.advance(SLOT_MS);
		assert.deepEqual(fixture.holders(hash), ["relay"]);
		const [otherStage, otherEnding] = stage === "INCLUDED" ? ["DROPPED", "dropped"] : ["INCLUDED", "mined"];
		relay.stages.set(hash, stage);
		await clock.advance(INTERVAL_MS);
		assert.equal(endingOf(fixture, hash), ending);
		relay.stages.set(hash, otherStage);
		await clock.advance(SLOT_MS);
		assert.equal(endingOf(fixture, hash), otherEnding, "it went through a stage that boost did not see");
		await clock.advance(13 * SLOT_MS);
		const before = relay.calls.length;
		await clock.advance(SLOT_MS);
		assert.equal(relay.calls.length, before, "after twelve slots nobody asks");
	});
}

for (const holder of ["relay", "fallback"] as const) {
	scenario(`a receipt that is missing twice in a row reopens a row of the ${holder}`, async (fixture) => {
		const { relay, chain, clock } = fixture;
		if (holder === "relay") relay.isOut = true;
		const hash = await fixture.opened(1, [holder]);
		chain.nonces.set(senderOf(1), 2n);
		chain.receipts.add(hash);
		await clock.advance(SLOT_MS / 2);
		assert.equal(endingOf(fixture, hash), "mined");
		chain.receipts.delete(hash);
		await clock.advance(SLOT_MS * 0.4);
		assert.equal(endingOf(fixture, hash), "mined", "once");
		chain.receipts.add(hash);
		await clock.advance(SLOT_MS * 0.5);
		chain.receipts.delete(hash);
		chain.nonces.set(senderOf(1), 1n);
		await clock.advance(SLOT_MS * 0.4);
		assert.equal(endingOf(fixture, hash), "mined", "once more, but not in a row");
		await clock.advance(SLOT_MS * 0.6);
		assert.equal(fixture.holders(hash)?.[0], holder, "twice");
	});
}

for (const holder of ["relay", "fallback"] as const) {
	scenario(
		`a dropped row of the ${holder} whose nonce is free twice in a row is reopened`,
		async (fixture) => {
			const { relay, chain, clock } = fixture;
			relay.isOut = true;
			const hash = await fixture.opened(1, [holder]);
			chain.nonces.set(senderOf(1), 2n);
			await clock.advance(SLOT_MS);
			assert.equal(endingOf(fixture, hash), "dropped");
			await clock.advance(10 * SLOT_MS);
			assert.equal(endingOf(fixture, hash), "dropped");
			chain.nonces.set(senderOf(1), 1n);
			await clock.advance(SLOT_MS * 0.4);
			assert.equal(endingOf(fixture, hash), "dropped", "once");
			await clock.advance(SLOT_MS * 0.6);
			assert.equal(fixture.holders(hash)?.[0], holder, "twice");
		},
	);
}

scenario(
	"a relay that acknowledges but never has a record gets the row more and more rarely",
	async (fixture) => {
		const { relay, clock } = fixture;
		const hash = await fixture.opened(1);
		relay.onCall = ({ method, params: [hashes] }) =>
			method === METHOD && Array.isArray(hashes)
				? { result: hashes.map((one) => ({ hash: one, status: "UNKNOWN", stage: null })) }
				: "keeps";
		await clock.advance(250_000);
		assert.ok(relay.submissions.length < 10, `${relay.submissions.length} deliveries`);
		assert.notEqual(fixture.holders(hash), null);
	},
);
