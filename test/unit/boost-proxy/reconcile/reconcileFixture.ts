// The fixture for reconciler and observer: a real journal in memory, two scripted upstreams and a chain, and a manual clock.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dialectOf } from "../../../../boost-proxy/dialects/dialects.ts";
import type { ChainReads, DialectName, Sendable, SendOptions } from "../../../../boost-proxy/domain/ports.ts";
import type { Delivery, UpstreamName, WireVerdict } from "../../../../boost-proxy/domain/request.ts";
import { markLost, type NewRow } from "../../../../boost-proxy/domain/row.ts";
import { createObserver } from "../../../../boost-proxy/reconcile/observer.ts";
import { Reconciler } from "../../../../boost-proxy/reconcile/reconciler.ts";
import { Background } from "../../../../shared/background.ts";
import { nextTurn } from "../../../../shared/clock.ts";
import type { RpcAnswer, RpcCall } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { FakeUpstreamBase } from "../fakeUpstream.ts";
import type { LiveRow } from "../journal/journalFixture.ts";
import { hashOf, fixture as journalFixture, newEntry } from "../journal/journalFixture.ts";

/** Account `n`. */
export const senderOf = (n: number): string => `0x${n.toString(16).padStart(40, "0")}`;

export const SLOT_MS = 12_000;
export const INTERVAL_MS = 1_000;
export const ACKNOWLEDGED: Delivery = { kind: "acknowledged", known: false };

export function refused(message = "insufficient funds", code = -32000): Delivery {
	return { kind: "rejected", error: { code, message } };
}

export function fault(sent: boolean): Delivery {
	return { kind: "failed", fault: sent ? "timeout" : "refused", sent };
}

/** An upstream that keeps what it is given, unless `answer` says otherwise. */
export class FakeUpstream extends FakeUpstreamBase {
	/** Stages by hash; it has no record of others. */
	readonly stages = new Map<string, string>();
	/** All deliveries in order, refused and lost ones too. */
	readonly delivered: { readonly tx: Sendable; readonly options: SendOptions }[] = [];
	readonly called: { readonly call: RpcCall; readonly options: SendOptions }[] = [];
	/** Its verdict on a delivery, before it keeps it. */
	answer: (tx: Sendable) => Delivery | null | Promise<Delivery | null> = () => ACKNOWLEDGED;
	/** Another answer to a call than its own. */
	answerCall: (call: RpcCall) => RpcAnswer | null | undefined | Promise<RpcAnswer | null | undefined> = () =>
		undefined;
	/** Status pages by hash. */
	readonly pages = new Map<string, unknown>();
	readonly pagesAsked: string[] = [];
	refuses: (path: string) => string | null = () => null;

	get hashes(): readonly string[] {
		return this.delivered.map(({ tx }) => tx.hash);
	}

	override refusal(path: string): string | null {
		return this.refuses(path);
	}

	override async deliver(tx: Sendable, options: SendOptions): Promise<Delivery | null> {
		if (this.breaker.isUnavailable) return null;
		this.delivered.push({ tx, options });
		const answer = await this.answer(tx);
		if (answer?.kind === "acknowledged" && this.isOver(tx.hash)) this.stages.set(tx.hash, "BROADCAST");
		return answer;
	}

	/** Whether it would accept it again. */
	isOver(hash: string): boolean {
		const stage = this.stages.get(hash);
		return stage === undefined || stage === "EXPIRED" || stage === "DROPPED";
	}

	override async call(call: RpcCall, options: SendOptions): Promise<RpcAnswer | null> {
		if (this.breaker.isUnavailable) return null;
		this.called.push({ call, options });
		const answer = await this.answerCall(call);
		if (answer !== undefined) return answer;
		const [param] = call.params;
		if (call.method === "service_transactionStatuses") {
			assert.ok(Array.isArray(param), "hashes are asked for");
			const result = param.map((hash: string) => ({
				hash,
				status: "UNKNOWN",
				stage: this.stages.get(hash) ?? null,
			}));
			return { ok: true, result };
		}
		const hash = String(param);
		if (call.method === "eth_getTransactionByHash") {
			return { ok: true, result: this.stages.has(hash) ? { hash } : null };
		}
		assert.equal(call.method, "eth_cancelTransaction");
		if (this.stages.get(hash) !== "BROADCAST") return failure("transaction not found or no longer pending");
		this.stages.set(hash, "CANCELLED");
		return { ok: true, result: true };
	}

	/** How often it was asked for `method`, and the first parameter each time. */
	asked(method: string): readonly unknown[] {
		return this.called.flatMap(({ call }) => (call.method === method ? [call.params[0]] : []));
	}

	override async statusPage(hash: string): Promise<unknown> {
		if (this.breaker.isUnavailable) return null;
		this.pagesAsked.push(hash);
		return this.pages.get(hash) ?? null;
	}
}

export function failure(message: string, code = -32000): RpcAnswer {
	const error: WireVerdict = { code, message };
	return { ok: false, error };
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
	const relay = new FakeUpstream("relay");
	const fallback = new FakeUpstream("fallback");
	fallback.dialect = dialectOf(dialect);
	const upstreams = { relay, fallback: alone ? null : fallback };
	const chain = new FakeChain();
	const background = new Background({}, { log: silentLogger });
	const outcomes: string[] = [];
	const { rows } = journal;
	const shared = { rows, upstreams, chain, clock, background, log: silentLogger };
	const reconciler = new Reconciler(
		{ budgetMs: 2_000, deadlineMs: 1_000, tickMs: 1_000 },
		{ ...shared, onHandover: ({ to, outcome }) => outcomes.push(`${to} ${outcome}`) },
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

	/** An entry that its request has brought to `holders`; number `n` is its nonce unless `changed` says so. */
	const opened = async (
		n: number,
		holders: readonly UpstreamName[] = ["relay"],
		changed: Partial<NewRow> & { readonly acknowledged?: boolean } = {},
	): Promise<string> => {
		const { acknowledged = true, ...rest } = changed;
		const hash = hashOf(n);
		const [first = "relay", ...others] = holders;
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
	};
	return {
		...{ journal, clock, relay, fallback, chain, handover, observer, background, outcomes },
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

/** Moves on by `ms`, an interval at a time; work that is done in slices, between which others have their turn, ends in each. */
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

/** A test of a fixture that ends with it. `out`: the relay is. `followed`: the observer has begun. */
export function scenario(
	name: string,
	body: (fixture: ReconcileFixture) => Promise<void>,
	{ out = false, followed = out, ...options }: FixtureOptions & ScenarioOptions = {},
): void {
	test(name, async () => {
		const fixture = await reconcileFixture(options);
		if (out) fixture.relay.breaker.set(true);
		if (followed) await fixture.observer.start();
		await body(fixture);
		await fixture.stop();
	});
}

export { hashOf };
