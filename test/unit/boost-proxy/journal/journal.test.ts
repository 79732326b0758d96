// Opening a journal: every record can be read again, damaged ones are left out, other versions and
// chains are refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ABSENT, type DeliveryState } from "../../../../boost-proxy/domain/deliveryState.ts";
import { onlyOwner } from "../../../../boost-proxy/domain/owners.ts";
import { endRow, newNotes, type Row } from "../../../../boost-proxy/domain/row.ts";
import { ChainBinding } from "../../../../boost-proxy/journal/chain.ts";
import {
	decodeBirth,
	decodeState,
	encodeBirth,
	encodeState,
	keyOf,
	rawOfBirth,
	readKey,
} from "../../../../boost-proxy/journal/records.ts";
import { Background } from "../../../../shared/background.ts";
import type { RpcAnswer } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { allTakenBack } from "../../../../shared/ownership.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import {
	diskKey,
	fixture,
	hashOf,
	newEntry,
	openedVerbs,
	rawOf,
	reopened,
	TTL_MS,
} from "./journalFixture.ts";

const KEY = { id: 36, hash: hashOf(1) };
const { raw: _, ...KNOWN } = newEntry(1, {
	nonce: 2n ** 63n,
	path: "noreverts",
	search: 'refundRecipient=0x1&referrer="é"',
	softCancellations: true,
	replacesAtUpstreams: ["fallback"],
});
const state = (presence: DeliveryState["presence"], more: Partial<DeliveryState> = {}): DeliveryState => ({
	...{
		presence,
		retryAt: 0,
		epoch: null,
		faults: 0,
		...{ replacementPending: false, askedAt: 0, cancelPending: false },
		attempts: presence === "absent" ? 0 : 1,
		...more,
	},
});
const LIVE: Row = {
	...{
		...KEY,
		from: KNOWN.from,
		nonce: KNOWN.nonce,
		fields: KNOWN.fields,
		path: KNOWN.path,
		address: KNOWN.address,
	},
	...{ search: KNOWN.search, softCancellations: true, receivedAt: KNOWN.receivedAt },
	requestId: KNOWN.requestId,
	...{ bytes: rawOf(1).length, aliveUntil: 7, acknowledged: false, requests: 0, desired: "live", endedAt: 0 },
	...{ owners: KNOWN.owners, ownersPending: false, bySender: false },
	at: { relay: state("has"), fallback: state("absent", { replacementPending: true }) },
	version: 0,
	notes: newNotes(0),
};
const OTHER = onlyOwner({ path: "fast", search: "", softCancellations: false, address: "192.0.2.77" });
const SHARED: Row = {
	...LIVE,
	owners: [...KNOWN.owners, { ...OTHER, cancelled: true }],
	ownersPending: true,
};
const cancelled = endRow(LIVE, "cancelled", 9, ["relay", "fallback"]);
const STATES: Readonly<Record<string, Row>> = {
	"a live one": LIVE,
	"an acknowledged one": { ...LIVE, acknowledged: true, at: { relay: ABSENT, fallback: ABSENT } },
	"an ended one": cancelled,
	"one of two owners": SHARED,
	"an ended one of two owners": { ...endRow(SHARED, "cancelled", 9), bySender: true },
	"one of a page": { ...LIVE, owners: KNOWN.owners.map((one) => ({ ...one, address: null })) },
	"one that its address has cancelled": endRow(
		{ ...LIVE, owners: allTakenBack(KNOWN.owners) },
		"cancelled",
		9,
	),
	"a mined one": endRow(LIVE, "mined", 9),
	"one that two have": { ...LIVE, at: { relay: state("has"), fallback: state("has") } },
	"one that two may have": { ...LIVE, at: { relay: state("has"), fallback: state("unanswered") } },
	"one with an attempt without an answer": {
		...LIVE,
		at: { relay: state("absent"), fallback: state("has", { askedAt: 8 }) },
	},
	"one that was sent again": {
		...LIVE,
		at: { relay: state("has", { attempts: 2 }), fallback: state("absent", { attempts: 3 }) },
	},
	"an ended one with an attempt without an answer": endRow(
		{ ...LIVE, at: { relay: state("absent"), fallback: state("has", { askedAt: 8 }) } },
		"cancelled",
		9,
		["fallback"],
	),
};

test("every kind of row is the same after encoding and decoding", () => {
	for (const [name, state] of Object.entries(STATES)) {
		assert.deepEqual(decodeState(KEY, encodeState(state), rawOf(1).length), state, name);
		const birth = encodeBirth(state, rawOf(1));
		assert.deepEqual(decodeBirth(KEY, birth), state, name);
		const raw = rawOfBirth(birth);
		birth.fill(0);
		assert.deepEqual(raw, rawOf(1), "bytes of its own");
	}
});

const changed = (fields: Readonly<Record<string, unknown>>, open: Readonly<Record<string, unknown>> = {}) => {
	const read: { open: object } = JSON.parse(encodeState(LIVE).toString());
	return Buffer.from(JSON.stringify({ ...read, open: { ...read.open, ...open }, ...fields }));
};

const DAMAGED: Readonly<Record<string, Buffer>> = {
	"no bytes": Buffer.alloc(0),
	"no JSON": Buffer.from("{secret"),
	null: Buffer.from("null"),
	"an empty object": Buffer.from("{}"),
	"neither open nor ended": changed({ open: undefined }),
	"an open part that is none": changed({ open: null }),
	"a nonce that is none": changed({ nonce: "one" }),
	"a nonce that is a number": changed({ nonce: 1 }),
	"a path that is none": changed({ path: "toString" }),
	"a holder that is none": changed({}, { holders: ["relay", "nobody"] }),
	"holders that are no list": changed({}, { holders: "relay" }),
	"a time that is none": changed({}, { aliveUntil: null }),
	"a time of an attempt that is none": changed({ fallbackAskedAt: "now" }),
	"an ending that is none": changed({ ending: "lost", endedAt: 1, cancelsPendingAt: [] }),
	"an end without a time": changed({ ending: "mined", cancelsPendingAt: [] }),
};

test("malformed records are refused", () => {
	for (const [name, bytes] of Object.entries(DAMAGED))
		assert.throws(() => decodeState(KEY, bytes, 1), Error, name);
	const birth = encodeBirth(LIVE, rawOf(1));
	const start = 4 + birth.readUInt32BE(0);
	for (const end of [0, 3, 4, 20, start - 1, start]) {
		const cut = birth.subarray(0, end);
		assert.throws(() => decodeBirth(KEY, cut), Error, `${end} bytes`);
		assert.throws(() => rawOfBirth(cut), Error, `${end} bytes`);
	}
});

test("damaged records are left out and logged; the others are read", async () => {
	const { journal, disk } = await fixture();
	for (const n of [1, 2, 3, 4, 5]) await journal.add(newEntry(n), "relay");
	await journal.held(hashOf(4), "fallback");
	await journal.held(hashOf(5), "fallback");
	await journal.close();
	disk.map.set(diskKey("b/", 2), Buffer.from("junk"));
	disk.map.set(diskKey("s/", 3), Buffer.from("junk"));
	disk.map.delete(diskKey("b/", 4));
	const errors: string[] = [];
	const log = {
		...silentLogger,
		error: (message: string, fields?: object) => errors.push(`${message} ${JSON.stringify(fields)}`),
	};
	const again = await openedVerbs({ ttlMs: TTL_MS }, { kv: disk, clock: new ManualClock(), log });
	// The state before the damaged record counts.
	assert.deepEqual(
		[...again.open()].map(({ hash }) => hash),
		[1, 3, 5].map(hashOf),
	);
	assert.equal(errors.length, 4, errors.join("\n"));
	assert.equal(errors.at(-1), 'journal records skipped {"count":3}');
	assert.doesNotMatch(errors.join(""), /junk/);
	// Only the bytes are damaged: reading them fails.
	disk.map.set(diskKey("b/", 1), Buffer.alloc(2));
	await assert.rejects(again.raw(hashOf(1)));
	assert.equal(await again.add(newEntry(2), "relay"), true);
	assert.deepEqual(await (await reopened(disk)).journal.raw(hashOf(2)), rawOf(2));
	await again.close();
});

test("a row's key says its place and its hash, and grows with each row", () => {
	const keys = [{ id: 1, hash: hashOf(9) }, KEY, { id: 37, hash: hashOf(0) }];
	for (const key of keys) assert.deepEqual(readKey("b/", keyOf("b/", key)), key);
	const texts = keys.map((key) => keyOf("b/", key));
	assert.deepEqual(texts, [...texts].sort());
});

test("a journal can be opened while its store can't be written", async () => {
	const { journal, disk } = await fixture();
	await journal.add(newEntry(1), "relay");
	await journal.close();
	disk.broken = true;
	assert.notEqual((await fixture({}, disk)).journal.get(hashOf(1)), null);
});

test("a damaged record does no harm to the row of its hash that came later", async () => {
	const { journal, disk } = await fixture();
	await journal.add(newEntry(4), "relay");
	await journal.close();
	disk.map.set(diskKey("b/", 4, 1), Buffer.from("junk"));
	for (const _ of [1, 2]) {
		const { journal: later } = await fixture({}, disk);
		await later.add(newEntry(4), "relay");
		assert.deepEqual(await later.raw(hashOf(4)), rawOf(4));
		await later.close();
	}
});

test("a journal of another version is refused, and left as it is", async () => {
	const { journal, disk } = await fixture();
	await journal.close();
	disk.map.set("m/format", Buffer.from("4"));
	await assert.rejects(fixture({}, disk), { code: "OTHER_FORMAT" });
	assert.equal(disk.map.get("m/format")?.toString(), "4");
});

const TOLD: readonly RpcAnswer[] = [{ ok: true, result: "0x7a69" }];

/** A start of a journal on `disk` whose chain answers one thing after another. */
async function bindingFixture(answers: (readonly RpcAnswer[] | null)[], disk = new FakeDisk()) {
	const clock = new ManualClock();
	const errors: string[] = [];
	const log = { ...silentLogger, error: (message: string) => errors.push(message) };
	const binding = await ChainBinding.open(disk);
	const chain = { batch: async () => answers.shift() ?? null };
	const background = new Background({}, { log: silentLogger });
	const start = () => binding.start({ chain, background, clock, log });
	return { binding, clock, disk, errors, start, bound: () => disk.map.get("m/chain")?.toString() };
}

/** One that is bound to chain 1. */
function othersDisk(): FakeDisk {
	const disk = new FakeDisk();
	disk.map.set("m/chain", Buffer.from("1"));
	disk.map.set("m/format", Buffer.from("5"));
	return disk;
}

test("a journal is bound at the start to the chain that an upstream answers", async () => {
	const { binding, start, bound, disk } = await bindingFixture([TOLD]);
	await start();
	assert.deepEqual([binding.chainId, bound()], [31_337n, "31337"]);
	await (await bindingFixture([TOLD], disk)).start();
});

test("if none answers, or the disk fails, the start goes on and it is asked again", async () => {
	const { binding, bound, clock, disk, start } = await bindingFixture([
		...[null, [{ ok: true as const, result: "x" }], TOLD, TOLD],
	]);
	await start();
	await clock.advance(1_000);
	assert.deepEqual([binding.chainId, bound()], [null, undefined]);
	disk.broken = true;
	await clock.advance(1_000);
	assert.deepEqual([binding.chainId, bound()], [31_337n, undefined], "the chain itself is known");
	disk.broken = false;
	await clock.advance(1_000);
	assert.deepEqual([bound(), clock.timers], ["31337", 0]);
});

test("until an upstream answers, a journal that is bound knows its chain", async () => {
	const { binding, start } = await bindingFixture([null], othersDisk());
	assert.equal(binding.chainId, 1n);
	await start();
	assert.equal(binding.chainId, 1n);
});

test("a journal of another chain stops the start, or is logged if that shows later", async () => {
	await assert.rejects((await bindingFixture([TOLD], othersDisk())).start(), {
		code: "OTHER_CHAIN",
		message:
			"the journal belongs to another chain (chain id 1; the upstreams have 31337): set DATA_DIR or DATABASE_URL to another one",
	});
	const { start, clock, errors } = await bindingFixture([null, TOLD], othersDisk());
	await start();
	await clock.advance(1_000);
	assert.deepEqual([errors, clock.timers], [["journal belongs to another chain"], 0]);
});
