// Requests about transactions that ended so long ago that their rows are on disk alone, or in an
// earlier process: they are answered as right after their ends. A transaction that never came is
// not looked up, so that a failing disk costs it nothing.

import assert from "node:assert/strict";
import type { Ending } from "../../../../boost-proxy/domain/row.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { ACKNOWLEDGED, type RequestFixture, requestFixture, scenario } from "./requestFixture.ts";

const ONE = signedTransaction({ nonce: 0 });
const REPLACING = signedTransaction({ nonce: 0, value: 1n });
const SELF_TRANSFER = signedTransaction({ nonce: 0, to: testAccount(0).address });
const STRANGER = { address: "198.51.100.7" };
const NOT_FOUND = {
	code: -32000,
	message:
		"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key",
};
const NOT_PENDING = /transaction not found or no longer pending/;
const YES = { ok: true, result: true } as const;
/** No row stays in memory that need not. */
const OPTIONS = { limits: { maxRecent: 0 } };
/** Longer than a mined row can be reopened, and then than any row stays in memory. */
const LONG_MS = 400_000;

/** `ONE` was submitted, and has ended, long ago. */
async function endedLongAgo(fixture: RequestFixture, ending: Ending): Promise<void> {
	const { submissions, journal, clock, request, relay } = fixture;
	await submissions.submit(ONE.raw, request());
	await journal.end(ONE.hash, ending);
	await clock.advance(LONG_MS);
	assert.equal(journal.rows.get(ONE.hash), null, "it is on disk alone");
	relay.sent.length = 0;
}

/** Counts the look-ups on disk. */
function lookUps({ disk }: RequestFixture) {
	const count = { made: 0, fail: false };
	const get = disk.get.bind(disk);
	disk.get = (key) => {
		count.made += 1;
		return count.fail ? Promise.reject(new Error("disk")) : get(key);
	};
	return count;
}

for (const ending of ["mined", "replaced", "cancelled"] as const) {
	scenario(
		`the same bytes as what was ${ending} get their hash, and are not sent`,
		async (fixture) => {
			await endedLongAgo(fixture, ending);
			for (const when of ["later", "in another process"]) {
				const one = when === "later" ? fixture : await requestFixture({ ...OPTIONS, disk: fixture.disk });
				const { tx, cancels } = await one.submissions.submit(ONE.raw, one.request());
				assert.deepEqual([tx.hash, cancels], [ONE.hash, ending === "cancelled"], when);
				assert.deepEqual([one.relay.hashes, one.journal.get(ONE.hash)], [[], null], when);
			}
		},
		OPTIONS,
	);
}

for (const ending of ["expired", "dropped"] as const) {
	scenario(
		`the same bytes as what was ${ending} are sent, and live and end like any others`,
		async (fixture) => {
			const { submissions, journal, relay, disk, request } = fixture;
			await endedLongAgo(fixture, ending);
			await submissions.submit(ONE.raw, request());
			assert.deepEqual([relay.hashes, journal.depth], [[ONE.hash], 1]);
			const keys = [...disk.map.keys()].filter((key) => key.endsWith(ONE.hash));
			assert.deepEqual(
				keys.map((key) => key.slice(0, 2)),
				["b/"],
				"nothing of the earlier life is left",
			);
			await journal.end(ONE.hash, "cancelled");
			const again = await requestFixture({ ...OPTIONS, disk });
			for (const one of [fixture, again]) await one.submissions.submit(ONE.raw, one.request());
			assert.deepEqual([relay.hashes, again.relay.hashes], [[ONE.hash], []]);
		},
		OPTIONS,
	);
}

scenario(
	"a cancel of what was cancelled is true for its owner, and for nobody else",
	async (fixture) => {
		const { cancels, relay, request } = fixture;
		await endedLongAgo(fixture, "cancelled");
		for (const when of ["later", "in another process"]) {
			const one = when === "later" ? fixture : await requestFixture({ ...OPTIONS, disk: fixture.disk });
			one.relay.answers = [stageOf("CANCELLED")];
			assert.equal(await one.cancels.cancel(ONE.hash, one.request()), true, when);
			one.relay.answers = [{ ok: false, error: NOT_FOUND }];
			await assert.rejects(one.cancels.cancel(ONE.hash, one.request(STRANGER)), NOT_PENDING, when);
			assert.equal(one.relay.called.length, 2, "a stranger's is the relay's to judge");
		}
		relay.answers = [stageOf("CANCELLED"), YES];
		assert.equal(await cancels.cancel(ONE.hash, request({ caller: signed(request()) })), true);
		assert.equal(relay.called.length, 4, "the sender's signature goes over all owners, at the relay too");
	},
	OPTIONS,
);

scenario(
	"a cancel of what was cancelled is an error once it is mined nevertheless, as far as the relay can be asked",
	async (fixture) => {
		const { cancels, relay, request } = fixture;
		await endedLongAgo(fixture, "cancelled");
		for (const stage of ["INCLUDED", "REVERTED"]) {
			relay.answers = [stageOf(stage)];
			await assert.rejects(cancels.cancel(ONE.hash, request()), NOT_PENDING, stage);
		}
		assert.equal(await cancels.cancel(ONE.hash, request()), true, "the relay gives no answer");
	},
	OPTIONS,
);

scenario(
	"a cancel of what was replaced is an error",
	async (fixture) => {
		await endedLongAgo(fixture, "replaced");
		await assert.rejects(fixture.cancels.cancel(ONE.hash, fixture.request()), NOT_PENDING);
	},
	OPTIONS,
);

/** The relay's answer about the stage of {@link ONE}. */
function stageOf(stage: string) {
	return { ok: true, result: [{ hash: ONE.hash, stage, held: false }] } as const;
}

/** The caller of a request whose body the sender has signed. */
function signed({ caller }: ReturnType<RequestFixture["request"]>) {
	return { ...caller, signer: ONE.from };
}

scenario(
	"a signed cancel that the relay did not get is pending there, in memory and after a restart",
	async (fixture) => {
		const { cancels, journal, relay, request, disk } = fixture;
		await endedLongAgo(fixture, "cancelled");
		relay.isUnavailable = true;
		await assert.rejects(
			cancels.cancel(ONE.hash, request({ caller: signed(request()) })),
			/no relay available/,
		);
		const again = await requestFixture({ ...OPTIONS, disk });
		for (const { rows } of [journal, again.journal]) {
			const [row, ...others] = rows.pendingCancels();
			assert.deepEqual([row?.hash, row?.bySender, others.length], [ONE.hash, true, 0]);
		}
		await assert.rejects(again.cancels.cancel(ONE.hash, again.request()), /no relay available/);
	},
	OPTIONS,
);

scenario(
	"a soft cancel's bytes get their hash again, and so do those of what it cancelled",
	async (fixture) => {
		const { submissions, relay, clock, request } = fixture;
		await submissions.submit(ONE.raw, request({ path: "noreverts", search: "softCancellations=true" }));
		assert.equal((await submissions.submit(SELF_TRANSFER.raw, request())).cancels, true);
		await clock.advance(LONG_MS);
		relay.sent.length = 0;
		for (const { raw } of [SELF_TRANSFER, ONE])
			assert.equal((await submissions.submit(raw, request())).cancels, true);
		assert.deepEqual(relay.hashes, []);
	},
	OPTIONS,
);

scenario(
	"two requests at once about what has expired send it once",
	async (fixture) => {
		const { submissions, cancels, journal, relay, request } = fixture;
		await endedLongAgo(fixture, "expired");
		const both = [submissions.submit(ONE.raw, request()), submissions.submit(ONE.raw, request(STRANGER))];
		// It was no longer pending when this came.
		await assert.rejects(cancels.cancel(ONE.hash, request()), NOT_PENDING);
		await Promise.all(both);
		assert.equal(journal.get(ONE.hash)?.holders.length, 1);
		assert.deepEqual(relay.hashes, [ONE.hash, ONE.hash], "the relay is notified of each client");
		assert.equal(journal.rows.live(ONE.hash)?.owners.length, 2);
	},
	OPTIONS,
);

scenario(
	"a transaction that never came is not looked up on disk",
	async (fixture) => {
		const { submissions, cancels, relay, request } = fixture;
		await endedLongAgo(fixture, "cancelled");
		const count = lookUps(fixture);
		count.fail = true;
		await submissions.submit(REPLACING.raw, request());
		await submissions.submit(REPLACING.raw, request());
		relay.answers = [YES];
		await cancels.cancel(REPLACING.hash, request());
		assert.equal(count.made, 0);
	},
	OPTIONS,
);

scenario(
	"while the disk can't be read, what may have been ended by its user is not sent; its cancel is the relay's to judge",
	async (fixture) => {
		const { submissions, cancels, relay, request } = fixture;
		await endedLongAgo(fixture, "cancelled");
		const count = lookUps(fixture);
		count.fail = true;
		await assert.rejects(submissions.submit(ONE.raw, request()), {
			message: "no relay available: the journal can't be read, in which this transaction has ended",
		});
		assert.deepEqual(relay.hashes, []);
		relay.answers = [YES];
		assert.equal(await cancels.cancel(ONE.hash, request()), true);
		assert.equal(relay.called.length, 1);
		count.fail = false;
		assert.equal((await submissions.submit(ONE.raw, request())).cancels, true);
	},
	OPTIONS,
);

scenario(
	"what is not on disk yet stays in memory, and so does what a request or an upstream may still need",
	async (fixture) => {
		const { submissions, journal, relay, disk, clock, request } = fixture;
		const others = [1, 2, 3].map((nonce) => signedTransaction({ nonce }));
		for (const { raw } of [ONE, ...others]) await submissions.submit(raw, request());
		const [pending, inProgress, mined] = others.map(({ hash }) => hash) as [string, string, string];
		await journal.end(pending, "cancelled", ["relay"]);
		journal.setInProgress(inProgress, true);
		await journal.end(inProgress, "replaced");
		await journal.end(mined, "mined");
		disk.broken = true;
		await assert.rejects(journal.end(ONE.hash, "cancelled"));
		await clock.advance(140_000);
		for (const hash of [ONE.hash, pending, inProgress, mined])
			assert.notEqual(journal.rows.get(hash), null, hash);
		relay.sent.length = 0;
		assert.equal((await submissions.submit(ONE.raw, request())).cancels, true);
		assert.deepEqual(relay.hashes, []);
		disk.broken = false;
		journal.setInProgress(inProgress, false);
		await clock.advance(LONG_MS);
		for (const hash of [ONE.hash, inProgress, mined]) assert.equal(journal.rows.get(hash), null, hash);
		assert.notEqual(journal.rows.get(pending), null);
	},
	OPTIONS,
);

scenario(
	"a delivery that comes through a minute after its transaction was cancelled is cancelled too",
	async (fixture) => {
		const { submissions, cancels, journal, relay, clock, request } = fixture;
		await submissions.submit(ONE.raw, request());
		let answer = (): void => {};
		relay.deliveries = [() => new Promise((resolve) => (answer = () => resolve(ACKNOWLEDGED)))];
		const joined = submissions.submit(ONE.raw, request(STRANGER));
		await clock.advance(0);
		relay.answers = [YES];
		await cancels.cancel(ONE.hash, request());
		await clock.advance(60_000);
		answer();
		await joined;
		assert.deepEqual(
			[...journal.rows.pendingCancels()].map(({ hash }) => hash),
			[ONE.hash],
		);
	},
	{ ...OPTIONS, budgetMs: 60_000 },
);
