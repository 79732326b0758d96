// Sends plain bundles (a searcher's own transactions) for each block of their range in which they
// pass a simulation. They end when mined, cancelled or replaced. In memory only.

import { inSlices, pause } from "../../shared/clock.ts";
import { FairScheduler, OverloadedError } from "../../shared/shares/scheduler.ts";
import { Shares } from "../../shared/shares/shares.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import type { BundleTable } from "../auction/bundleTable.ts";
import { type BundleEntry, type BundleKind, statusIn } from "../auction/bundleTable.ts";
import {
	isIn,
	isSameAs,
	nameOf,
	type PlainBundle,
	type PlainBundleState,
	sentFor,
	touches,
	withBlocksOf,
} from "../auction/plainBundle.ts";
import {
	type BundleOutcome,
	blockRange,
	bundleHash,
	comingOf,
	firstAt,
	isAt,
	type OutgoingBundle,
	type PlainBundleRequest,
	type Range,
	rejectedBundle,
} from "../domain/bundle.ts";
import type { BundleReason, BundleStage } from "../domain/bundleStatus.ts";
import type { Block, ChainUpdate } from "../domain/chain.ts";
import { withReadyBlobs } from "./bundleBlobs.ts";
import type { BundleSimulation } from "./bundleSimulation.ts";
import {
	failureReason,
	isMendable,
	isTransient,
	LATER_HEAD_MS,
	type PlainVerdict,
	readTransactions,
	rejectionOf,
	retryMs,
} from "./bundleSimulation.ts";
import type { MarketDependencies, MarketOptions } from "./dependencies.ts";

/** New bundles that are processed at the same time, and that may wait. */
const AT_ONCE = 4;
const MAX_WAITING = 1_000;
/** Repeated simulations at once: other work must not wait for the thousands due at a head. */
const RETRIALS_AT_ONCE = 16;
/** Most simulations of a new bundle, if heads or accounts change or the node can't run it. */
const MAX_TRIES = 3;

/** Blocks for which an included bundle is kept at least, in case its block is reorganised away. */
const REORG_BLOCKS = 8;

/** A bundle that is not accepted yet. */
interface Considered {
	readonly request: PlainBundleRequest;
	readonly entry: BundleEntry;
	readonly transactions: OutgoingBundle["transactions"];
	readonly hash: string;
}

/** The result of the simulation in `block`. */
interface TrialResult {
	readonly block: number;
	readonly verdict: PlainVerdict;
}

interface PlainBundlesMarket {
	readonly table: BundleTable;
	readonly simulation: BundleSimulation;
	/** Names of the builders that pay refunds. */
	readonly refundingBuilders: readonly string[];
}

export class PlainBundles {
	readonly #options: Pick<MarketOptions, "rules">;
	readonly #dependencies: Pick<MarketDependencies, "tip" | "sender" | "background" | "clock" | "blobProofs">;
	readonly #market: PlainBundlesMarket;
	/** By name at the builders: one per uuid of an owner, or one per bundle without a uuid. */
	readonly #bundles = new Map<string, PlainBundle>();
	/** Schedules new bundles fairly by client. */
	readonly #admissions = new FairScheduler({ concurrency: AT_ONCE, maxWaiting: MAX_WAITING });
	/** Schedules repeated simulations. Their number is bounded by the limits on accepted bundles. */
	readonly #retrials = new FairScheduler({
		concurrency: RETRIALS_AT_ONCE,
		maxWaiting: Number.POSITIVE_INFINITY,
	});
	readonly #transactions: Shares;
	readonly #bytes: Shares;
	/** Resolves when the last chain update has been processed; null: none is running. */
	#following: Promise<void> | null = null;
	#stopped = false;

	constructor(options: MarketOptions, dependencies: MarketDependencies, market: PlainBundlesMarket) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#market = market;
		this.#transactions = new Shares(options.limits.plain.transactions);
		this.#bytes = new Shares(options.limits.plain.bytes);
	}

	/**
	 * Marks included bundles, and ends those that are over or partly included. Tries the others for
	 * the next block. Few are handled at once, many in slices, one update after another.
	 */
	onChainUpdate(update: ChainUpdate): void {
		const before = this.#following;
		const following = before === null ? this.#followAll(update) : before.then(() => this.#followAll(update));
		this.#following = following;
		this.#dependencies.background.run("bundles", async () => {
			await following;
			if (this.#following === following) this.#following = null;
		});
	}

	async #followAll({ applied, reverted, head }: ChainUpdate): Promise<void> {
		const gone = new Set(reverted.map((block) => block.hash));
		const blocks = applied.map(({ number, hash, transactions }) => ({
			number,
			hash,
			holds: new Set(transactions.map((tx) => tx.hash)),
		}));
		await inSlices([...this.#bundles.values()], this.#dependencies.clock, (bundle) => {
			// It may have ended or been replaced in the meantime.
			if (this.#bundles.get(bundle.outgoing.name) !== bundle) return;
			if (bundle.state.kind === "landed" && gone.has(bundle.state.hash)) this.#revive(bundle, bundle.state);
			const held = blocks.find(({ holds }) => bundle.hashes.some((hash) => holds.has(hash)));
			if (held === undefined) this.#follow(bundle, head, gone.size > 0);
			else if (bundle.hashes.every((hash) => held.holds.has(hash)))
				this.#land(bundle, held.number, held.hash);
			else this.#end(bundle, held.number, { stage: "DROPPED", reason: "transactionMined" });
		});
	}

	/** The time of the next block may have changed. */
	nextBlockChanged(): void {
		for (const bundle of this.#bundles.values())
			if (bundle.outgoing.times !== null && bundle.state.kind !== "landed") this.#try(bundle, false);
	}

	/** Handles a bundle that has no transaction in the new blocks. */
	#follow(bundle: PlainBundle, { number: head, timestamp }: Block, isReorg: boolean): void {
		const { state, firstBlock, lastBlock, record, outgoing } = bundle;
		if (state.kind === "landed") {
			if (head >= Math.max(lastBlock, state.number + REORG_BLOCKS)) this.#forget(bundle);
			return;
		}
		const sent = sentFor(bundle);
		const stage = sent !== null && sent <= head ? (statusIn(record, sent)?.stage ?? "ACCEPTED") : null;
		if (sent !== null && (stage === "SENT" || stage === "ACCEPTED")) {
			const isMistimed = sent === head && !isAt(outgoing.times, timestamp);
			// A builder can only leave out a bundle that it was sent.
			const reason = isMistimed ? "timestamp" : stage === "SENT" ? "notChosen" : null;
			this.#market.table.change(record, sent, { stage: "NOT_INCLUDED", reason });
		}
		const isLate = bundle.trial !== null && firstBlock <= head && head <= lastBlock && sent !== head;
		if (isLate) this.#market.table.change(record, head, { stage: "NOT_INCLUDED", reason: "notSimulated" });
		if (lastBlock <= head) this.#end(bundle, head, null);
		else this.#try(bundle, isReorg);
	}

	/** Starts no further simulation. */
	stop(): void {
		this.#stopped = true;
		for (const bundle of this.#bundles.values()) bundle.trial?.abort();
	}

	/**
	 * Simulates the bundle for the next block if its times allow that, and sends it if it passes.
	 * `evenIfSent`: also if it was already sent for that block.
	 */
	#try(bundle: PlainBundle, evenIfSent: boolean): void {
		endTrial(bundle);
		const { tip, background, clock } = this.#dependencies;
		const { simulation } = this.#market;
		const next = tip.next();
		if (this.#stopped || next === null || !isIn(bundle, next.number)) return;
		if (!isAt(bundle.outgoing.times, next.timestamp)) {
			this.#leaveOut(bundle, next.number, "timestamp");
			return;
		}
		if (sentFor(bundle) === next.number && !evenIfSent) return;
		const trial = new AbortController();
		const { signal } = trial;
		bundle.trial = trial;
		const { outgoing, state } = bundle;
		// Among one client's bundles, those that failed before go last.
		const hasFailed = state.kind === "failed" && state.block === next.number - 1;
		const priority = hasFailed ? "held" : "again";
		const { client, transactions } = outgoing;
		const request = { transactions, client, block: next.number, next, priority, signal } as const;
		const turn = { client, cost: transactions.length, rank: priority === "held" ? 1 : 0, signal };
		background.run("bundles", async () => {
			while (!signal.aborted) {
				const verdict = await this.#retrials
					.run(turn, () => simulation.plain(request))
					.catch((thrown: unknown) => {
						if (!signal.aborted) throw thrown;
					});
				if (signal.aborted || verdict === undefined) return;
				if (verdict.kind === "passes" || verdict.kind === "fails") {
					bundle.trial = null;
					if (verdict.kind === "passes") this.#send(bundle);
					else this.#leaveOut(bundle, next.number, failureReason(verdict.error));
					return;
				}
				const againMs = retryMs(verdict);
				if (againMs === null) return;
				await pause(clock, againMs, signal);
			}
		});
	}

	/** The bundle can't be in this block: cancels it at builders that have it. */
	#leaveOut(bundle: PlainBundle, block: number, reason: BundleReason): void {
		this.#cancelAtBuilders(bundle, []);
		bundle.state = { kind: "failed", block };
		this.#market.table.change(bundle.record, block, { stage: "NOT_INCLUDED", reason });
	}

	#land(bundle: PlainBundle, number: number, hash: string): void {
		endTrial(bundle);
		const { state } = bundle;
		bundle.state = { kind: "landed", number, hash, before: state.kind === "landed" ? state.before : state };
		this.#market.table.change(bundle.record, number, { stage: "INCLUDED", reason: null, blockHash: hash });
	}

	/** Its block has left the chain: it is live again for the rest of its range. */
	#revive(bundle: PlainBundle, { number, before }: Extract<PlainBundleState, { kind: "landed" }>): void {
		bundle.state = before;
		const change = { stage: "NOT_INCLUDED", reason: "reorganised", blockHash: null } as const;
		this.#market.table.change(bundle.record, number, change);
	}

	/** Accepts or rejects a bundle. Throws RpcError if the node fails, and then keeps nothing. */
	async submit(given: PlainBundleRequest, entry: BundleEntry): Promise<BundleOutcome> {
		const turn = { client: given.network, cost: given.body.length };
		// Outside the scheduled job, since it takes seconds.
		const request = await this.#withReadyBlobs(given);
		if ("outcome" in request) return request;
		try {
			return await this.#admissions.run(turn, () => this.#consider(request, entry));
		} catch (thrown) {
			if (!(thrown instanceof OverloadedError)) throw thrown;
			return rejectedBundle("LIMIT", "limit exceeded: too many bundles are waiting");
		}
	}

	async #withReadyBlobs(request: PlainBundleRequest): Promise<PlainBundleRequest | BundleOutcome> {
		const { network, body } = request;
		let changed: PlainBundleRequest["body"] | null = null;
		for (const [i, entry] of body.entries()) {
			const one = { raw: entry.raw, i, count: body.length };
			const raw = await withReadyBlobs(one, network, this.#options.rules, this.#dependencies);
			if ("outcome" in raw) return raw;
			if (raw !== entry.raw) changed = (changed ?? body).with(i, { ...entry, raw });
		}
		return changed === null ? request : { ...request, body: changed };
	}

	async #consider(request: PlainBundleRequest, entry: BundleEntry): Promise<BundleOutcome> {
		const { tip, clock } = this.#dependencies;
		const { refundingBuilders, simulation } = this.#market;
		const { blocks, times, body, builders, network, uuid } = request;
		const next = tip.next();
		if (next === null) throw nodeUnavailable();
		const range = blockRange(blocks, next.number - 1);
		if (!range.ok) return rejectedBundle(range.code, range.message);
		if (request.refund !== null && !refundingBuilders.some((name) => builders?.includes(name) ?? true))
			return rejectedBundle("NO_BIDDING", "no builder pays refunds");
		const txs = await readTransactions(body, this.#options.rules, next);
		if ("outcome" in txs) return txs;
		const transactions = txs.map((tx, i) => ({ tx, mayRevert: body[i]?.canRevert ?? false, mayDrop: false }));
		const one: Considered = { request, entry, transactions, hash: bundleHash(txs.map((tx) => tx.hash)) };
		for (let left = MAX_TRIES; left > 0; left--) {
			const coming = tip.next();
			const head = tip.head();
			if (coming === null || head === null) throw nodeUnavailable();
			const ahead = comingOf(blocks, range, coming.number);
			if (!ahead.ok) return rejectedBundle(ahead.code, ahead.message);
			const freed = this.#freed(one, ahead);
			const full = this.#full(one, freed);
			if (full !== null) return full;
			const covered = uuid === null ? withBlocksOf(ahead, freed, coming.number) : ahead;
			const block = firstAt(covered, times, coming);
			const verdict = await simulation.plain({
				transactions,
				client: network,
				block,
				next: coming,
				priority: "bid",
				signal: entry.stop.signal,
			});
			const result = { block, verdict };
			if (entry.withdrawn !== null) return this.#take(one, covered, result);
			// The head has changed meanwhile: the result is stale.
			if (tip.head()?.hash !== head.hash) continue;
			if (left > 1 && isTransient(verdict)) {
				await pause(clock, LATER_HEAD_MS);
				continue;
			}
			if (verdict.kind === "unavailable" || verdict.kind === "outdated") throw nodeUnavailable();
			if (verdict.kind === "impossible")
				return rejectedBundle(
					"NO_BIDDING",
					`bidding is not available with this bundle: ${verdict.why}`,
					true,
				);
			const isLast = covered.last === coming.number;
			if (verdict.kind === "fails" && (isLast || !isMendable(verdict.error))) return rejectionOf(verdict);
			// Synchronous from here on, so that nothing changes in between.
			return this.#take(one, covered, result);
		}
		throw nodeUnavailable();
	}

	/**
	 * The bundle under its uuid, which this one replaces. Without a uuid, one with the same
	 * transactions and overlapping or adjoining blocks: many searchers resend with a moving range.
	 */
	#freed({ request, entry, hash }: Considered, range: Range): PlainBundle | undefined {
		const { owner, uuid } = request;
		if (uuid === null) return [...this.#bundles.values()].find((one) => touches(one, owner, hash, range));
		return entry.withdrawn === null ? this.#bundles.get(nameOf(owner, uuid, [])) : undefined;
	}

	/** The rejection if the bundle, in place of `freed`, would exceed a limit; else null. */
	#full({ request, transactions }: Considered, freed: PlainBundle | undefined): BundleOutcome | null {
		const client = request.network;
		const own = freed?.outgoing.client === client ? freed : undefined;
		const over =
			this.#transactions.exceeded(client, transactions.length - (own?.hashes.length ?? 0)) ??
			this.#bytes.exceeded(client, bytesOf(transactions) - (own?.bytes ?? 0));
		if (over === null) return null;
		const whose = over === "client" ? "from this client" : "in all";
		return rejectedBundle("LIMIT", `limit exceeded: too many bundles ${whose}`);
	}

	#take(one: Considered, range: Range, result: TrialResult): BundleOutcome {
		const { sender } = this.#dependencies;
		const { table } = this.#market;
		const { request, entry, transactions, hash } = one;
		const { owner, network, uuid, refund, builders } = request;
		// Other bundles may have been accepted during the simulation.
		const freed = this.#freed(one, range);
		const full = this.#full(one, freed);
		if (full !== null) return full;
		// The same transactions: keep its blocks and its name at builders.
		const earlier = uuid === null ? freed : undefined;
		const firstBlock = Math.min(range.first, earlier?.firstBlock ?? range.first);
		const lastBlock = Math.max(range.last, earlier?.lastBlock ?? range.last);
		const { withdrawn } = entry;
		// Withdrawn during simulation: keep only its status; nothing if an identical one is live.
		if (withdrawn !== null && this.#isLive(owner, hash)) return { outcome: "accepted", hash };
		const record = table.open({
			owner,
			client: network,
			hash,
			bidder: null,
			target: null,
			receivedAt: entry.receivedAt,
			feedMs: null,
			firstBlock,
			lastBlock,
			isSimulated: result.verdict.kind === "passes" || result.verdict.kind === "fails",
		});
		if (withdrawn !== null) {
			table.change(record, firstBlock, { stage: withdrawn });
			return { outcome: "accepted", hash };
		}
		const owed = refund && transactions[refund.bodyIdx];
		const bundle: PlainBundle = {
			record,
			uuid,
			firstBlock,
			lastBlock,
			bytes: bytesOf(transactions),
			hashes: transactions.map(({ tx }) => tx.hash),
			outgoing: {
				name: earlier?.outgoing.name ?? nameOf(owner, uuid, [hash, firstBlock]),
				client: network,
				requestId: null,
				kind: "plain",
				transactions,
				times: request.times,
				refund: owed ? { ...refund, recipient: refund.recipient ?? owed.tx.from, of: null } : null,
			},
			builders: builders ?? sender.names(),
			state: { kind: "accepted" },
			trial: null,
			release: () => table.freeUuid(entry),
		};
		// The bundle under its name: `freed`, or one that is included.
		const old = this.#bundles.get(bundle.outgoing.name);
		const isSame = old !== undefined && isSameAs(old, bundle);
		if (isSame) {
			// Identical to one that was sent already: no status change, nothing to send.
			this.#forget(old);
			bundle.state = old.state;
		}
		table.take(entry, (how, by) => {
			if (how === "CANCELLED") this.#end(bundle, firstBlock, { stage: how, reason: null });
			else this.#replaced(bundle, by);
		});
		if (!isSame) table.change(record, firstBlock, { stage: "ACCEPTED" });
		if (old !== undefined) this.#forget(old);
		this.#bundles.set(bundle.outgoing.name, bundle);
		this.#transactions.takeAnyway(network, transactions.length);
		this.#bytes.takeAnyway(network, bundle.bytes);
		this.#begin(bundle, result);
		if (old !== undefined)
			this.#cancelAtBuilders(old, bundle.state.kind === "sent" ? bundle.state.builders : []);
		return { outcome: "accepted", hash };
	}

	/** For the next block: sends it if it passed, records a failure. Otherwise simulates it. */
	#begin(bundle: PlainBundle, { block, verdict }: TrialResult): void {
		const next = this.#dependencies.tip.next();
		if (block !== next?.number || !isAt(bundle.outgoing.times, next.timestamp)) this.#try(bundle, false);
		else if (verdict.kind === "fails") this.#leaveOut(bundle, block, failureReason(verdict.error));
		else if (sentFor(bundle) !== block) this.#send(bundle);
	}

	/** Another bundle took its uuid. A plain one also replaces or cancels it at the builders. */
	#replaced(bundle: PlainBundle, by: BundleKind | null): void {
		if (!this.#forget(bundle) || bundle.state.kind === "landed") return;
		this.#market.table.change(bundle.record, sentFor(bundle) ?? bundle.firstBlock, { stage: "REPLACED" });
		if (by !== "plain") this.#cancelAtBuilders(bundle, []);
	}

	#isLive(owner: string, hash: string): boolean {
		return [...this.#bundles.values()].some((one) => one.record.owner === owner && one.record.hash === hash);
	}

	#send(bundle: PlainBundle): void {
		const { tip, sender } = this.#dependencies;
		const { table } = this.#market;
		const block = tip.next()?.number;
		if (block === undefined || !isIn(bundle, block)) return;
		const builders = sender.sendBundle(
			{ ...bundle.outgoing, block },
			bundle.builders,
			(delivery) => table.delivered(bundle.record, block, delivery),
			() => {
				if (statusIn(bundle.record, block)?.stage !== "SENT")
					table.change(bundle.record, block, { stage: "SENT", reason: null, placed: true });
			},
		);
		bundle.state = { kind: "sent", block, builders };
	}

	/** Ends it, and cancels it at builders that have it for a coming block. */
	#end(
		bundle: PlainBundle,
		block: number,
		last: { readonly stage: BundleStage; readonly reason: BundleReason | null } | null,
	): void {
		if (!this.#forget(bundle) || bundle.state.kind === "landed") return;
		const statusBlock = sentFor(bundle) ?? Math.max(block, bundle.firstBlock);
		if (last !== null) this.#market.table.change(bundle.record, statusBlock, last);
		this.#cancelAtBuilders(bundle, []);
	}

	/** Cancels it at the builders, except at `others`, which got a replacement. */
	#cancelAtBuilders(bundle: PlainBundle, others: readonly string[]): void {
		const { tip, sender } = this.#dependencies;
		const { state } = bundle;
		if (state.kind !== "sent" || state.block !== tip.next()?.number) return;
		const { block } = state;
		const builders = state.builders.filter((name) => !others.includes(name));
		if (builders.length === 0) return;
		sender.cancelBundle(bundle.outgoing, block, builders, (delivery) =>
			this.#market.table.delivered(bundle.record, block, delivery),
		);
	}

	#forget(bundle: PlainBundle): boolean {
		if (this.#bundles.get(bundle.outgoing.name) !== bundle) return false;
		this.#bundles.delete(bundle.outgoing.name);
		this.#transactions.release(bundle.outgoing.client, bundle.hashes.length);
		this.#bytes.release(bundle.outgoing.client, bundle.bytes);
		endTrial(bundle);
		bundle.release();
		return true;
	}
}

function endTrial(bundle: PlainBundle): void {
	bundle.trial?.abort();
	bundle.trial = null;
}

function bytesOf(transactions: Considered["transactions"]): number {
	return transactions.reduce((sum, { tx }) => sum + tx.size, 0);
}
