// Cancels transactions by their hash or by a soft cancel (a self-transfer with a nonce that allows it). They are not handed
// over while a cancel is in progress, and never after one succeeded anywhere; the reconciler cancels them at unreached
// holders.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { standingCount, withoutWish } from "../../shared/ownership.ts";
import { isOwner, takeBackWish } from "../domain/owners.ts";
import type { Upstream, Upstreams } from "../domain/ports.ts";
import {
	type BoostPath,
	type Delivery,
	ownAddress,
	type RequestState,
	relayStages,
	stagesCall,
	UPSTREAMS,
	type UpstreamName,
	type WireVerdict,
} from "../domain/request.ts";
import {
	beginRequest,
	endRequest,
	isHolder,
	isLive,
	markAbandoned,
	type Row,
	setCancelPending,
} from "../domain/row.ts";
import type { Rows } from "../rows/rows.ts";
import { type Failover, unavailable, verdictError } from "./failover.ts";

export interface CancelsDependencies {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly failover: Failover;
	/** Whether our relay accepts boost's information about clients; otherwise it takes all of them for one. */
	readonly relayKnowsClient: () => boolean;
}

/**
 * The result of a cancel at one holder. `unreached`: the cancel did not arrive; `unsure`: it may have; `rejected`: by a
 * verdict; `cannot`: the holder has no way to cancel.
 */
type Outcome =
	| { readonly kind: "done" | "unreached" | "unsure" }
	| { readonly kind: "rejected"; readonly error: WireVerdict }
	| { readonly kind: "cannot"; readonly why: RpcError };

const METHOD = "eth_cancelTransaction";
/** Deadline at an unavailable upstream, which may receive the cancel nevertheless, in ms. */
const UNAVAILABLE_MS = 500;
const NOT_PENDING = "transaction not found or no longer pending";
const UNREACHED =
	"who holds it can't be reached; it is handed to no other, and taken back as soon as that is possible";
const REFUSED = { code: -32000, message: NOT_PENDING };

export class Cancels {
	readonly #dependencies: CancelsDependencies;

	constructor(dependencies: CancelsDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Cancels `hash`. The relay decides whether the client may while it is available, else the same rule on the row's address.
	 * Throws RpcError `rejected` if it is not pending or the client may not, `unavailable` if no holder can be reached.
	 */
	async cancel(hash: string, state: RequestState): Promise<true> {
		const { rows, upstreams, relayKnowsClient } = this.#dependencies;
		const row = rows.get(hash);
		const may = row !== null && isOwner(row, state.caller);
		if (row === null || (!isLive(row) && !may)) return this.#unknown(hash, state);
		const bySender = state.caller.signer === row.from;
		if (!isLive(row)) {
			state.routing.answeredBy.add("journal");
			if (row.desired !== "cancelled") throw notPending();
			return !bySender || row.bySender || this.#cancelForAll(row, state);
		}
		const relayJudges = relayKnowsClient() && !upstreams.relay.breaker.isUnavailable;
		if (!may && !relayJudges) throw notPending();
		// An owner at the relay alone takes back its wish there; what the row's owners want stays.
		if (!may && !isHolder(row.at.relay)) return this.#unknown(hash, state);
		if (!bySender && (await this.#takesBackOne(row, state, may))) return true;
		const cancelAt = (upstream: Upstream) => this.#cancelAt(upstream, row, state, may);
		await this.#cancelEverywhere([row], cancelAt, { byRight: may, bySender, asksRelay: bySender });
		return true;
	}

	/**
	 * The sender signs a cancel of what its owners here have taken back: the relay may have it from others. Throws RpcError
	 * `unavailable` if the relay can't be reached; then it is told so later.
	 */
	async #cancelForAll({ hash }: Row, state: RequestState): Promise<true> {
		const { rows, upstreams } = this.#dependencies;
		rows.change(hash, (row) => setCancelPending({ ...row, bySender: true }, "relay", true));
		const call = { method: METHOD, params: [hash] };
		const { kind } = await this.#ask(upstreams.relay, call, state.path, state);
		const isOver = kind === "done" || kind === "rejected";
		if (isOver) rows.change(hash, (row) => (isLive(row) ? row : setCancelPending(row, "relay", false)));
		await rows.written(hash);
		if (!isOver) throw unavailable(UNREACHED);
		return true;
	}

	/** Takes back the client's own wish. Returns whether the transaction lives on, since others still want it. */
	async #takesBackOne(row: Row, state: RequestState, may: boolean): Promise<boolean> {
		const { rows, upstreams } = this.#dependencies;
		const { hash } = row;
		const own = ownAddress(state.caller) ?? "";
		if (!may) {
			// It is an owner at the relay, if at all; whether anybody else still wants it there, its stage tells.
			await this.#unknown(hash, state);
			return (await this.#stageAt(upstreams.relay, row, state)) !== "CANCELLED";
		}
		if (standingCount(withoutWish(row.owners, own)) === 0) return false;
		rows.change(hash, beginRequest);
		try {
			const isHeld = isHolder(row.at.relay);
			const outcome = isHeld ? await this.#cancelAt(upstreams.relay, row, state, may) : null;
			if (outcome?.kind === "rejected") throw verdictError(outcome.error);
			const isTold = outcome === null || (outcome.kind === "done" && !row.ownersPending);
			rows.change(hash, (one) => (isLive(one) ? takeBackWish(one, own, isTold) : one));
			await rows.written(hash);
		} finally {
			rows.change(hash, (one) => endRequest(one));
		}
		// The others may have taken theirs back meanwhile.
		const now = rows.live(hash);
		return now === null || standingCount(now.owners) > 0;
	}

	/** Cancels `siblings` by `tx`, which is sent only to their holders, in a form that is free there, and never kept. */
	async soft(tx: DecodedTransaction, siblings: readonly Row[], state: RequestState): Promise<void> {
		const { rows } = this.#dependencies;
		try {
			await this.#cancelEverywhere(
				siblings,
				(upstream) => this.#softCancelAt(tx, siblings, upstream, state),
				{ byRight: true, bySender: true, asksRelay: false },
			);
		} finally {
			// The same bytes again are answered with their hash: to send them could cost the user gas.
			if (siblings.some(({ hash }) => rows.get(hash)?.desired === "cancelled")) {
				const { hash, from, nonce } = tx;
				const { path, caller } = state;
				const own = { hash, from, nonce, path, address: caller.address };
				rows.end(own, "cancelled");
				await rows.written(hash);
			}
		}
	}

	/**
	 * Cancels `siblings` (of one sender and nonce) at each holder, our relay first, and ends them if one has cancelled them or
	 * may have. `byRight` (the client may end them himself): also if no holder can be reached; then the reconciler cancels them,
	 * in the name of the sender if it is `bySender`. `asksRelay`: also if boost has not given it to the relay, which may have it
	 * from others.
	 * Resolves when the end is on disk and at least one holder has cancelled them, or there is none. Throws the verdict if all
	 * that answered refused, else RpcError `unavailable` with the reason.
	 */
	async #cancelEverywhere(
		siblings: readonly Row[],
		cancelAt: (upstream: Upstream) => Promise<Outcome>,
		{
			byRight,
			bySender,
			asksRelay,
		}: { readonly byRight: boolean; readonly bySender: boolean; readonly asksRelay: boolean },
	): Promise<void> {
		const { rows, upstreams } = this.#dependencies;
		const change = (how: (row: Row) => Row): void => {
			for (const { hash } of siblings) rows.change(hash, how);
		};
		change(beginRequest);
		try {
			const outcomes = new Map<UpstreamName, Outcome>();
			const isHeldBy = (name: UpstreamName) =>
				(asksRelay && name === "relay") ||
				siblings.some((row) => isHolder((rows.live(row.hash) ?? row).at[name]));
			// The relay may have become a holder while the fallback was asked: it is checked again.
			for (const upstream of [upstreams.relay, upstreams.fallback, upstreams.relay]) {
				if (upstream === null || outcomes.has(upstream.name) || !isHeldBy(upstream.name)) continue;
				outcomes.set(upstream.name, await cancelAt(upstream));
			}
			const all = [...outcomes.values()];
			const done = UPSTREAMS.filter((name) => outcomes.get(name)?.kind === "done");
			const cannot = all.find((one) => one.kind === "cannot");
			if (cannot !== undefined) {
				// It stays only at the holder that can't cancel, and may be mined: the others do not get it again.
				for (const name of done) change((row) => markAbandoned(row, name));
				throw cannot.why;
			}
			const rejected = all.find((one) => one.kind === "rejected");
			const isUnsure = all.some((one) => one.kind === "unsure");
			if (done.length > 0 || isUnsure || (byRight && rejected === undefined)) {
				const cancelLaterAt = UPSTREAMS.filter((name) => {
					const kind = outcomes.get(name)?.kind;
					if (kind === undefined) return isHeldBy(name);
					// The relay may not know yet that the other owners have cancelled too.
					const others = name === "relay" && siblings.some(({ ownersPending }) => ownersPending);
					return kind === "unreached" || kind === "unsure" || (others && !bySender);
				});
				change((row) => ({ ...row, bySender }));
				for (const row of siblings) rows.end(row, "cancelled", cancelLaterAt);
				await Promise.all(siblings.map(({ hash }) => rows.written(hash)));
			}
			if (done.length > 0 || (byRight && all.length === 0)) return;
			if (rejected !== undefined) throw verdictError(rejected.error);
			throw unavailable(byRight || isUnsure ? UNREACHED : "who holds it is out");
		} finally {
			change((row) => endRequest(row));
		}
	}

	/** A hash without a row may still be known to our relay: submitted there directly, or on another path. */
	async #unknown(hash: string, state: RequestState): Promise<true> {
		const { upstreams, relayKnowsClient } = this.#dependencies;
		if (!relayKnowsClient() && state.caller.signer === null) throw notPending();
		const call = { method: METHOD, params: [hash] };
		const outcome = await this.#ask(upstreams.relay, call, state.path, state);
		if (outcome.kind === "done") return true;
		if (outcome.kind === "rejected") throw verdictError(outcome.error);
		throw unavailable("the relay is out, and the journal does not hold it");
	}

	async #cancelAt(upstream: Upstream, row: Row, state: RequestState, may: boolean): Promise<Outcome> {
		const { dialect } = upstream;
		// Only the relay may let another client cancel; the fallback is not asked for one.
		if (dialect !== null && !may) return { kind: "unreached" };
		const method = dialect === null ? METHOD : dialect.cancelMethod;
		if (method === null) {
			const why = `held by the fallback: send a self-transfer with nonce ${row.nonce}`;
			return { kind: "cannot", why: new RpcError("rejected", why) };
		}
		const path = dialect === null ? state.path : row.path;
		const outcome = await this.#ask(upstream, { method, params: [row.hash] }, path, state);
		if (dialect !== null) return outcome;
		if (outcome.kind === "rejected" && may) {
			// It may not know this owner yet: it is told with the others, and then of the cancel.
			const isUnknown = this.#dependencies.rows.live(row.hash)?.ownersPending === true;
			if (isUnknown || (await this.#hasLost(upstream, row, state))) return { kind: "done" };
		}
		// For another client only the relay's consent counts, and it gave none.
		return outcome.kind === "unsure" && !may ? { kind: "unreached" } : outcome;
	}

	async #softCancelAt(
		tx: DecodedTransaction,
		siblings: readonly Row[],
		upstream: Upstream,
		state: RequestState,
	): Promise<Outcome> {
		if (upstream.breaker.isUnavailable) return { kind: "unreached" };
		const { caller, routing, whole } = state;
		if (upstream.dialect?.softCancels === false) {
			return { kind: "cannot", why: unavailable("the fallback holds it and knows no cancel without cost") };
		}
		// To a fallback on the path and query of the earlier one, whose flag makes the cancel free.
		const route = upstream.dialect === null ? state : siblings.find((one) => one.softCancellations);
		if (route === undefined) return { kind: "unreached" };
		const { path, search } = route;
		const sendable = { hash: tx.hash, from: tx.from, raw: tx.raw, path, search };
		const deadlineMs = this.#dependencies.failover.leftMs(state) / 2;
		const outcome = outcomeOf(await upstream.deliver(sendable, { deadlineMs, caller, routing, whole }));
		if (outcome.kind === "done" || outcome.kind === "rejected") routing.answeredBy.add(upstream.name);
		return outcome;
	}

	/** Whether the relay, which refuses to cancel it, has lost it. */
	async #hasLost(relay: Upstream, row: Row, state: RequestState): Promise<boolean> {
		return (await this.#stageAt(relay, row, state)) === null;
	}

	/** Its stage at the relay: null if that has no record, undefined without an answer. */
	async #stageAt(relay: Upstream, { hash }: Row, state: RequestState): Promise<string | null | undefined> {
		const { caller, routing } = state;
		const answer = await relay.call(stagesCall([hash]), { ...this.#reach(relay, state), caller, routing });
		return relayStages(answer)?.[0]?.stage;
	}

	/** An unavailable upstream may still be alive: it is tried once, ignoring its breaker. */
	#reach({ breaker }: Upstream, state: RequestState) {
		const deadlineMs = this.#dependencies.failover.leftMs(state) / 2;
		return breaker.isUnavailable
			? { deadlineMs: Math.min(UNAVAILABLE_MS, deadlineMs), anyway: true }
			: { deadlineMs, anyway: false };
	}

	async #ask(upstream: Upstream, call: RpcCall, path: BoostPath, state: RequestState): Promise<Outcome> {
		const { caller, routing, whole } = state;
		const options = { ...this.#reach(upstream, state), caller, routing, whole, path };
		const answer = await upstream.call(call, options);
		if (answer === null) return { kind: options.anyway ? "unreached" : "unsure" };
		routing.answeredBy.add(upstream.name);
		if (!answer.ok) return { kind: "rejected", error: answer.error };
		const isTaken = upstream.dialect === null || answer.result === true;
		return isTaken ? { kind: "done" } : { kind: "rejected", error: REFUSED };
	}
}

/** The result of delivering the cancelling transaction. */
function outcomeOf(delivery: Delivery | null): Outcome {
	if (delivery === null) return { kind: "unreached" };
	if (delivery.kind === "acknowledged") return { kind: "done" };
	if (delivery.kind === "rejected") return { kind: "rejected", error: delivery.error };
	return { kind: delivery.sent ? "unsure" : "unreached" };
}

/** The answer for a hash that this client may not cancel. */
function notPending(): RpcError {
	return new RpcError("rejected", NOT_PENDING);
}
