// Two boost instances, the relay and a fallback, and the network between them. Each request leaves,
// arrives, is answered or is given up when a test says so, and a process can be suspended or killed
// between any two of these. Boost and the relay's pipeline are real.

import type { Sendable, Upstream } from "../../../../boost-proxy/domain/ports.ts";
import {
	type Caller,
	type Delivery,
	UPSTREAMS,
	type UpstreamName,
} from "../../../../boost-proxy/domain/request.ts";
import { UNREACHED } from "../../../../boost-proxy/requests/cancels.ts";
import { nextTurn } from "../../../../shared/clock.ts";
import { LIVE_STAGES } from "../../../../shared/ethereum/statusRecord.ts";
import type { RpcAnswer } from "../../../../shared/jsonrpc/client.ts";
import { NOT_CANCELLABLE, STILL_WANTED, STILL_WANTED_REASON } from "../../../../shared/ownership.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { StagesFixture } from "../../relay/stagesFixture.ts";
import { SharedDisk } from "../journal/sharedDisk.ts";
import type { Choose } from "./explore.ts";
import { Boost, type CallOptions, type Network, type RequestEnd } from "./gatedBoost.ts";
import { NAMES, REPLACEMENT, TO_SELF, TX } from "./transactions.ts";

const LIVE: readonly string[] = LIVE_STAGES;
/** How many requests may be given up in a run, and how often the reconciler works. */
const MOST_GIVEN_UP = 2;
const MOST_TICKS = 3;
/** All ticks together take less than the time of a request. */
const TICK_MS = 1_000;
/** Clients ask again when they get an error, and sometimes when they get none. */
const MOST_CANCELS = 2;

/** How the user ends the transaction. */
export const WAYS = ["by hash", "by self-transfer", "by hash, of its replacement"] as const;
export type Way = (typeof WAYS)[number] | "not at all";

export interface WorldOptions {
	readonly way: Way;
	/** Whether boost takes the relay for unavailable until it returns. */
	readonly relayOut: boolean;
	/** Whether another boost instance takes over while the first one is suspended. */
	readonly takesOver: boolean;
	/** Whether the relay ends what is cancelled before it comes; false: as a control. */
	readonly isFenced?: boolean;
	/**
	 * Whether processes are killed and upstreams go out too, and a run goes on until all has arrived,
	 * and looks at what is left.
	 */
	readonly isThorough?: boolean;
}

/** A request on its way from a boost instance to an upstream. */
interface Message {
	readonly name: string;
	readonly by: Boost;
	/** The upstream's work when it arrives. */
	readonly arrive: () => Promise<unknown>;
	readonly end: (answer: unknown, state: RequestEnd) => void;
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
export class World implements Network {
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
	/** The disk of the only instance. */
	readonly #ownDisk = new FakeDisk();
	/** Upstreams that boost takes for unavailable, and those that have been once. */
	readonly #out = new Set<UpstreamName>();
	readonly #wereOut = new Set<UpstreamName>();
	#givenUp = 0;
	#ticks = 0;
	#cancels = 0;
	#hasReplaced = false;
	#hasRestarted = false;
	/** The instance that does not reach the database. */
	#cutOff: string | null = null;
	#hasBeenCutOff = false;
	/** Whether the client got a success for the transaction. */
	#isAccepted = false;
	/** Whether its cancel has succeeded, or boost has promised to send it later. */
	#isPromised = false;
	/** Whether a request arrived that was half written when its process was suspended. */
	#cameHalf = false;

	constructor(options: WorldOptions) {
		this.#options = options;
		if (options.relayOut) this.#goesOut("relay");
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
		first.submit(TX.raw).then(
			() => {
				this.#isAccepted = true;
			},
			() => {},
		);
		await this.#quiet();
		for (let events = this.#events(); events.length > 0; events = this.#events()) {
			const event = events[choose(events.map(({ name }) => name))];
			if (event === undefined) break;
			event.run();
			await this.#quiet();
		}
		const fault = this.#sentAfterCancel() ?? (await this.#wrongInTheEnd());
		for (const boost of this.#boosts) void boost.reconciler.stop();
		return fault;
	}

	#sentAfterCancel(): string | null {
		const at = this.#log.indexOf("true");
		const sent = at < 0 ? undefined : this.#log.slice(at).find((line) => line.endsWith("sent"));
		return sent === undefined ? null : `after the cancel was answered true: ${sent}`;
	}

	/** The fault that is left when all has arrived and a minute has passed; null: none. */
	async #wrongInTheEnd(): Promise<string | null> {
		if (this.#options.isThorough !== true) return null;
		for (const boost of this.#boosts) boost.isSuspended = false;
		for (const upstream of UPSTREAMS) this.#returns(upstream);
		this.#cutOff = null;
		for (let round = 0; round < 14; round += 1) {
			await this.#quiet();
			for (let [message] = this.#open(); message !== undefined; [message] = this.#open()) {
				if (message.state === "made") this.#leave(message);
				else if (message.state === "left") this.#arrive(message);
				else this.#answer(message);
				await this.#quiet();
			}
			for (const boost of this.#boosts) await boost.advance(5_000);
		}
		const isLive = (hash: string) =>
			this.#fallback.get(hash) === "live" || LIVE.includes(this.stageAtRelay(hash) ?? "");
		if (this.#isPromised && !this.#cameHalf && isLive(this.#cancelledHash))
			return "it is not cancelled everywhere";
		const due = this.#boosts.flatMap((boost) => boost.pendingCancels());
		if (due.length > 0) return `a cancel is still due: ${due.join(", ")}`;
		if (this.#options.way !== "not at all") return null;
		const wanted = this.#log.includes("replaced") ? [REPLACEMENT.hash] : [TX.hash, REPLACEMENT.hash];
		return this.#isAccepted && !wanted.some(isLive) ? "nobody has what was acknowledged" : null;
	}

	/** Requests that have not arrived, or whose answers are waited for. */
	#open(): readonly Message[] {
		return this.#messages.filter(
			({ state, isGivenUp }) => state !== "over" && !(isGivenUp && state === "arrived"),
		);
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
		const { way, isThorough = false } = this.#options;
		const isReplaced = way === "by hash, of its replacement" || way === "not at all";
		const mayReplace = isReplaced && !this.#hasReplaced;
		const mayCancel = this.#cancels < MOST_CANCELS && way !== "not at all";
		if (mayReplace && awake !== undefined)
			usual.push({ name: `${awake.name} is asked to replace it`, run: () => this.#replace(awake) });
		else if (mayCancel && awake !== undefined)
			usual.push({ name: `${awake.name} is asked to cancel`, run: () => this.#cancel(awake) });
		for (const upstream of UPSTREAMS) {
			if (this.#out.has(upstream))
				usual.push({ name: `the ${upstream} is back`, run: () => this.#returns(upstream) });
			else if (isThorough && !this.#wereOut.has(upstream))
				unusual.push({ name: `the ${upstream} goes out`, run: () => this.#goesOut(upstream) });
		}
		if (this.#ticks < MOST_TICKS && awake !== undefined)
			usual.push({ name: "a second passes", run: () => this.#tick() });
		const [first, second] = this.#boosts;
		if (isThorough && !this.#options.takesOver && !this.#hasRestarted && first !== undefined)
			unusual.push({ name: "A is killed and starts again", run: () => this.#restart(first) });
		if (isThorough && this.#options.takesOver && awake !== undefined) {
			const { name } = awake;
			if (this.#cutOff !== null)
				usual.push({ name: `${this.#cutOff}'s database is back`, run: () => this.#cut(null) });
			else if (!this.#hasBeenCutOff)
				unusual.push({ name: `${name}'s database is cut off`, run: () => this.#cut(name) });
		}
		if (this.#options.takesOver && first !== undefined) {
			if (second === undefined)
				unusual.push({ name: "B takes over, A is suspended", run: () => this.#takeOver(first) });
			else if (first.isSuspended) usual.push({ name: "A resumes", run: () => this.#resume(first) });
		}
		return usual.length === 0 ? [] : [...usual, ...unusual];
	}

	async #start(name: string): Promise<Boost> {
		const disk = this.#options.takesOver ? this.#sharedDisk(name) : this.#ownDisk;
		const boost = await Boost.start(name, this, disk);
		this.#boosts.push(boost);
		return boost;
	}

	/** The database as an instance reaches it. */
	#sharedDisk(name: string): ReturnType<SharedDisk["open"]> {
		const store = this.#disk.open(name);
		const { accounts } = store;
		const orFail = <Args extends unknown[], Answer>(call: (...args: Args) => Promise<Answer>) => {
			return async (...args: Args): Promise<Answer> => {
				if (this.#cutOff === name) throw new Error("the database does not answer");
				return call.apply(accounts, args);
			};
		};
		accounts.load = orFail(accounts.load);
		accounts.write = orFail(accounts.write);
		accounts.isCurrent = orFail(accounts.isCurrent);
		accounts.ofHashes = orFail(accounts.ofHashes);
		return store;
	}

	isOut(upstream: UpstreamName): boolean {
		return this.#out.has(upstream);
	}

	request<T>(
		by: Boost,
		{ name, arrive }: Pick<Message, "name" | "arrive">,
		outcomeOf: (answer: unknown, state: RequestEnd) => T,
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
		this.#cameHalf ||= message.isHalfWritten;
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
				this.#isPromised ||= isCancelled;
			},
			(thrown: Error) => {
				this.#isPromised ||= thrown.message.endsWith(UNREACHED);
			},
		);
	}

	#goesOut(upstream: UpstreamName): void {
		this.#out.add(upstream);
		this.#wereOut.add(upstream);
		this.#healthChanged();
	}

	#returns(upstream: UpstreamName): void {
		this.#out.delete(upstream);
		this.#healthChanged();
	}

	#healthChanged(): void {
		for (const boost of this.#boosts) if (!boost.isSuspended) boost.healthChanged();
	}

	#tick(): void {
		this.#ticks += 1;
		for (const boost of this.#boosts) if (!boost.isSuspended) void boost.advance(TICK_MS);
	}

	/** The other one takes over what was on disk. */
	#takeOver(first: Boost): void {
		first.isSuspended = true;
		for (const message of this.#messages) message.isHalfWritten ||= message.state === "made";
		void this.#start("B").then((second) => second.takeOver(first.name));
	}

	#cut(name: string | null): void {
		this.#cutOff = name;
		this.#hasBeenCutOff = true;
	}

	/** Requests that have left still arrive, without an answer. */
	#restart(killed: Boost): void {
		this.#hasRestarted = true;
		this.#boosts.splice(0);
		for (const message of this.#messages) {
			message.isGivenUp = true;
			if (message.state === "made") message.state = "over";
		}
		void this.#start(killed.name).then((boost) => boost.healthChanged());
	}

	#resume(first: Boost): void {
		first.isSuspended = false;
	}

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

function addressOf(caller: Caller | null): string | null {
	return caller === null || caller.origin !== null ? null : caller.address;
}
