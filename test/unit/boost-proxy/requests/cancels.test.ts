// Cancels by hash and soft cancels: the clients that may cancel, the upstreams that receive a
// cancel, and the answer to the client. No cancelled transaction is forwarded.

import assert from "node:assert/strict";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { refusal, type Said } from "../wire.ts";
import {
	ACKNOWLEDGED,
	BROKEN_OFF,
	hanging,
	type RequestFixture,
	requestFixture,
	scenario,
} from "./requestFixture.ts";

const OWNER = testAccount(0);
const YES: Said = { result: true };
const NOT_FOUND = refusal("transaction not found or no longer pending");
const NOT_PENDING = /not found or no longer pending/;
const ONE = signedTransaction({ nonce: 0n, by: OWNER });
const { hash: HASH } = ONE;
const selfTransfer = (value = 0n) => signedTransaction({ nonce: 0n, to: OWNER.address, value, by: OWNER });
const SOFT = { path: "noreverts", search: "softCancellations=true" } as const;
const STRANGER = { address: "198.51.100.7" };

/** `ONE`, submitted and acknowledged where it is said. */
async function held(fixture: RequestFixture, by: "relay" | "fallback" | "both", changed = {}): Promise<void> {
	const { relay, submissions, journal, request } = fixture;
	if (by === "both") relay.deliveries = [BROKEN_OFF, ACKNOWLEDGED];
	relay.isUnavailable = by === "fallback";
	await submissions.submit(ONE.raw, request(changed));
	assert.deepEqual(journal.get(HASH)?.holders, by === "both" ? ["relay", "fallback"] : [by]);
}

const cancel = ({ cancels, request }: RequestFixture, changed = {}, hash = HASH) =>
	cancels.cancel(hash, request(changed));
const soft = ({ submissions, request }: RequestFixture, value = 0n) =>
	submissions.submit(selfTransfer(value).raw, request());

/** A row's ending and its pending cancels; null while it is live. */
function endOf({ journal }: RequestFixture): readonly unknown[] | null {
	const end = journal.justEnded(HASH);
	return end === null ? null : [end.ending, ...end.cancelAt];
}

type Answer = Said | null | "out" | "behind an open breaker";
interface Case {
	readonly by: "relay" | "fallback" | "both";
	/** Each holder's answer; null: none. */
	readonly relay?: Answer;
	readonly fallback?: Answer;
	/** The caller; the owner by default. */
	readonly who?: object;
	/** True, or the message of the refusal. */
	readonly heard: true | RegExp;
	/** The row's ending and its pending cancels; null: it is live. */
	readonly end: readonly string[] | null;
}
const UNREACHED = /^RpcError: no relay available: the upstream that has it does not answer/;
const CASES: Readonly<Record<string, Case>> = {
	"a healthy relay cancels it": { by: "relay", relay: YES, heard: true, end: ["cancelled"] },
	"both receive it": { by: "both", relay: YES, fallback: YES, heard: true, end: ["cancelled"] },
	"one of two is down, and receives it when it is back": {
		...{ by: "both", relay: "out", fallback: YES, heard: UNREACHED, end: ["cancelled", "relay"] },
	},
	"one of two gives no answer, and receives it again": {
		...{ by: "both", relay: YES, fallback: null, heard: UNREACHED, end: ["cancelled", "fallback"] },
	},
	"behind an open breaker the relay receives it at once where it can": {
		...{ by: "relay", relay: "behind an open breaker", heard: true, end: ["cancelled"] },
	},
	"no verdict: it may be cancelled there, so no other receives it": {
		...{ by: "relay", relay: null, heard: UNREACHED, end: ["cancelled", "relay"] },
	},
	"the only holder is down, and receives it when it is back": {
		...{ by: "relay", relay: "out", heard: UNREACHED, end: ["cancelled", "relay"] },
	},
	"a stranger's, and the only holder is down": {
		...{ by: "relay", relay: "out", who: STRANGER, heard: NOT_PENDING, end: null },
	},
	"a stranger's without a verdict ends nothing": {
		...{ by: "relay", relay: null, who: STRANGER, heard: /no relay available/, end: null },
	},
	"a stranger's of what the fallback holds": { by: "fallback", who: STRANGER, heard: NOT_PENDING, end: null },
	"a stranger's is the relay's to judge, and goes to nobody else": {
		...{ by: "both", relay: NOT_FOUND, who: STRANGER, heard: NOT_PENDING, end: null },
	},
};

for (const [name, { by, who = {}, heard, end, ...said }] of Object.entries(CASES)) {
	scenario(`by hash: ${name}`, async (fixture) => {
		await held(fixture, by);
		const asked: string[] = [];
		for (const one of ["relay", "fallback"] as const) {
			const answer = said[one];
			const isUnavailable = answer === "out" || answer === "behind an open breaker";
			fixture[one].isUnavailable ||= isUnavailable;
			fixture[one].isReachable = answer === "behind an open breaker";
			if (answer === undefined || answer === "out") continue;
			fixture[one].answers = [answer === "behind an open breaker" ? YES : (answer ?? BROKEN_OFF)];
			asked.push(one);
		}
		if (heard === true) assert.equal(await cancel(fixture, who), true);
		else await assert.rejects(cancel(fixture, who), heard);
		assert.deepEqual(endOf(fixture), end);
		const called = (["relay", "fallback"] as const).filter((one) => fixture[one].called.length > 0);
		assert.deepEqual(called, asked);
		if (end === null) assert.equal(fixture.journal.get(HASH)?.inProgress, false);
		else if (end.length > 1) await assert.rejects(cancel(fixture, who), UNREACHED, "nor is it known later");
		else assert.equal(await cancel(fixture, who), true, "again by one who may");
	});
}

scenario("a relay's refusal is returned and the row stays", async (fixture) => {
	const { journal, relay } = fixture;
	await held(fixture, "relay");
	relay.answers = [NOT_FOUND];
	await assert.rejects(cancel(fixture), NOT_PENDING);
	assert.notEqual(journal.get(HASH), null);
});

scenario(
	"the relay learns what an owner cancels, since it may come after the cancel; of a stranger it learns nothing",
	async (fixture) => {
		const { relay } = fixture;
		await held(fixture, "relay");
		relay.answers = [NOT_FOUND, YES];
		await assert.rejects(cancel(fixture, STRANGER), NOT_PENDING);
		await cancel(fixture);
		const { hash, from, to, nonce, gasLimit, value } = ONE;
		const ends = ["cancels", hash, from, nonce, to, gasLimit, value].join(" ");
		assert.deepEqual(
			relay.called.map(({ headers }) => headers["x-boost-ends"]),
			[undefined, ends],
		);
	},
);

scenario(
	"the sender's cancel of what its owner has cancelled waits for the fallback too",
	async (fixture) => {
		const { relay, fallback, request } = fixture;
		await held(fixture, "both");
		relay.isUnavailable = false;
		relay.answers = [YES, YES];
		fallback.answers = [BROKEN_OFF];
		await assert.rejects(cancel(fixture), UNREACHED);
		const caller = { ...request().caller, signer: OWNER.address };
		await assert.rejects(cancel(fixture, { caller }), UNREACHED);
		const cancels = relay.called.filter(({ method }) => method === "eth_cancelTransaction");
		assert.equal(cancels.length, 2, "the relay has cancelled it for both");
	},
);

scenario("a cancel whose end is not on disk is not true, and true once it is", async (fixture) => {
	const { relay, disk } = fixture;
	await held(fixture, "relay");
	relay.answers = [YES];
	disk.broken = true;
	await assert.rejects(cancel(fixture), /the journal can't be written/);
	disk.broken = false;
	await fixture.clock.advance(10_000);
	assert.equal(await cancel(fixture), true);
});

scenario("nor is a soft cancel, repeated or not", async (fixture) => {
	const { disk, clock } = fixture;
	await held(fixture, "relay", SOFT);
	disk.broken = true;
	for (let i = 0; i < 2; i += 1) await assert.rejects(soft(fixture), /the journal can't be written/);
	disk.broken = false;
	await clock.advance(10_000);
	assert.equal((await soft(fixture)).cancels, true);
});

scenario("the signed cancel of a page's transaction stays in the name of its client", async (fixture) => {
	const { relay, journal, request } = fixture;
	const { caller } = request();
	await held(fixture, "relay", { caller: { ...caller, origin: "https://app.example" } });
	relay.answers = [BROKEN_OFF];
	await assert.rejects(cancel(fixture, { caller: { ...caller, signer: OWNER.address } }), UNREACHED);
	assert.equal(journal.rows.get(HASH)?.address, "192.0.2.1");
});

for (const [relay, relayKnowsClient, heard] of [
	[
		"does not believe boost about clients",
		false,
		/no relay available: the relay does not trust boost's client addresses/,
	],
	// A boost instance that has just started, or taken over, may be asked to cancel before its relay
	// has ever answered.
	["has not answered about clients", null, /no relay available: the relay has not answered yet/],
] as const) {
	const name = `without a row at boost, and a relay that ${relay}: a client's word is no reason to ask it`;
	scenario(
		name,
		async (fixture) => {
			await assert.rejects(cancel(fixture), heard);
			assert.deepEqual(fixture.relay.called, []);
		},
		{ relayKnowsClient },
	);
}

scenario("a row without a holder is cancelled at once; a mined one is no longer pending", async (fixture) => {
	const { journal, relay, submissions, request } = fixture;
	await held(fixture, "relay");
	await journal.notHeld(HASH, "relay");
	assert.equal(await cancel(fixture), true);
	const other = signedTransaction({ nonce: 1n, by: OWNER });
	await submissions.submit(other.raw, request());
	await journal.end(other.hash, "mined");
	relay.isUnavailable = true;
	await assert.rejects(cancel(fixture, {}, other.hash), NOT_PENDING);
});

scenario("the client gets the result once the cancel is on disk", async (fixture) => {
	const { relay, disk, clock } = fixture;
	await held(fixture, "relay");
	relay.answers = [YES];
	disk.hold = true;
	let isTold = false;
	const told = cancel(fixture).then(() => {
		isTold = true;
	});
	await clock.advance(100);
	assert.equal(isTold, false);
	disk.finish(true);
	await told;
});

for (const by of ["fallback", "both"] as const) {
	scenario(
		`flashbots holds it, ${by}: told how to take it back, and it goes to nobody else`,
		async (fixture) => {
			const { journal, relay, fallback } = fixture;
			await held(fixture, by);
			relay.answers = [YES];
			await assert.rejects(
				cancel(fixture),
				/^RpcError: the fallback has it: send a self-transfer with nonce 0$/,
			);
			assert.deepEqual(journal.get(HASH)?.holders, ["fallback"]);
			const { presence } = journal.rows.live(HASH)?.at.relay ?? {};
			if (by === "both") assert.equal(presence, "abandoned", "not handed back to the relay");
			const before = relay.sent.length;
			await soft(fixture);
			assert.equal(relay.sent.length, before);
			assert.equal(fallback.hashes.at(-1), selfTransfer().hash);
		},
		{ dialect: "flashbots" },
	);
}

/**
 * How the fallback came to acknowledge a transaction that the relay has or may have, and the result
 * of its cancel while the relay is down.
 */
const KEPT = [
	["the relay gave no verdict", "mevblocker", UNREACHED],
	["the relay gave no verdict", "flashbots", /the fallback has it: send/],
	["the relay gave no verdict", "plain", /the fallback has it: send/],
	["it was forwarded", "mevblocker", UNREACHED],
	["it was forwarded", "flashbots", /the fallback has it: send/],
	["it was forwarded", "plain", /the fallback has it: send/],
] as const;
for (const [how, dialect, heard] of KEPT) {
	scenario(
		`what a fallback has acknowledged is its own after a restart: ${how}, ${dialect}`,
		async (before) => {
			before.chain.nextNonce = "0x0";
			await held(before, how === "it was forwarded" ? "relay" : "both");
			before.relay.isUnavailable = true;
			const next = (nonce: bigint) => signedTransaction({ nonce, by: OWNER });
			await before.submissions.submit(next(1n).raw, before.request());
			assert.deepEqual(before.fallback.hashes, [HASH, next(1n).hash]);

			const fixture = await requestFixture({ dialect, disk: before.disk });
			const { relay, fallback, submissions, request, chain } = fixture;
			chain.nextNonce = "0x0";
			relay.isUnavailable = true;
			fallback.deliveries = [refusal("txpool is full")];
			fallback.answers = [YES];
			await assert.rejects(submissions.submit(next(2n).raw, request()), /txpool is full/);
			await assert.rejects(cancel(fixture), heard);
			const isCancelled = heard === UNREACHED;
			assert.equal(fallback.called.length, isCancelled ? 1 : 0);
			assert.deepEqual(endOf(fixture), isCancelled ? ["cancelled", "relay"] : null);
			assert.deepEqual(fallback.hashes, [next(2n).hash], "nothing that it has is sent again");
		},
		{ dialect },
	);
}

scenario("an upstream that becomes a holder during a cancel receives it too", async (fixture) => {
	const { journal, relay, fallback } = fixture;
	await held(fixture, "fallback");
	relay.isUnavailable = false;
	fallback.onCall = () => journal.held(HASH, "relay");
	fallback.answers = [YES];
	relay.answers = [YES];
	assert.equal(await cancel(fixture), true);
	assert.deepEqual([relay.called.length, endOf(fixture)], [1, ["cancelled"]]);
});

scenario(
	"a transaction that is cancelled while its submission hangs is sent to no other upstream",
	async (fixture) => {
		const { submissions, relay, fallback, request } = fixture;
		const answer = hanging(relay);
		const submitted = submissions.submit(ONE.raw, request());
		const say = await answer;
		relay.answers = [NOT_FOUND, YES];
		await assert.rejects(cancel(fixture), NOT_PENDING);
		assert.equal(fixture.journal.get(HASH)?.inProgress, true, "a cancel that fails leaves it to its request");
		relay.answers = [YES];
		assert.equal(await cancel(fixture), true);
		say(BROKEN_OFF);
		assert.equal((await submitted).tx.hash, HASH);
		assert.equal(fallback.sent.length, 0, "it was forwarded after its user cancelled it");
		assert.deepEqual(endOf(fixture), ["cancelled", "relay"], "it may arrive there late");
	},
);

scenario("a row that is acknowledged elsewhere during its cancel is cancelled there too", async (fixture) => {
	const { submissions, relay, fallback, request, triggers } = fixture;
	relay.deliveries = [BROKEN_OFF];
	const answer = hanging(fallback);
	const submitted = submissions.submit(ONE.raw, request());
	const say = await answer;
	relay.answers = [YES];
	await assert.rejects(cancel(fixture), UNREACHED, "the fallback may still get it");
	const before = triggers();
	say(ACKNOWLEDGED);
	await submitted;
	assert.deepEqual(endOf(fixture), ["cancelled", "fallback"]);
	assert.ok(triggers() > before, "nobody was woken to take it back");
});

scenario(
	"a soft cancel ends the earlier transaction and is not kept; its bytes are known afterwards",
	async (fixture) => {
		const { journal, relay, fallback, submissions, request } = fixture;
		await held(fixture, "relay", SOFT);
		let isUnderWay: boolean | undefined;
		relay.deliveries = [
			async () => {
				isUnderWay = journal.get(HASH)?.inProgress;
				return ACKNOWLEDGED;
			},
		];
		assert.equal((await soft(fixture)).cancels, true);
		assert.equal(isUnderWay, true, "nobody else sees to it meanwhile");
		assert.deepEqual([endOf(fixture), journal.depth], [["cancelled"], 0]);
		relay.isUnavailable = true;
		assert.equal((await soft(fixture)).cancels, true);
		assert.equal((await submissions.submit(ONE.raw, request())).tx.hash, HASH);
		assert.equal(fallback.sent.length, 0, "neither may be revived");
	},
);

/**
 * The holder of the earlier transaction, the upstream's answer, the client's answer, and the
 * ending.
 */
const SOFTLY: readonly (readonly [
	string,
	"relay" | "fallback",
	Said,
	true | RegExp,
	readonly string[] | null,
])[] = [
	[
		"is the relay's verdict where it refuses",
		"relay",
		refusal("nonce too low: next nonce 1"),
		/nonce too low/,
		null,
	],
	["without a verdict: it goes nowhere else", "relay", BROKEN_OFF, UNREACHED, ["cancelled", "relay"]],
	["goes to the fallback with the flag that makes it free", "fallback", ACKNOWLEDGED, true, ["cancelled"]],
	[
		"is not sent where it would cost",
		"fallback",
		ACKNOWLEDGED,
		/fallback has it and offers no free cancel/,
		null,
	],
];
for (const [name, by, delivery, heard, end] of SOFTLY) {
	const dialect = name.includes("cost") ? "plain" : "mevblocker";
	scenario(
		`a soft cancel ${name}`,
		async (fixture) => {
			await held(fixture, by, SOFT);
			const [upstream, other] =
				by === "relay" ? [fixture.relay, fixture.fallback] : [fixture.fallback, fixture.relay];
			upstream.deliveries = [delivery];
			if (heard === true) assert.equal((await soft(fixture)).cancels, true);
			else await assert.rejects(soft(fixture), heard);
			assert.deepEqual([endOf(fixture), other.sent.length], [end, 0]);
			const isSent = dialect === "mevblocker";
			assert.deepEqual(upstream.hashes, isSent ? [HASH, selfTransfer().hash] : [HASH]);
			if (by === "fallback" && isSent)
				assert.equal(upstream.sent.at(-1)?.target, `/${SOFT.path}?${SOFT.search}`);
			assert.equal(fixture.journal.get(HASH)?.inProgress ?? false, false);
		},
		{ dialect },
	);
}

scenario("a self-transfer replaces one that allows no soft cancel", async (fixture) => {
	await held(fixture, "relay", { path: "fast", search: "softCancellations=true" });
	assert.equal((await soft(fixture)).cancels, false);
	assert.deepEqual(endOf(fixture), ["replaced"]);
});

/**
 * Transactions of the same sender with the same nonce, and the reason why each may end nothing
 * here.
 */
const OF_ANOTHER_CHAIN: readonly (readonly [string, object, RegExp])[] = [
	[
		"a cancel for another chain",
		{ to: OWNER.address, chainId: 1n },
		/^RpcError: invalid chain id for signer: have 1 want 31337$/,
	],
	[
		"a legacy cancel for another chain",
		{ to: OWNER.address, type: 0, chainId: 1n },
		/invalid chain id for signer: have 1/,
	],
	["a replacement for another chain", { chainId: 5n }, /invalid chain id for signer: have 5/],
	[
		"a cancel without gas",
		{ to: OWNER.address, gasLimit: 20_999n },
		/^RpcError: intrinsic gas too low: gas 20999, minimum needed 21000$/,
	],
	[
		"a replacement whose tip is above its fee cap",
		{ maxFeePerGas: 1n, maxPriorityFeePerGas: 2n },
		/^RpcError: max priority fee per gas higher/,
	],
];
for (const [name, fields, heard] of OF_ANOTHER_CHAIN) {
	for (const by of ["relay", "fallback"] as const) {
		scenario(`${name} ends nothing that the ${by} holds, and goes nowhere`, async (fixture) => {
			const { submissions, request } = fixture;
			await held(fixture, by, SOFT);
			const { raw } = signedTransaction({ nonce: 0n, by: OWNER, ...fields });
			await assert.rejects(submissions.submit(raw, request()), heard);
			assert.equal(endOf(fixture), null);
			assert.deepEqual([...fixture.relay.hashes, ...fixture.fallback.hashes], [HASH]);
		});
	}
}

scenario(
	"before the chain is known no transaction is ended by another; afterwards it is",
	async (fixture) => {
		const { submissions, request, chain } = fixture;
		chain.id = null;
		await held(fixture, "fallback", SOFT);
		const UNKNOWN = /^RpcError: no relay available: the chain id is not known yet/;
		await assert.rejects(soft(fixture), UNKNOWN);
		const { raw } = signedTransaction({ nonce: 0n, by: OWNER, maxFeePerGas: 10n ** 11n });
		await assert.rejects(submissions.submit(raw, request()), UNKNOWN);
		assert.deepEqual([endOf(fixture), fixture.fallback.hashes], [null, [HASH]]);
		chain.id = 31_337n;
		assert.equal((await soft(fixture)).cancels, true);
		assert.deepEqual(endOf(fixture), ["cancelled"]);
	},
);
