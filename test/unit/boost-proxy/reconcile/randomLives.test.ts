// Properties of random lives of transactions: submitted, replaced, cancelled, through outages,
// upstreams that give no verdict, and crashes of boost. All requests that leave boost by HTTP are
// those that the plan decides at that moment. No ended transaction is sent, and no acknowledged one
// is lost.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { DIALECTS, type DialectName, NO_OTHERS } from "../../../../boost-proxy/domain/ports.ts";
import {
	type Delivery,
	type RequestState,
	UPSTREAMS,
	type UpstreamName,
} from "../../../../boost-proxy/domain/request.ts";
import { holdersOf, isLive, type Row } from "../../../../boost-proxy/domain/row.ts";
import type { CancelOutcome, Tried } from "../../../../boost-proxy/reconcile/asks.ts";
import { plan, planCancel, planSubmission } from "../../../../boost-proxy/reconcile/plan.ts";
import { Reconciler } from "../../../../boost-proxy/reconcile/reconciler.ts";
import { Situation } from "../../../../boost-proxy/reconcile/situation.ts";
import { Cancels } from "../../../../boost-proxy/requests/cancels.ts";
import { Failover } from "../../../../boost-proxy/requests/failover.ts";
import { Submissions } from "../../../../boost-proxy/requests/submissions.ts";
import { Rows } from "../../../../boost-proxy/rows/rows.ts";
import { Background } from "../../../../shared/background.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { NO_TRACES } from "../../../../shared/tracing/traces.ts";
import { PRAGUE } from "../../../support/forks.ts";
import { sized } from "../../../support/length.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { bothFar, type Left, NearSide, refusal, type Said, Tap } from "../wire.ts";

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

const BY_RAW = new Map(TXS.flat().map(({ raw, hash }) => [`0x${raw.toString("hex")}`, hash]));
const FAR = bothFar((raw) => BY_RAW.get(raw) ?? assert.fail());
/**
 * An upstream's responses to submissions and to other calls, and the result of a submission in the
 * plan.
 */
const MANNERS = {
	acknowledges: ["keeps", "keeps", { kind: "acknowledged", known: false }],
	rejects: [
		...([refusal("txpool is full"), "keeps"] as const),
		{ kind: "rejected", error: { code: -32000, message: "txpool is full" } },
	],
	"breaks off": ["breaks off", "breaks off", { kind: "failed", fault: "reset", sent: true }],
	refuses: ["refuses", "refuses", { kind: "failed", fault: "refused", sent: false }],
} as const satisfies Record<string, readonly [Said, Said, Delivery]>;
type Manner = keyof typeof MANNERS;

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
			kind: fc.constant("manner"),
			upstream,
			manner: fc.constantFrom(...(Object.keys(MANNERS) as Manner[])),
		}),
	},
	{ weight: 3, arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.integer({ min: 1, max: 5_000 }) }) },
	{ weight: 1, arbitrary: fc.record({ kind: fc.constant("crash") }) },
);
type Step =
	| (typeof step extends fc.Arbitrary<infer T> ? T : never)
	| { kind: "stray"; upstream: UpstreamName };
const life = fc.record({
	steps: fc.array(step, { minLength: 1, maxLength: 25 }),
	dialect: fc.constantFrom(...DIALECTS),
});

/** A client's request that is under way, and the requests that have left for it. */
interface UnderWay {
	/**
	 * The possible results so far: a request may leave for it, or for boost itself at the same time.
	 */
	came: readonly (readonly Tried[])[];
	/**
	 * The rows that a cancel ends. For a submission its siblings, which it ends if it is a soft
	 * cancel.
	 */
	readonly rows: readonly Row[];
	readonly cancelledAt: Map<UpstreamName, CancelOutcome>;
}

/** One process of boost on a disk. */
class Process {
	readonly rows: Rows;
	readonly #reconciler: Reconciler;
	readonly #submissions: Submissions;
	readonly #cancels: Cancels;
	readonly #situation: Situation;
	readonly #clock: ManualClock;
	readonly #upstreams: Readonly<Record<UpstreamName, NearSide>>;
	readonly #manners: Readonly<Record<UpstreamName, Manner>>;
	/** By hash. */
	readonly #submitted = new Map<string, UnderWay>();
	readonly #cancelled = new Map<string, UnderWay>();

	constructor(
		rows: Rows,
		clock: ManualClock,
		{ dialect, out, manners }: Pick<World, "dialect" | "out" | "manners">,
	) {
		this.rows = rows;
		this.#clock = clock;
		this.#manners = manners;
		const upstreams = {
			relay: new NearSide(FAR.relay, null, clock),
			fallback: new NearSide(FAR.fallback, dialect, clock),
		};
		this.#upstreams = upstreams;
		for (const name of out) upstreams[name].isOut = true;
		const shared = { rows, upstreams, clock, log: silentLogger };
		this.#situation = new Situation(upstreams, shared);
		const background = new Background({}, { log: silentLogger });
		const chain = { batch: async () => [{ ok: true, result: "0x0" } as const] };
		this.#reconciler = new Reconciler(
			{ budgetMs: BUDGET_MS, deadlineMs: 1_000, tickMs: 1_000 },
			{ ...shared, others: NO_OTHERS, chain, background },
		);
		const failover = new Failover({ budgetMs: BUDGET_MS }, shared);
		const requests = { ...shared, failover, others: NO_OTHERS, reconciler: this.#reconciler };
		this.#cancels = new Cancels({ ...requests, relayKnowsClient: () => true });
		this.#submissions = new Submissions({
			...{ ...requests, cancels: this.#cancels },
			...{ chainId: () => 31_337n, fork: () => PRAGUE, traces: NO_TRACES },
		});
		this.#reconciler.start();
	}

	/** A transaction leaves past the plan. */
	async stray(to: UpstreamName): Promise<void> {
		const [tx] = TXS[0] ?? assert.fail();
		const sendable = { ...tx, path: "fast", search: "" } as const;
		await this.#upstreams[to].deliver(sendable, { deadlineMs: 1_000, caller: null });
	}

	isOut(name: UpstreamName, isOut: boolean): void {
		this.#upstreams[name].isOut = isOut;
	}

	/** Whether it gets its hash. */
	async submit(raw: Buffer, hash: string, changed: Partial<RequestState>): Promise<boolean> {
		const { nonce } = TXS.flat().find((one) => one.hash === hash) ?? assert.fail();
		const rows = this.rows.liveOf(FROM, nonce).filter((one) => one.hash !== hash);
		this.#submitted.set(hash, { came: [[]], rows, cancelledAt: new Map() });
		try {
			return !(await this.#submissions.submit(raw, this.#request(changed))).cancels;
		} catch {
			return false;
		} finally {
			this.#submitted.delete(hash);
		}
	}

	async cancel(hash: string): Promise<void> {
		const row = this.rows.live(hash);
		this.#cancelled.set(hash, { came: [[]], rows: row === null ? [] : [row], cancelledAt: new Map() });
		await this.#cancels.cancel(hash, this.#request({})).catch(() => {});
		this.#cancelled.delete(hash);
	}

	/** Why a request that leaves for an upstream must not; null if it may. */
	judge({ method, hash }: Left, to: UpstreamName): string | null {
		if (method === "eth_sendRawTransaction")
			return this.#isSent(hash, to) ? null : `${hash} is sent to the ${to}, and not planned`;
		if (method === "eth_cancelTransaction")
			return this.#isCancelled(hash, to) ? null : `a cancel goes to the ${to}, and is not planned`;
		return method === "service_transactionStatuses" ? null : `${method} is no question of boost's`;
	}

	/** Nothing leaves it any more, and what is under way is cut off. */
	async end(): Promise<void> {
		void this.#reconciler.stop();
		await Promise.all(UPSTREAMS.map((name) => this.#upstreams[name].end()));
	}

	#isSent(hash: string, to: UpstreamName): boolean {
		const { health } = this.#situation;
		const time = this.#situation.time();
		const known = this.rows.liveOf(FROM);
		const next = [...plan(known, health, time, 0n)].find(({ kind }) => kind === "send");
		const isPlanned = next?.row.hash === hash && next.to === to;
		const asked = this.#submitted.get(hash);
		if (asked === undefined) return isPlanned;
		const tx = TXS.flat().find((one) => one.hash === hash) ?? assert.fail();
		const row = this.rows.live(hash);
		if (row === null) return this.#isCancelledBy(asked, to, tx);
		const sendable = { ...tx, path: row.path, search: row.search };
		const state = this.#request({});
		const ask = { tx: sendable, agreed: sendable, nonce: tx.nonce, before: row.at, state };
		const came = asked.came.flatMap((one) => {
			const now = planSubmission(ask, one, known, health, time, 0n);
			const isNext = now?.kind === "submit" && now.row.hash === hash && now.to === to;
			return isNext ? [[...one, { by: to, delivery: MANNERS[this.#manners[to]][2] }]] : [];
		});
		if (came.length === 0) return isPlanned;
		asked.came = isPlanned ? [...asked.came, ...came] : came;
		return true;
	}

	#isCancelled(hash: string, to: UpstreamName): boolean {
		const row = this.rows.get(hash);
		if (row !== null && !isLive(row)) {
			const actions = plan([row], this.#situation.health, this.#situation.time());
			for (const { kind, to: by } of actions) if (kind === "cancel" && by === to) return true;
		}
		const asked = this.#cancelled.get(hash);
		if (asked === undefined) return false;
		// The relay may have transactions from others that boost has no row of.
		if (asked.rows.length === 0) return to === "relay" && row === null;
		return this.#isCancelledBy(asked, to, null);
	}

	/** Whether a client's cancel goes there next, by hash or by a self-transfer. */
	#isCancelledBy(asked: UnderWay, to: UpstreamName, tx: (typeof TXS)[number][2] | null): boolean {
		const known = asked.rows.map((row) => this.rows.live(row.hash) ?? row);
		const ask = { rows: asked.rows, tx, byRight: true, asksRelay: false, state: this.#request({}) };
		for (;;) {
			const next = planCancel(ask, asked.cancelledAt, known, this.#situation.health);
			if (next === null) return false;
			asked.cancelledAt.set(next.to, { kind: "done", isStillWanted: false });
			if (next.to === to) return next.kind === (tx === null ? "cancel" : "cancelSoftly");
			if (next.kind !== "forget" && next.kind !== "unreached") return false;
		}
	}

	#request(changed: Partial<RequestState>): RequestState {
		return {
			caller: {
				address: "192.0.2.1",
				...{ signer: null, origin: null, via: null, signature: null, requestId: null },
				life: { bytes: 0, onGone: () => {} },
			},
			...{ path: "fast", search: "", target: null },
			until: this.#clock.monotonic() + BUDGET_MS,
			routing: { answeredBy: new Set(), attempts: 0, dropped: new Set() },
			...changed,
		};
	}
}

/** Boost, its disk and its clients, one process after another. */
class World {
	readonly dialect: DialectName;
	readonly out = new Set<UpstreamName>();
	readonly manners: Record<UpstreamName, Manner> = { relay: "acknowledges", fallback: "acknowledges" };
	readonly #tap: Tap;
	readonly #clock = new ManualClock();
	#disk = new FakeDisk();
	#process: Process | null = null;
	/** Acknowledged, and neither cancelled nor joined by another one of its nonce. */
	readonly #owed = new Set<string>();
	readonly #violations: string[] = [];

	constructor(dialect: DialectName) {
		this.dialect = dialect;
		this.#tap = new Tap([FAR.relay, FAR.fallback], (call, to) => {
			const violation = this.#now.judge(call, to);
			if (violation !== null) this.#violations.push(violation);
		});
		this.#clock.settled = () => this.#tap.settled();
		for (const name of UPSTREAMS) {
			FAR[name].reset();
			this.#behaves(name, "acknowledges");
		}
	}

	async play(steps: readonly Step[]): Promise<void> {
		try {
			await this.#start();
			for (const one of steps) await this.#do(one);
			// Both are up again, and some minutes go by.
			for (const name of UPSTREAMS) {
				this.#behaves(name, "acknowledges");
				this.#isOut(name, false);
			}
			await this.#start();
			await this.#clock.advance(180_000);
			this.#check();
		} finally {
			await this.#process?.end();
			// A late request would count for the next life.
			for (const name of UPSTREAMS) await FAR[name].quiet();
			this.#tap.close();
		}
	}

	#check(): void {
		assert.deepEqual(this.#violations, []);
		for (const name of UPSTREAMS) {
			const left = FAR[name].left.map(({ body }) => body);
			for (const body of FAR[name].arrived) {
				const at = left.indexOf(body);
				assert.notEqual(at, -1, `it has left unseen: ${body}`);
				left.splice(at, 1);
			}
		}
		const { rows } = this.#now;
		for (const row of rows.liveOf(FROM)) {
			if (!row.acknowledged) continue;
			const last = rows.liveOf(FROM, row.nonce).findLast(({ acknowledged }) => acknowledged);
			if (last === row) assert.notDeepEqual(holdersOf(row), [], `${row.hash} has no holder`);
		}
		for (const hash of this.#owed) {
			const row = rows.live(hash);
			const holders = row === null ? [] : holdersOf(row);
			const isThere = holders.some((name) => FAR[name].stages.has(hash));
			assert.ok(isThere, `${hash} was acknowledged, and is lost`);
		}
	}

	get #now(): Process {
		assert.ok(this.#process !== null);
		return this.#process;
	}

	#behaves(name: UpstreamName, manner: Manner): void {
		this.manners[name] = manner;
		const [submission, call] = MANNERS[manner];
		FAR[name].onSubmission = () => submission;
		FAR[name].onCall = () => call;
	}

	/** A process takes over what lies on the disk; the one before it ends without a word. */
	async #start(): Promise<void> {
		await this.#process?.end();
		await this.#tap.settled();
		const disk = new FakeDisk();
		for (const [key, value] of this.#disk.map) disk.map.set(key, value);
		this.#disk = disk;
		const clock = this.#clock;
		const rows = await Rows.load(
			{ ttlMs: TTL_MS },
			{ kv: disk, clock, log: silentLogger, chainTime: { now: () => clock.now() } },
		);
		this.#process = new Process(rows, clock, this);
	}

	#isOut(name: UpstreamName, isOut: boolean): void {
		if (isOut) this.out.add(name);
		else this.out.delete(name);
		this.#now.isOut(name, isOut);
	}

	async #do(one: Step): Promise<void> {
		const process = this.#now;
		if (one.kind === "crash") await this.#start();
		else if (one.kind === "stray") await process.stray(one.upstream);
		else if (one.kind === "wait") await this.#clock.advance(one.ms);
		else if (one.kind === "breaker") this.#isOut(one.upstream, one.isOut);
		else if (one.kind === "manner") {
			await this.#tap.settled();
			this.#behaves(one.upstream, one.manner);
		} else {
			const { hash, raw } = TXS[one.nonce]?.[one.which] ?? assert.fail();
			for (const other of TXS[one.nonce] ?? []) this.#owed.delete(other.hash);
			if (one.kind === "cancel") return process.cancel(hash);
			const isAcknowledged = await process.submit(raw, hash, one.soft && one.which < 2 ? SOFT : {});
			const isAlone = process.rows.liveOf(FROM, BigInt(one.nonce)).length === 1;
			if (isAcknowledged && isAlone && process.rows.live(hash) !== null) this.#owed.add(hash);
		}
	}
}

before(() => Promise.all([FAR.relay.start(), FAR.fallback.start()]));
after(() => Promise.all([FAR.relay.stop(), FAR.fallback.stop()]));

test("whatever happens, what leaves is planned, and what was acknowledged stays", async () => {
	await fc.assert(
		fc.asyncProperty(life, ({ steps, dialect }) => new World(dialect).play(steps)),
		{ numRuns: sized(50, 2_000) },
	);
});

test("what leaves past the plan is seen", async () => {
	const submitted = { kind: "submit", nonce: 0, which: 0, soft: false } as const;
	for (const upstream of UPSTREAMS) {
		for (const steps of [[], [submitted]]) {
			const played = new World("mevblocker").play([...steps, { kind: "stray", upstream }]);
			await assert.rejects(played, new RegExp(`is sent to the ${upstream}, and not planned`));
		}
	}
});
