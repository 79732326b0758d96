// Two boost instances, the relay and a fallback, and the network between them. Each request leaves,
// arrives, is answered or is given up when a test says so, and a process can be suspended between
// any two of these. Boost's request handling and reconciler and the relay's pipeline are real.

import { dialectOf } from "../../../../boost-proxy/dialects/dialects.ts";
import type { Breaker, Dialect, Sendable, Upstream } from "../../../../boost-proxy/domain/ports.ts";
import { NO_OTHERS, type OtherBoosts } from "../../../../boost-proxy/domain/ports.ts";
import type { Caller, Delivery, RequestState, UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import { Homes } from "../../../../boost-proxy/homes/homes.ts";
import { Reconciler } from "../../../../boost-proxy/reconcile/reconciler.ts";
import { Cancels } from "../../../../boost-proxy/requests/cancels.ts";
import { Failover } from "../../../../boost-proxy/requests/failover.ts";
import { Submissions } from "../../../../boost-proxy/requests/submissions.ts";
import type { Rows } from "../../../../boost-proxy/rows/rows.ts";
import { Background } from "../../../../shared/background.ts";
import { nextTurn } from "../../../../shared/clock.ts";
import type { RpcAnswer, RpcCall } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { NOT_CANCELLABLE, STILL_WANTED, STILL_WANTED_REASON } from "../../../../shared/ownership.ts";
import { NO_TRACES } from "../../../../shared/tracing/traces.ts";
import { PRAGUE } from "../../../support/forks.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { StagesFixture } from "../../relay/stagesFixture.ts";
import { fixtureOn } from "../journal/journalFixture.ts";
import { SharedDisk } from "../journal/sharedDisk.ts";
import type { Choose } from "./explore.ts";

const OWNER = testAccount(0);
const GWEI = 1_000_000_000n;
/** Its fees would replace the self-transfer. */
export const TX = signedTransaction({
	...{ nonce: 0n, by: OWNER, maxFeePerGas: 200n * GWEI, maxPriorityFeePerGas: 20n * GWEI },
});
const REPLACEMENT = signedTransaction({
	...{ nonce: 0n, by: OWNER, maxFeePerGas: 400n * GWEI, maxPriorityFeePerGas: 40n * GWEI },
});
const TO_SELF = signedTransaction({ nonce: 0n, to: OWNER.address, value: 0n, by: OWNER });
const NAMES = new Map([
	[TX.hash, "transaction"],
	[REPLACEMENT.hash, "replacement"],
	[TO_SELF.hash, "self-transfer"],
]);
const CLIENT = "192.0.2.1";
const BUDGET_MS = 10_000;
/** How many requests may be given up in a run, and how often the reconciler works. */
const MOST_GIVEN_UP = 2;
const MOST_TICKS = 3;
/** Clients ask again when they get an error, and sometimes when they get none. */
const MOST_CANCELS = 2;

/** How the user ends the transaction. */
export const WAYS = ["by hash", "by self-transfer", "by hash, of its replacement"] as const;
export type Way = (typeof WAYS)[number];

export interface WorldOptions {
	readonly way: Way;
	/** Whether boost takes the relay for unavailable until it returns. */
	readonly relayOut: boolean;
	/** Whether another boost instance takes over while the first one is suspended. */
	readonly takesOver: boolean;
	/** Whether the relay ends what is cancelled before it comes; false: as a control. */
	readonly isFenced?: boolean;
}

/** A request on its way from a boost instance to an upstream. */
interface Message {
	readonly name: string;
	readonly by: Boost;
	/** The upstream's work when it arrives. */
	readonly arrive: () => Promise<unknown>;
	readonly end: (answer: unknown, state: "answered" | "unanswered" | "unsent") => void;
	state: "made" | "left" | "arrived" | "over";
	isGivenUp: boolean;
	/** Whether its process was suspended before all of it had left. */
	isHalfWritten: boolean;
	answer: unknown;
}

interface Event {
	readonly name: string;
	readonly run: () => unknown;
}

/** All of it; a run makes a new one. */
export class World {
	readonly #options: WorldOptions;
	readonly #relay = new StagesFixture();
	readonly #fallback = new Map<string, "live" | "cancelled">();
	readonly #messages: Message[] = [];
	/** Events that matter to the user, in order. */
	readonly #log: string[] = [];
	/** Whether the request that arrives was half written when its process was suspended. */
	#isHalfWritten = false;
	readonly #boosts: Boost[] = [];
	/** The database of two boost instances. */
	readonly #disk = new SharedDisk();
	#isRelayOut: boolean;
	#givenUp = 0;
	#ticks = 0;
	#cancels = 0;
	#hasReplaced = false;

	constructor(options: WorldOptions) {
		this.#options = options;
		this.#isRelayOut = options.relayOut;
		const { builders } = this.#relay;
		const send = builders.send;
		builders.send = (order, names) => {
			this.#sends("relay", order.transaction.tx);
			send(order, names);
		};
	}

	/** One run. Returns what is wrong, or null. */
	async run(choose: Choose): Promise<string | null> {
		const first = await this.#start("A");
		void first.submit(TX.raw).catch(() => {});
		await this.#quiet();
		for (let events = this.#events(); events.length > 0; events = this.#events()) {
			const event = events[choose(events.map(({ name }) => name))];
			if (event === undefined) break;
			event.run();
			await this.#quiet();
		}
		for (const boost of this.#boosts) void boost.reconciler.stop();
		const sent = this.#log.slice(this.#log.indexOf("true")).find((line) => line.endsWith("sent"));
		return this.#log.includes("true") && sent !== undefined
			? `after the cancel was answered true: ${sent}`
			: null;
	}

	/** Logs a send of a transaction that the user has cancelled or replaced. */
	#sends(by: UpstreamName, { hash }: { readonly hash: string }): void {
		const isEnded = hash === this.#cancelledHash || (hash === TX.hash && this.#log.includes("replaced"));
		if (isEnded) this.#log.push(`${by}: the ${NAMES.get(hash)} is sent`);
	}

	get #cancelledHash(): string {
		return this.#options.way === "by hash, of its replacement" ? REPLACEMENT.hash : TX.hash;
	}

	/** The events that are possible now; the usual next one first. "end": nothing else happens. */
	#events(): readonly Event[] {
		const usual: Event[] = [];
		const unusual: Event[] = [];
		for (const message of this.#messages) {
			const { name, by, state } = message;
			if (state === "made" && !by.isSuspended)
				usual.push({ name: `${name} leaves`, run: () => this.#leave(message) });
			if (state === "left") usual.push({ name: `${name} arrives`, run: () => this.#arrive(message) });
			if (by.isSuspended || message.isGivenUp) continue;
			if (state === "arrived") usual.push({ name: `${name} is answered`, run: () => this.#answer(message) });
			if (state !== "over" && this.#givenUp < MOST_GIVEN_UP)
				unusual.push({ name: `${name} is given up`, run: () => this.#giveUp(message) });
		}
		const awake = this.#boosts.findLast(({ isSuspended }) => !isSuspended);
		const mayReplace = this.#options.way === "by hash, of its replacement" && !this.#hasReplaced;
		if (mayReplace && awake !== undefined)
			usual.push({ name: `${awake.name} is asked to replace it`, run: () => this.#replace(awake) });
		else if (this.#cancels < MOST_CANCELS && awake !== undefined)
			usual.push({ name: `${awake.name} is asked to cancel`, run: () => this.#cancel(awake) });
		if (this.#isRelayOut) usual.push({ name: "the relay is back", run: () => this.#relayReturns() });
		if (this.#ticks < MOST_TICKS && awake !== undefined)
			usual.push({ name: "a second passes", run: () => this.#tick() });
		const [first, second] = this.#boosts;
		if (this.#options.takesOver && first !== undefined) {
			if (second === undefined)
				unusual.push({ name: "B takes over, A is suspended", run: () => this.#takeOver(first) });
			else if (first.isSuspended) usual.push({ name: "A resumes", run: () => this.#resume(first) });
		}
		return usual.length === 0 ? [] : [...usual, ...unusual];
	}

	async #start(name: string): Promise<Boost> {
		const boost = await Boost.start(name, this, this.#options.takesOver ? this.#disk : null);
		this.#boosts.push(boost);
		return boost;
	}

	get isRelayOut(): boolean {
		return this.#isRelayOut;
	}

	/** A request of `by` to `to`; resolves as `end` says. */
	request<T>(
		by: Boost,
		{ name, arrive }: Pick<Message, "name" | "arrive">,
		outcomeOf: (answer: unknown, state: "answered" | "unanswered" | "unsent") => T,
	): Promise<T> {
		return new Promise((resolve) => {
			const end: Message["end"] = (answer, state) => resolve(outcomeOf(answer, state));
			const message = { name: `${by.name}'s ${name}`, by, arrive, end, answer: null };
			this.#messages.push({ ...message, state: "made", isGivenUp: false, isHalfWritten: false });
		});
	}

	#leave(message: Message): void {
		message.state = "left";
	}

	#arrive(message: Message): void {
		message.state = "arrived";
		this.#isHalfWritten = message.isHalfWritten;
		void message.arrive().then((answer) => {
			message.answer = answer;
		});
		this.#isHalfWritten = false;
	}

	#answer(message: Message): void {
		message.state = "over";
		message.end(message.answer, "answered");
	}

	/** Its boost does not wait any longer, but a request that has left may still arrive. */
	#giveUp(message: Message): void {
		this.#givenUp += 1;
		message.isGivenUp = true;
		const hasLeft = message.state !== "made";
		if (!hasLeft) message.state = "over";
		message.end(null, hasLeft ? "unanswered" : "unsent");
	}

	#replace(boost: Boost): void {
		this.#hasReplaced = true;
		boost.submit(REPLACEMENT.raw).then(
			() => {
				// If it was cancelled before, the earlier one may stay.
				if (!this.#log.includes("true")) this.#log.push("replaced");
			},
			() => {},
		);
	}

	#cancel(boost: Boost): void {
		this.#cancels += 1;
		const isSoft = this.#options.way === "by self-transfer";
		const asked = isSoft ? boost.submit(TO_SELF.raw) : boost.cancel(this.#cancelledHash);
		asked.then(
			(isCancelled) => {
				if (isCancelled) this.#log.push("true");
			},
			() => {},
		);
	}

	#relayReturns(): void {
		this.#isRelayOut = false;
		for (const boost of this.#boosts) if (!boost.isSuspended) boost.relayChanged();
	}

	#tick(): void {
		this.#ticks += 1;
		for (const boost of this.#boosts) if (!boost.isSuspended) void boost.tick();
	}

	/** The other one takes over what was on disk. */
	#takeOver(first: Boost): void {
		first.isSuspended = true;
		for (const message of this.#messages) message.isHalfWritten ||= message.state === "made";
		void this.#start("B").then((second) => second.takeOver(first.name));
	}

	#resume(first: Boost): void {
		first.isSuspended = false;
	}

	/** The relay's and the fallback's work. */
	async submitted(
		to: UpstreamName,
		tx: Sendable,
		{ caller, ends }: Parameters<Upstream["deliver"]>[1],
	): Promise<Delivery> {
		if (to === "fallback") {
			// Like others it forgets cancelled ones. SECURITY.md names the exception: a request to it
			// that was half written when its process was suspended.
			const isKnown = this.#fallback.get(tx.hash) === "live";
			if (tx.hash === TX.hash && this.#fallback.get(REPLACEMENT.hash) === "live")
				return { kind: "rejected", error: { code: -32000, message: "replacement transaction underpriced" } };
			this.#fallback.set(tx.hash, "live");
			if (tx.hash !== TX.hash && this.#fallback.has(TX.hash)) this.#fallback.set(TX.hash, "cancelled");
			if (!isKnown && !this.#isHalfWritten) this.#sends("fallback", tx);
			return { kind: "acknowledged", known: isKnown };
		}
		const query = new URLSearchParams(tx.search);
		const outcome = await this.#relay.pipeline.submit({
			raw: tx.raw,
			path: tx.path,
			softCancellations: query.get("softCancellations") === "true",
			refundRecipient: null,
			referrer: null,
			isHidden: false,
			builders: null,
			submitterAddress: caller?.address ?? "",
			address: addressOf(caller),
			again: query.get("again"),
			requestId: null,
			trace: null,
			ends: this.#options.isFenced === false ? undefined : ends,
		});
		if (outcome.outcome !== "rejected") return { kind: "acknowledged", known: false };
		return { kind: "rejected", error: { code: -32000, message: outcome.rejection.message } };
	}

	async cancelled(to: UpstreamName, hash: string, options: CallOptions): Promise<RpcAnswer> {
		const refused = { ok: false, error: { code: -32000, message: NOT_CANCELLABLE } } as RpcAnswer;
		if (to === "fallback") {
			if (this.#fallback.get(hash) !== "live") return refused;
			this.#fallback.set(hash, "cancelled");
			return { ok: true, result: true };
		}
		const { caller } = options;
		const isFenced = this.#options.isFenced !== false;
		const carried = isFenced ? options.ends?.carried.find((one) => one.hash === hash) : undefined;
		const request = { hash, address: addressOf(caller), signer: caller?.signer ?? null, carried };
		const outcome = await this.#relay.pipeline.cancel(request);
		// As a control, it has nothing to cancel, and that is all.
		const isNothing = this.#options.isFenced === false && this.#relay.records.get(hash) === undefined;
		if (outcome === "cancelled" || isNothing) return { ok: true, result: true };
		if (outcome === "notPending") return refused;
		const error = { code: -32000, message: STILL_WANTED, data: { reason: STILL_WANTED_REASON } };
		return { ok: false, error } as RpcAnswer;
	}

	stageAtRelay(hash: string): string | null {
		return this.#relay.records.get(hash)?.record.stage ?? null;
	}

	async #quiet(): Promise<void> {
		for (let turn = 0; turn < 4; turn += 1) await nextTurn();
		await this.#relay.quiet();
		for (let turn = 0; turn < 2; turn += 1) await nextTurn();
	}
}

type CallOptions = Parameters<Upstream["call"]>[1];

function addressOf(caller: Caller | null): string | null {
	return caller === null || caller.origin !== null ? null : caller.address;
}

/** One boost instance. */
class Boost {
	readonly name: string;
	readonly reconciler: Reconciler;
	isSuspended = false;
	readonly #rows: Rows;
	readonly #submissions: Submissions;
	readonly #cancels: Cancels;
	readonly #clock: { monotonic(): number; advance(ms: number): Promise<void> };
	readonly #changes: (() => void)[] = [];

	private constructor(name: string, world: World, { journal, clock }: Awaited<ReturnType<typeof fixtureOn>>) {
		this.name = name;
		this.#clock = clock;
		const { rows } = journal;
		this.#rows = rows;
		const upstreams = {
			relay: new GatedUpstream("relay", null, world, this, this.#changes),
			fallback: new GatedUpstream(
				"fallback",
				dialectOf("mevblocker", { hasStatusUrl: false }),
				world,
				this,
				[],
			),
		};
		const background = new Background({}, { log: silentLogger });
		const reachesRelay = () => !world.isRelayOut;
		const others: OtherBoosts =
			rows.shared === null
				? NO_OTHERS
				: new Homes({ shared: rows.shared, rows, reachesRelay, clock, background, log: silentLogger });
		const shared = { rows, upstreams, others, clock, log: silentLogger };
		const chain = { batch: async () => [{ ok: true, result: "0x0" } as const] };
		this.reconciler = new Reconciler(
			{ budgetMs: BUDGET_MS, deadlineMs: 1_000, tickMs: 1_000 },
			{ ...shared, chain, background },
		);
		const failover = new Failover({ budgetMs: BUDGET_MS }, shared);
		const requests = { ...shared, failover, reconciler: this.reconciler };
		this.#cancels = new Cancels({ ...requests, relayKnowsClient: () => true });
		this.#submissions = new Submissions({
			...{ ...requests, cancels: this.#cancels },
			...{ chainId: () => 31_337n, fork: () => PRAGUE, traces: NO_TRACES },
		});
		this.reconciler.start();
	}

	/** `disk`: the database; null: its journal is its own. */
	static async start(name: string, world: World, disk: SharedDisk | null): Promise<Boost> {
		return new Boost(name, world, await fixtureOn(disk?.open(name) ?? new FakeDisk()));
	}

	async takeOver(from: string): Promise<void> {
		const { shared } = this.#rows;
		if (shared !== null) await shared.takeIn(await shared.accounts.takeOver([from]));
	}

	/** Whether it was a soft cancel. */
	async submit(raw: Buffer): Promise<boolean> {
		return (await this.#submissions.submit(raw, this.#request())).cancels;
	}

	cancel(hash: string): Promise<true> {
		return this.#cancels.cancel(hash, this.#request());
	}

	relayChanged(): void {
		for (const listener of this.#changes) listener();
	}

	/** Less than the time of a request, all seconds together. */
	tick(): Promise<void> {
		return this.#clock.advance(1_000);
	}

	#request(): RequestState {
		return {
			caller: {
				address: CLIENT,
				...{ signer: null, origin: null, via: null, signature: null, requestId: null },
				life: { bytes: 0, onGone: () => {} },
			},
			...{ target: null, path: "noreverts", search: "softCancellations=true" },
			until: this.#clock.monotonic() + BUDGET_MS,
			routing: { answeredBy: new Set(), attempts: 0, dropped: new Set() },
		};
	}
}

/** An upstream whose requests go through the world. */
class GatedUpstream implements Upstream {
	readonly name: UpstreamName;
	readonly dialect: Dialect | null;
	readonly breaker: Breaker;
	readonly #world: World;
	readonly #boost: Boost;

	constructor(
		name: UpstreamName,
		dialect: Dialect | null,
		world: World,
		boost: Boost,
		changes: (() => void)[],
	) {
		this.name = name;
		this.dialect = dialect;
		this.#world = world;
		this.#boost = boost;
		this.breaker = {
			upstream: name,
			get isUnavailable() {
				return name === "relay" && world.isRelayOut;
			},
			onChange: (listener: () => void) => void changes.push(listener),
		} as Breaker;
	}

	whyUnfit(): null {
		return null;
	}

	async deliver(tx: Sendable, options: Parameters<Upstream["deliver"]>[1]): Promise<Delivery | null> {
		if (this.breaker.isUnavailable) return null;
		const name = `${NAMES.get(tx.hash)} to the ${this.name}`;
		const arrive = () => this.#world.submitted(this.name, tx, options);
		return this.#world.request(this.#boost, { name, arrive }, (answer, state) =>
			state === "answered"
				? (answer as Delivery)
				: { kind: "failed", fault: "timeout", sent: state === "unanswered" },
		);
	}

	async call({ method, params }: RpcCall, options: CallOptions): Promise<RpcAnswer | null> {
		const [first] = params as readonly [unknown];
		if (method === "service_transactionStatuses") {
			const hashes = first as readonly string[];
			const result = hashes.map((hash) => ({ hash, stage: this.#world.stageAtRelay(hash) }));
			return { ok: true, result };
		}
		if (method !== "eth_cancelTransaction") return null;
		if (this.breaker.isUnavailable && options.anyway !== true) return null;
		const arrive = () => this.#world.cancelled(this.name, String(first), options);
		const request = { name: `cancel to the ${this.name}`, arrive };
		return this.#world.request(this.#boost, request, (answer, state) =>
			state === "answered" ? (answer as RpcAnswer) : null,
		);
	}

	read = async () => null;
	batch = async () => null;
	statusPage = async () => null;
}
