// Properties of random lives of transactions: submitted, replaced, cancelled, through outages, upstreams that give no verdict, and crashes of
// boost. Whatever leaves boost is what the plan decides at that moment, nothing that has ended is sent, and nothing
// that was acknowledged is lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { dialectOf } from "../../../../boost-proxy/dialects/dialects.ts";
import { DIALECTS, type DialectName, type Sendable } from "../../../../boost-proxy/domain/ports.ts";
import {
	type Delivery,
	type RequestState,
	UPSTREAMS,
	type UpstreamName,
} from "../../../../boost-proxy/domain/request.ts";
import { holdersOf } from "../../../../boost-proxy/domain/row.ts";
import { plan } from "../../../../boost-proxy/reconcile/plan.ts";
import { Reconciler } from "../../../../boost-proxy/reconcile/reconciler.ts";
import { Situation } from "../../../../boost-proxy/reconcile/situation.ts";
import { Cancels } from "../../../../boost-proxy/requests/cancels.ts";
import { Failover } from "../../../../boost-proxy/requests/failover.ts";
import { Submissions } from "../../../../boost-proxy/requests/submissions.ts";
import { Rows } from "../../../../boost-proxy/rows/rows.ts";
import { Background } from "../../../../shared/background.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { PRAGUE } from "../../../support/forks.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { ACKNOWLEDGED, FakeChain, FakeUpstream, fault, refused } from "./reconcileFixture.ts";

const BUDGET_MS = 10_000;
const TTL_MS = 3_600_000;
const NONCES = 3;
/** By nonce: one, another with the same nonce, and a self-transfer, which may cancel softly. */
const TXS = Array.from({ length: NONCES }, (_, n) => {
	const by = testAccount(0);
	const nonce = BigInt(n);
	return [
		signedTransaction({ nonce, by }),
		signedTransaction({ nonce, value: 1n, by }),
		signedTransaction({ nonce, to: by.address, by }),
	] as const;
});
const FROM = testAccount(0).address.toLowerCase();
const SOFT = { path: "noreverts", search: "softCancellations=true" } as const;

const ANSWERS: Readonly<Record<string, Delivery>> = {
	acknowledges: ACKNOWLEDGED,
	hangs: fault(true),
	refuses: fault(false),
	rejects: refused("txpool is full"),
};
const upstream = fc.constantFrom(...UPSTREAMS);
const nonce = fc.nat(NONCES - 1);
const step = fc.oneof(
	{
		weight: 6,
		arbitrary: fc.record({ kind: fc.constant("submit"), nonce, which: fc.nat(2), soft: fc.boolean() }),
	},
	{ weight: 2, arbitrary: fc.record({ kind: fc.constant("cancel"), nonce, which: fc.nat(1) }) },
	{ weight: 3, arbitrary: fc.record({ kind: fc.constant("breaker"), upstream, isOut: fc.boolean() }) },
	{
		weight: 3,
		arbitrary: fc.record({
			kind: fc.constant("answers"),
			upstream,
			how: fc.constantFrom(...Object.keys(ANSWERS)),
		}),
	},
	{ weight: 3, arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.integer({ min: 1, max: 5_000 }) }) },
	{ weight: 1, arbitrary: fc.record({ kind: fc.constant("crash") }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
const life = fc.record({
	steps: fc.array(step, { minLength: 1, maxLength: 25 }),
	dialect: fc.constantFrom(...DIALECTS),
});

/** One process of boost on a disk. */
class Process {
	readonly rows: Rows;
	readonly relay = new FakeUpstream("relay");
	readonly fallback: FakeUpstream;
	readonly reconciler: Reconciler;
	readonly #submissions: Submissions;
	readonly #cancels: Cancels;
	readonly #situation: Situation;
	readonly #clock: ManualClock;
	/** Of the requests that are under way. */
	readonly #asked = new Set<string>();
	readonly violations: string[] = [];
	sent = 0;
	isDead = false;

	constructor(rows: Rows, clock: ManualClock, before: Process | null, dialect: DialectName) {
		this.rows = rows;
		this.#clock = clock;
		this.fallback = new FakeUpstream("fallback");
		this.fallback.dialect = dialectOf(dialect);
		const upstreams = { relay: this.relay, fallback: this.fallback };
		for (const name of UPSTREAMS) {
			const was = before?.[name];
			if (was?.isUnavailable === true) this[name].breaker.set(true);
			for (const [hash, stage] of was?.stages ?? []) this[name].stages.set(hash, stage);
		}
		const shared = { rows, upstreams, clock, log: silentLogger };
		this.#situation = new Situation(upstreams, shared);
		const background = new Background({}, { log: silentLogger });
		this.reconciler = new Reconciler(
			{ budgetMs: BUDGET_MS, deadlineMs: 1_000, tickMs: 1_000 },
			{ ...shared, chain: new FakeChain(), background },
		);
		const failover = new Failover({ budgetMs: BUDGET_MS }, shared);
		const requests = { ...shared, failover, reconciler: this.reconciler };
		this.#cancels = new Cancels({ ...requests, relayKnowsClient: () => true });
		this.#submissions = new Submissions({
			...{ ...requests, cancels: this.#cancels },
			...{ chainId: () => 31_337n, fork: () => PRAGUE },
		});
		for (const name of UPSTREAMS) this.answers(name, "acknowledges");
		this.reconciler.start();
	}

	answers(name: UpstreamName, how: string): void {
		this[name].answer = (tx) => {
			this.#seen(tx, name);
			return ANSWERS[how] ?? null;
		};
	}

	/** Whether it gets its hash. */
	async submit(raw: Uint8Array, hash: string, changed: Partial<RequestState>): Promise<boolean> {
		this.#asked.add(hash);
		const state = this.#request(changed);
		return this.#submissions
			.submit(raw, state)
			.then(
				({ cancels }) => !cancels,
				() => false,
			)
			.finally(() => this.#asked.delete(hash));
	}

	cancel(hash: string): Promise<unknown> {
		return this.#cancels.cancel(hash, this.#request({})).catch(() => {});
	}

	/** A transaction leaves: it must be what the plan decides now, or a client's that is under way. */
	#seen({ hash }: Sendable, to: UpstreamName): void {
		if (this.isDead) return;
		this.sent += 1;
		const row = this.rows.live(hash);
		const isSelfTransfer = TXS.some(([, , self]) => self.hash === hash);
		// A soft cancel has no row of its own.
		if (row === null && isSelfTransfer && this.#asked.has(hash)) return;
		if (row === null) {
			this.violations.push(`${hash} has ended, and is sent to the ${to}`);
			return;
		}
		if (this.#asked.has(hash)) return;
		const known = this.rows.liveOf(FROM);
		const { health } = this.#situation;
		const actions = [...plan(known, health, this.#situation.time(), 0n)];
		const next = actions.find(({ kind }) => kind === "send");
		if (next?.row.hash === hash && next.to === to) return;
		this.violations.push(`${hash} is sent to the ${to}, and not planned`);
	}

	#request(changed: Partial<RequestState>): RequestState {
		return {
			caller: {
				address: "192.0.2.1",
				...{ signer: null, origin: null, via: null, signature: null },
				life: { bytes: 0, onGone: () => {} },
			},
			...{ path: "fast", search: "", target: null, whole: null },
			until: this.#clock.monotonic() + BUDGET_MS,
			routing: { answeredBy: new Set(), attempts: 0, dropped: new Set() },
			...changed,
		};
	}
}

/** Boost, its disk and its clients, one process after another. */
class World {
	readonly clock = new ManualClock();
	readonly #dialect: DialectName;
	#disk = new FakeDisk();
	#process: Process | null = null;
	/** Acknowledged, and neither cancelled nor joined by another one of its nonce. */
	readonly #owed = new Set<string>();

	constructor(dialect: DialectName) {
		this.#dialect = dialect;
	}

	async play(steps: readonly Step[]): Promise<void> {
		await this.#start();
		for (const one of steps) await this.#do(one);
		// Both are well again, and some minutes go by.
		for (const name of UPSTREAMS) {
			this.#now.answers(name, "acknowledges");
			this.#now[name].breaker.set(false);
		}
		await this.#start();
		await this.clock.advance(180_000);
		const { rows, violations, reconciler } = this.#now;
		for (const row of rows.liveOf(FROM)) {
			if (!row.acknowledged) continue;
			const last = rows.liveOf(FROM, row.nonce).findLast(({ acknowledged }) => acknowledged);
			if (last === row) assert.notDeepEqual(holdersOf(row), [], `${row.hash} has no holder`);
		}
		for (const hash of this.#owed) {
			const row = rows.live(hash);
			const holders = row === null ? [] : holdersOf(row);
			assert.ok(
				holders.some((name) => this.#now[name].stages.has(hash)),
				`${hash} was acknowledged, and is lost`,
			);
		}
		assert.deepEqual(violations, []);
		await reconciler.stop();
	}

	get #now(): Process {
		assert.ok(this.#process !== null);
		return this.#process;
	}

	/** A process takes over what lies on the disk; the one before it ends without a word. */
	async #start(): Promise<void> {
		const before = this.#process;
		if (before !== null) {
			assert.deepEqual(before.violations, []);
			before.isDead = true;
			void before.reconciler.stop();
		}
		const disk = new FakeDisk();
		for (const [key, value] of this.#disk.map) disk.map.set(key, value);
		this.#disk = disk;
		const { clock } = this;
		const rows = await Rows.load(
			{ ttlMs: TTL_MS },
			{ kv: disk, clock, log: silentLogger, chainTime: { now: () => clock.now() } },
		);
		this.#process = new Process(rows, clock, before, this.#dialect);
	}

	async #do(one: Step): Promise<void> {
		const process = this.#now;
		if (one.kind === "crash") await this.#start();
		else if (one.kind === "wait") await this.clock.advance(one.ms);
		else if (one.kind === "breaker") process[one.upstream].breaker.set(one.isOut);
		else if (one.kind === "answers") process.answers(one.upstream, one.how);
		else {
			const { hash, raw } = TXS[one.nonce]?.[one.which] ?? assert.fail();
			for (const other of TXS[one.nonce] ?? []) this.#owed.delete(other.hash);
			if (one.kind === "cancel") return void (await process.cancel(hash));
			const isAcknowledged = await process.submit(raw, hash, one.soft && one.which < 2 ? SOFT : {});
			const isAlone = process.rows.liveOf(FROM, BigInt(one.nonce)).length === 1;
			if (isAcknowledged && isAlone && process.rows.live(hash) !== null) this.#owed.add(hash);
		}
	}
}

test("whatever happens, what leaves is planned, and what was acknowledged stays", async () => {
	await fc.assert(
		fc.asyncProperty(life, ({ steps, dialect }) => new World(dialect).play(steps)),
		{ numRuns: 1_000 },
	);
});
