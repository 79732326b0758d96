// A boost instance whose database gives no answer. It carries on if there was no other instance
// when the database last answered. Else it throws, so that no caller acts as if the others had
// nothing.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { UnknownElsewhereError } from "../../../../boost-proxy/domain/ports.ts";
import { Parts } from "../../../../boost-proxy/parts/parts.ts";
import { Background } from "../../../../shared/background.ts";
import type { OtherPart, PartRecord, StoreParts } from "../../../../shared/kv/port.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { hashOf, fixture as journalFixture, senderOf } from "../journal/journalFixture.ts";

const ADDRESS = "192.0.2.1";
const HASH = hashOf(1);
const FROM = senderOf(1);
const ANOTHER: readonly OtherPart[] = [{ part: "boost/2", isLeft: false }];

/** A database with no rows, that answers while the test says so. */
class FakeDatabase implements StoreParts {
	readonly own = "boost";
	readonly lookups = 2;
	isDown = false;
	/** Whether look-ups by hash alone fail. */
	failsLookups = false;
	others_: readonly OtherPart[] = [];
	/** The names of the calls so far, in order. */
	readonly asked: string[] = [];

	others = () => this.#answer("others", this.others_);
	ofSender = () => this.#answer("ofSender", []);
	ofHashes = async (): Promise<readonly PartRecord[]> => {
		const found = await this.#answer("ofHashes", []);
		if (this.failsLookups) throw new Error("too slow");
		return found;
	};
	ownOf = () => this.#answer("ownOf", []);
	alsoElsewhere = () => this.#answer("alsoElsewhere", []);
	open = () => this.#answer("open", null);
	give = () => this.#answer("give", { left: [], isFenced: false });
	wishes = () => this.#answer("wishes", []);
	wish = () => this.#answer("wish", undefined);
	unwish = () => this.#answer("unwish", undefined);
	isOpen = () => this.#answer("isOpen", false);
	granted = () => this.#answer("granted", undefined);
	onNews(): void {}

	async #answer<T>(what: string, answer: T): Promise<T> {
		this.asked.push(what);
		if (this.isDown) throw new Error("no answer");
		return answer;
	}
}

/** Started with a database in which it sees `others`; null: one that does not answer. */
async function started(t: TestContext, others: readonly OtherPart[] | null) {
	const database = new FakeDatabase();
	database.others_ = others ?? [];
	database.isDown = others === null;
	const clock = new ManualClock();
	const { journal } = await journalFixture();
	const background = new Background({}, { log: silentLogger });
	const { rows } = journal;
	const given = { rows, clock, background, log: silentLogger, fits: async () => true };
	const parts = new Parts({ ...given, parts: database, hold: async () => () => {} });
	const starting = parts.component.start();
	await clock.advance(2_000);
	await starting;
	t.after(() => parts.component.stop());
	return { database, clock, parts };
}

type Started = Awaited<ReturnType<typeof started>>;

/** Everything that depends on the other instances. */
const QUESTIONS: Readonly<Record<string, (parts: Parts) => Promise<unknown>>> = {
	find: (parts) => parts.find(HASH, ADDRESS),
	liveOf: (parts) => parts.liveOf(FROM),
	withRowsOf: (parts) =>
		parts.withRowsOf({ from: FROM, nonce: 1n, hash: HASH, ms: 100 }, async ({ live }) => live),
};

/** Each answer, or `unknown`. */
async function answers({ parts, clock }: Started): Promise<Record<string, unknown>> {
	const found: Record<string, unknown> = {};
	for (const [name, ask] of Object.entries(QUESTIONS)) {
		const asking = ask(parts).catch((thrown: unknown) => {
			assert.ok(thrown instanceof UnknownElsewhereError, `${name}: ${thrown}`);
			assert.match(
				thrown.message,
				/^the database did not answer, so it is not known whether another boost instance has /,
			);
			return "unknown";
		});
		await clock.advance(1);
		found[name] = await asking;
	}
	return found;
}

const NONE = { find: null, liveOf: [], withRowsOf: [] };
const UNKNOWN = { find: "unknown", liveOf: "unknown", withRowsOf: "unknown" };

test("another instance, and the database answers: what it says", async (t) => {
	assert.deepEqual(await answers(await started(t, ANOTHER)), NONE);
});

test("another instance, and no answer: it is not known, whether the database is asked or not", async (t) => {
	const own = await started(t, ANOTHER);
	own.database.isDown = true;
	assert.deepEqual(await answers(own), UNKNOWN);
	own.database.asked.length = 0;
	assert.deepEqual(await answers(own), UNKNOWN);
	assert.deepEqual(own.database.asked, [], "it was down a moment ago");
	own.database.isDown = false;
	await own.clock.advance(1_000);
	assert.deepEqual(await answers(own), NONE);
});

test("an instance that is gone, whose part nobody has adopted yet, counts as another one", async (t) => {
	const own = await started(t, [{ part: "boost/2", isLeft: true }]);
	own.database.isDown = true;
	assert.deepEqual(await answers(own), UNKNOWN);
});

test("no other instance when the database last answered: it carries on, however long the outage lasts", async (t) => {
	const own = await started(t, []);
	own.database.isDown = true;
	for (let second = 0; second < 10; second += 1) {
		await own.clock.advance(1_000);
		assert.deepEqual(await answers(own), NONE);
	}
	assert.equal(own.parts.wasAlone, true);
});

test("the others have left: it carries on as soon as the database has said so", async (t) => {
	const own = await started(t, ANOTHER);
	own.database.others_ = [];
	await own.clock.advance(1_100);
	own.database.isDown = true;
	await own.clock.advance(3_000);
	assert.deepEqual(await answers(own), NONE);
});

test("a database that has not answered since the start: it is not known", async (t) => {
	const own = await started(t, null);
	assert.equal(own.parts.wasAlone, false);
	assert.deepEqual(await answers(own), UNKNOWN);
	own.database.isDown = false;
	await own.clock.advance(2_000);
	assert.deepEqual(await answers(own), NONE);
});

test("a look-up by hash that fails makes no other request unknown", async (t) => {
	const own = await started(t, ANOTHER);
	own.database.failsLookups = true;
	assert.deepEqual(await answers(own), { ...NONE, find: "unknown" });
	own.database.failsLookups = false;
	await nextTurn();
	assert.deepEqual(await answers(own), NONE, "and is asked again at once");
});
