// eth_cancelTransaction: a hash and who asks come in, true goes out once every holder that can be reached has taken it
// back and the journal knows. Who may is our relay's to say while it is well, else the same rule with the journal's
// address.

import { isWebPage } from "../../shared/http/webPage.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Handover, Journal, Upstream, Upstreams } from "../domain/ports.ts";
import { relayStages, stagesCall } from "../domain/relayStages.ts";
import type { RequestState } from "../domain/request.ts";
import { type Failover, unavailable, verdictError } from "./failover.ts";
import { notPending, type Told, takeBack } from "./takingBack.ts";

export interface CancelsDependencies {
	readonly journal: Journal;
	readonly upstreams: Upstreams;
	readonly failover: Failover;
	readonly handover: Handover;
	/** Whether our relay believes who we say asks; otherwise it would take all our clients for one. */
	readonly relayKnowsClient: () => boolean;
}

const METHOD = "eth_cancelTransaction";

/** Takes transactions back by their hash. */
export class Cancels {
	readonly #dependencies: CancelsDependencies;

	constructor(dependencies: CancelsDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Takes `hash` back. Throws RpcError `rejected` where it is not pending or the client may not, `unavailable` where no
	 * holder can be reached.
	 */
	async cancel(hash: string, state: RequestState): Promise<true> {
		const { journal, upstreams, relayKnowsClient } = this.#dependencies;
		const entry = journal.get(hash);
		const may = mayCancel(entry ?? journal.ended(hash), state);
		if (entry === null) {
			const ended = journal.ended(hash);
			if (ended === null || !may) return this.#unknown(hash, state);
			state.trail.answeredBy.add("journal");
			if (ended.ending === "cancelled") return true;
			throw notPending();
		}
		const relayJudges = relayKnowsClient() && !upstreams.relay.breaker.isOut;
		const relayHolds = entry.holders.includes("relay");
		if (!may && !(relayJudges && relayHolds)) throw notPending();
		const tell = (upstream: Upstream) => this.#tell(upstream, entry, state, may);
		await takeBack([entry], tell, may, this.#dependencies);
		return true;
	}

	/** What the journal does not hold may be our relay's all the same: submitted there, or on another path. */
	async #unknown(hash: string, state: RequestState): Promise<true> {
		const { upstreams, relayKnowsClient } = this.#dependencies;
		if (!relayKnowsClient() && state.asker.signer === null) throw notPending();
		const told = await this.#askRelay(upstreams.relay, hash, state);
		if (told.kind === "told") return true;
		if (told.kind === "rejected") throw verdictError(told.error);
		throw unavailable("the relay is out, and the journal does not hold it");
	}

	async #tell(upstream: Upstream, entry: OpenEntry, state: RequestState, may: boolean): Promise<Told> {
		if (upstream.dialect === null) {
			const told = await this.#askRelay(upstream, entry.hash, state);
			if (told.kind === "rejected" && may && (await this.#hasLost(upstream, entry, state)))
				return { kind: "told" };
			// A stranger who may by the relay's word alone ends nothing without that word.
			return told.kind === "unsure" && !may ? { kind: "out" } : told;
		}
		// Our relay has refused him, or does not hold it: a stranger gets no further.
		if (!may) return { kind: "out" };
		const { cancelMethod } = upstream.dialect;
		if (cancelMethod === null) return { kind: "cannot", why: heldByFallback(entry) };
		const call = { method: cancelMethod, params: [entry.hash] };
		const { asker, trail } = state;
		const options = { ...this.#reach(upstream, state), asker, trail, path: entry.path };
		const answer = await upstream.call(call, options);
		if (answer === null) return { kind: options.anyway ? "out" : "unsure" };
		trail.answeredBy.add(upstream.name);
		if (!answer.ok) return { kind: "rejected", error: answer.error };
		return answer.result === true ? { kind: "told" } : { kind: "rejected", error: REFUSED };
	}

	/** Whether the relay, which refuses to take it back, has no record of what it acknowledged: it would get it again. */
	async #hasLost(relay: Upstream, { hash }: OpenEntry, state: RequestState): Promise<boolean> {
		const { asker, trail } = state;
		const answer = await relay.call(stagesCall([hash]), { ...this.#reach(relay, state), asker, trail });
		return relayStages(answer)?.[0]?.stage === null;
	}

	/** Open is not dead: what is out is tried once, past its breaker. */
	#reach({ breaker }: Upstream, state: RequestState) {
		const deadlineMs = this.#dependencies.failover.leftMs(state) / 2;
		return breaker.isOut
			? { deadlineMs: Math.min(OUT_MS, deadlineMs), anyway: true }
			: { deadlineMs, anyway: false };
	}

	async #askRelay(relay: Upstream, hash: string, state: RequestState): Promise<Told> {
		const { asker, trail, whole, path } = state;
		const call = { method: METHOD, params: [hash] };
		const options = { ...this.#reach(relay, state), asker, trail, whole, path };
		const answer = await relay.call(call, options);
		if (answer === null) return { kind: options.anyway ? "out" : "unsure" };
		trail.answeredBy.add("relay");
		if (!answer.ok) return { kind: "rejected", error: answer.error };
		return { kind: "told" };
	}
}

/** One that is out may hear of it all the same, but is not waited for long, in ms. */
const OUT_MS = 500;

const REFUSED = { code: -32000, message: "transaction not found or no longer pending" };

/** The relay's own rule, by the network address in the journal or the sender's signature. */
function mayCancel(
	owner: { readonly from: string; readonly address: string } | null,
	{ asker }: RequestState,
): boolean {
	if (owner === null) return false;
	if (asker.signer === owner.from) return true;
	return !isWebPage(asker.origin) && asker.address !== "unknown" && asker.address === owner.address;
}

function heldByFallback({ nonce }: OpenEntry): RpcError {
	return new RpcError("rejected", `held by the fallback: send a self-transfer with nonce ${nonce}`);
}
