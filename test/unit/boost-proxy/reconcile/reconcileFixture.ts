// The fixture for reconciler and observer: a real journal in memory, two scripted upstreams and a
// chain, and a manual clock.

import assert from "node:assert/strict";
import { test } from "node:test";
import { markLost } from "../../../../boost-proxy/domain/deliveries.ts";
import type { ChainReads, DialectName } from "../../../../boost-proxy/domain/ports.ts";
import { NO_OTHERS } from "../../../../boost-proxy/domain/ports.ts";
import type { UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import type { NewRow } from "../../../../boost-proxy/domain/row.ts";
import { createObserver } from "../../../../boost-proxy/reconcile/observer.ts";
import { Reconciler } from "../../../../boost-proxy/reconcile/reconciler.ts";
import { Background } from "../../../../shared/background.ts";
import { nextTurn } from "../../../../shared/clock.ts";
import type { RpcAnswer, RpcCall } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import type { LiveRow } from "../journal/journalFixture.ts";
import { hashOf, fixture as journalFixture, newEntry, rawOf } from "../journal/journalFixture.ts";
import { playUpstreams, refusal, type Said } from "../wire.ts";

/** Account `n`. */
export const senderOf = (n: number): string => `0x${n.toString(16).padStart(40, "0")}`;

export const SLOT_MS = 12_000;
export const INTERVAL_MS = 1_000;
/** An upstream's default: it keeps all that it receives. */
export const ACKNOWLEDGED: Said = "keeps";

export function refused(message = "insufficient funds", code = -32000): Said {
	return refusal(message, code);
}

export function fault(sent: boolean): Said {
	return sent ? "breaks off" : "refuses";
}

/** A chain by its latest nonces and receipts. */
export class FakeChain implements ChainReads {
	readonly nonces = new Map<string, bigint>();
	readonly receipts = new Set<string>();
	readonly batches: (readonly RpcCall[])[] = [];
	isDown = false;

	async batch(calls: readonly RpcCall[]): Promise<readonly RpcAnswer[] | null> {
		this.batches.push(calls);
		if (this.isDown) return null;
		return calls.map(({ method, params }) => {
			const of = String(params[0]);
			if (method === "eth_getTransactionCount") {
				return { ok: true, result: `0x${(this.nonces.get(of) ?? 0n).toString(16)}` };
			}
			assert.equal(method, "eth_getTransactionReceipt");
			return { ok: true, result: this.receipts.has(of) ? { transactionHash: of } : null };
		});
	}
}

export interface FixtureOptions {
	readonly dialect?: DialectName;
	/** No fallback at all. */
	readonly alone?: boolean;
}

/** Handover and observer; neither has begun. */
export async function reconcileFixture(options: FixtureOptions = {}) {
	const { dialect = "mevblocker", alone = false } = options;
	const { journal, clock } = await journalFixture();
	const hashes = new Map<string, string>();
	const hashOfRaw = (raw: string) => hashes.get(raw) ?? assert.fail("another transaction");
	const { relay, fallback, end } = await playUpstreams({ hashOf: hashOfRaw, clock, dialect });
	const upstreams = { relay: relay.near, fallback: alone ? null : fallback.near };
	const chain = new FakeChain();
	const background = new Background({}, { log: silentLogger });
	const outcomes: string[] = [];
	const { rows } = journal;
	/** Whether another boost instance reaches the relay. */
	const others = { ...NO_OTHERS, doOthersReach: false };
	const shared = { rows, upstreams, chain, clock, background, log: silentLogger };
	const reconciler = new Reconciler(
		{ budgetMs: 2_000, deadlineMs: 1_000, tickMs: 1_000 },
		{
			...shared,
			onHandover: ({ to, outcome }) => outcomes.push(`${to} ${outcome}`),
			others,
		},
	);
	reconciler.start();
	const handover = {
		wake: () => reconciler.trigger(),
		stop: () => reconciler.stop(),
		lost: (hash: string, by: UpstreamName) => {
			rows.change(hash, (row) => markLost(row, by));
		},
	};
	const observer = createObserver({ intervalMs: INTERVAL_MS }, { ...shared, slot: { ms: SLOT_MS } });

	/**
	 * An entry that its request has brought to `holders`; number `n` is its nonce unless `changed`
	 * says so.
	 */
	const opened = async (
		n: number,
		holders: readonly UpstreamName[] = ["relay"],
		changed: Partial<NewRow> & { readonly acknowledged?: boolean } = {},
	): Promise<string> => {
		const { acknowledged = true, ...rest } = changed;
		const hash = hashOf(n);
		const [first = "relay", ...others] = holders;
		hashes.set(`0x${rawOf(n).toString("hex")}`, hash);
		const entry = newEntry(n, { from: senderOf(1), receivedAt: clock.now(), ...rest });
		assert.equal(await journal.add(entry, first), true, "it is added");
		for (const by of others) await journal.held(hash, by);
		await journal.settle(hash, acknowledged);
		if (acknowledged)
			for (const by of holders) (by === "relay" ? relay : fallback).stages.set(hash, "BROADCAST");
		return hash;
	};
	const holders = (hash: string): readonly UpstreamName[] | null => journal.get(hash)?.holders ?? null;
	const stop = async (): Promise<void> => {
		const stopping = Promise.all([handover.stop(), observer.stop()]);
		await clock.advance(5_000);
		await stopping;
		await background.join();
		await end();
	};
	return {
		...{ journal, clock, relay, fallback, chain, handover, observer, background, outcomes, others },
		...{ opened, holders, stop },
	};
}

export type ReconcileFixture = Awaited<ReturnType<typeof reconcileFixture>>;

/** How an ended hash ended, or null. */
export function endingOf({ journal }: ReconcileFixture, hash: string): string | null {
	return journal.get(hash) === null ? (journal.justEnded(hash)?.ending ?? null) : null;
}

export function entryOf({ journal }: ReconcileFixture, hash: string): LiveRow {
	const entry = journal.get(hash);
	assert.ok(entry !== null, "it is open");
	return entry;
}

/** Turns of the event loop in which the longest work in slices ends. */
const TURNS = 500;

/**
 * Moves on by `ms`, an interval at a time; work that is done in slices, between which others have
 * their turn, ends in each.
 */
export async function advanceInSteps({ clock }: ReconcileFixture, ms: number): Promise<void> {
	for (let left = ms; left > 0; left -= INTERVAL_MS) {
		await clock.advance(Math.min(left, INTERVAL_MS));
		for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
	}
}

interface ScenarioOptions {
	readonly out?: boolean;
	readonly followed?: boolean;
}

/**
 * A test of a fixture that ends with it. `out`: the relay is. `followed`: the observer has begun.
 */
export function scenario(
	name: string,
	body: (fixture: ReconcileFixture) => Promise<void>,
	{ out = false, followed = out, ...options }: FixtureOptions & ScenarioOptions = {},
): void {
	test(name, async () => {
		const fixture = await reconcileFixture(options);
		if (out) fixture.relay.isOut = true;
		if (followed) await fixture.observer.start();
		try {
			await body(fixture);
		} finally {
			await fixture.stop();
		}
	});
}

export { hashOf };
