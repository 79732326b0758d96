// PER PLAIN BUNDLE: signed transactions and a range of blocks come in; they go out to the builders for each block of the
// range until one holds them, or until their sender takes them back. They are kept in memory alone.

import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import { blockRange, comingOf, type Range } from "../auction/blockRange.ts";
import { bundleHash } from "../auction/bundleHash.ts";
import type { BundleRecords } from "../auction/bundleRecords.ts";
import {
	bytesOf,
	holdsAll,
	holdsAny,
	isSameAs,
	nameOf,
	type PlainBundle,
	touches,
} from "../auction/plainBundle.ts";
import type { Ticket } from "../auction/slots.ts";
import { type BundleOutcome, type PlainBundleRequest, refusedBundle } from "../domain/bundle.ts";
import type { BundleReason, BundleStage } from "../domain/bundleStatus.ts";
import type { Block, ChainUpdate } from "../domain/chain.ts";
import type { Accounts, BundleSender, Tip } from "../domain/ports.ts";
import { type ChainRules, firstRefusal, STATIC_RULES } from "../domain/transactionRules.ts";
import { type BundleEntranceDependencies, enterBundle } from "./bundleEntrance.ts";

export interface PlainBundlesOptions extends ChainRules {
	/** Names of the builders that pay refunds. */
	readonly refunding: readonly string[];
}

export interface PlainBundlesDependencies extends BundleEntranceDependencies {
	readonly accounts: Accounts;
	readonly tip: Tip;
	readonly bundles: BundleRecords;
	readonly sender: BundleSender;
}

/** Plain bundles at most: in all, and of one owner; bytes of all their transactions. */
const MAX_BUNDLES = 10_000;
const MAX_PER_OWNER = 500;
const MAX_BYTES = 128 * 1024 * 1024;

/** So many blocks an included bundle is kept, should its block be reorganised away. */
const REORG_BLOCKS = 8;

/** Takes plain bundles and sends them block by block. */
export class PlainBundles {
	readonly #options: PlainBundlesOptions;
	readonly #deps: PlainBundlesDependencies;
	/** By the name under which they go out: one for each uuid of an owner, or for each bundle without one. */
	readonly #bundles = new Map<string, PlainBundle>();
	#bytes = 0;

	constructor(options: PlainBundlesOptions, dependencies: PlainBundlesDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/** Takes one. Throws RpcError where the node fails: nothing is kept then. */
	submit(request: PlainBundleRequest): Promise<BundleOutcome> {
		return enterBundle(request, this.#deps, (one, ticket) => this.#consider(one, ticket));
	}

	/** Blocks have come: what they hold, or what is over, has ended; the rest is sent for the next one. */
	blocksCame({ applied, reverted, head }: ChainUpdate): void {
		const gone = new Set(reverted.map((block) => block.hash));
		for (const bundle of [...this.#bundles.values()]) {
			if (bundle.landed !== null && gone.has(bundle.landed.hash)) this.#revive(bundle, bundle.landed.number);
			const held = applied.find((block) => holdsAny(block, bundle));
			if (held === undefined) this.#follow(bundle, head.number, gone.size > 0);
			else if (holdsAll(held, bundle)) this.#land(bundle, held);
			else this.#end(bundle, held.number, { stage: "DROPPED", reason: "transactionMined" });
		}
	}

	/** None of the new blocks holds any of it. */
	#follow(bundle: PlainBundle, head: number, again: boolean): void {
		const { bundles } = this.#deps;
		const { landed, outFor, lastBlock } = bundle;
		if (landed !== null) {
			if (head >= Math.max(lastBlock, landed.number + REORG_BLOCKS)) this.#forget(bundle);
			return;
		}
		if (outFor !== null && outFor <= head && bundles.status(bundle, outFor)?.stage === "SENT") {
			bundles.change(bundle, outFor, { stage: "NOT_INCLUDED", reason: "notChosen" });
		}
		if (lastBlock <= head) this.#end(bundle, head, null);
		else this.#send(bundle, again);
	}

	#land(bundle: PlainBundle, { number, hash }: Block): void {
		bundle.landed = { number, hash };
		this.#deps.bundles.change(bundle, number, { stage: "INCLUDED", reason: null, blockHash: hash });
	}

	/** Its block is no longer in the chain: it goes out again for what is left of its range. */
	#revive(bundle: PlainBundle, block: number): void {
		Object.assign(bundle, { landed: null, outFor: null });
		const change = { stage: "NOT_INCLUDED", reason: "reorganised", blockHash: null } as const;
		this.#deps.bundles.change(bundle, block, change);
	}

	async #consider(request: PlainBundleRequest, ticket: Ticket): Promise<BundleOutcome> {
		const { tip } = this.#deps;
		const next = tip.next();
		if (next === null) throw nodeUnavailable();
		const range = blockRange(request.blocks, next.number - 1);
		if (!range.ok) return refusedBundle(range.code, range.message);
		const { refunding } = this.#options;
		if (request.refund !== null && !refunding.some((name) => request.builders?.includes(name) ?? true)) {
			return refusedBundle("NO_BIDDING", "none of the builders pays refunds");
		}
		const txs: DecodedTransaction[] = [];
		for (const [i, { raw }] of request.body.entries()) {
			const decoded = decodeTransaction(raw);
			if (!decoded.ok) return refusedBundle("BAD_TRANSACTION", `${decoded.message} (body[${i}])`);
			const refusal = firstRefusal(STATIC_RULES, decoded.tx, this.#options, next);
			if (refusal !== null) return refusedBundle("BAD_TRANSACTION", `${refusal.message} (body[${i}])`);
			txs.push(decoded.tx);
		}
		const fault = await this.#nonceFault(txs);
		if (fault !== null) return fault;
		// Blocks may have come meanwhile; from here on nothing can come between.
		const now = comingOf(request.blocks, range, tip.next()?.number ?? next.number);
		if (!now.ok) return refusedBundle(now.code, now.message);
		return this.#take(request, ticket, txs, now);
	}

	/** A nonce that is used already can't be in any block to come. */
	async #nonceFault(txs: readonly DecodedTransaction[]): Promise<BundleOutcome | null> {
		for (const tx of txs) {
			const account = await this.#deps.accounts.get(tx.from);
			if (tx.nonce >= account.nonce) continue;
			const message = `nonce too low: next nonce ${account.nonce}, tx nonce ${tx.nonce}`;
			return refusedBundle("BAD_TRANSACTION", message);
		}
		return null;
	}

	/** The refusal where there is no room for one more in the place of `freed` others; else null. */
	#full(owner: string, txs: readonly DecodedTransaction[], freed: number): BundleOutcome | null {
		const live = [...this.#bundles.values()].filter((bundle) => bundle.landed === null);
		const own = live.filter((bundle) => bundle.owner === owner).length;
		if (own - freed >= MAX_PER_OWNER)
			return refusedBundle("LIMIT", `limit exceeded: ${MAX_PER_OWNER} bundles of one searcher`);
		const isFull = this.#bundles.size - freed >= MAX_BUNDLES || this.#bytes + bytesOf(txs) > MAX_BYTES;
		return isFull ? refusedBundle("LIMIT", "limit exceeded: too many bundles in all") : null;
	}

	#take(
		{ owner, uuid, body, refund, builders }: PlainBundleRequest,
		ticket: Ticket,
		txs: readonly DecodedTransaction[],
		range: Range,
	): BundleOutcome {
		const { bundles, sender } = this.#deps;
		const hashes = txs.map((tx) => tx.hash);
		const hash = bundleHash(hashes);
		// Sent again for a range that moves on, as many do: it is one bundle for all of them.
		const twin =
			uuid === null ? [...this.#bundles.values()].find((one) => touches(one, owner, hash, range)) : undefined;
		const full = this.#full(owner, txs, ticket.replaces() || twin !== undefined ? 1 : 0);
		if (full !== null) return full;
		const firstBlock = Math.min(range.first, twin?.firstBlock ?? range.first);
		const lastBlock = Math.max(range.last, twin?.lastBlock ?? range.last);
		const recipient = refund === null ? null : (refund.recipient ?? txs[refund.bodyIdx]?.from ?? null);
		const bundle: PlainBundle = {
			...{ owner, uuid, hash, hashes, firstBlock, lastBlock, bytes: bytesOf(txs) },
			outgoing: {
				name: twin?.outgoing.name ?? nameOf(owner, uuid, [hash, firstBlock]),
				transactions: txs.map((tx, i) => ({ tx, mayRevert: body[i]?.canRevert ?? false, mayDrop: false })),
				refund:
					refund === null || recipient === null
						? null
						: { percent: refund.percent, recipient, bodyIdx: refund.bodyIdx, of: null },
			},
			builders: builders ?? sender.names(),
			outFor: null,
			landed: null,
			sentTo: [],
			release: () => ticket.release(),
		};
		const overtaken = ticket.overtaken();
		if (overtaken !== null) {
			// One that is live has the same record.
			if (this.#isLive(owner, hash)) return { outcome: "accepted", hash };
			bundles.open(bundle, null, firstBlock, lastBlock);
			bundles.change(bundle, firstBlock, { stage: overtaken });
			return { outcome: "accepted", hash };
		}
		const old = this.#bundles.get(bundle.outgoing.name);
		const isSame = old !== undefined && isSameAs(old, bundle);
		if (isSame) {
			// The very same bundle again: it is out already, and nobody is told.
			this.#forget(old);
			Object.assign(bundle, { outFor: old.outFor, sentTo: old.sentTo });
		}
		ticket.take((how) => {
			if (how === "CANCELLED") this.#end(bundle, firstBlock, { stage: how, reason: null });
			else this.#replaced(bundle);
		});
		bundles.open(bundle, null, firstBlock, lastBlock);
		if (!isSame) bundles.change(bundle, firstBlock, { stage: "ACCEPTED" });
		if (old !== undefined) this.#forget(old);
		this.#bundles.set(bundle.outgoing.name, bundle);
		this.#bytes += bundle.bytes;
		this.#send(bundle, false);
		if (old !== undefined) this.#takeBack(old, bundle.sentTo);
		return { outcome: "accepted", hash };
	}

	/** Another bundle has its uuid; a plain one takes its place at the builders too. */
	#replaced(bundle: PlainBundle): void {
		if (!this.#forget(bundle) || bundle.landed !== null) return;
		this.#deps.bundles.change(bundle, bundle.outFor ?? bundle.firstBlock, { stage: "REPLACED" });
		queueMicrotask(() => {
			if (!this.#bundles.has(bundle.outgoing.name)) this.#takeBack(bundle, []);
		});
	}

	#isLive(owner: string, hash: string): boolean {
		return [...this.#bundles.values()].some((one) => one.owner === owner && one.hash === hash);
	}

	#send(bundle: PlainBundle, again: boolean): void {
		const { tip, sender, bundles } = this.#deps;
		const block = tip.next()?.number;
		if (block === undefined || block < bundle.firstBlock || block > bundle.lastBlock) return;
		if (bundle.outFor === block && !again) return;
		bundle.outFor = block;
		bundle.sentTo = sender.sendBundle({ ...bundle.outgoing, block }, bundle.builders, (delivery) =>
			bundles.delivered(bundle, block, delivery),
		);
		bundles.change(bundle, block, { stage: "SENT", reason: null });
	}

	/** Ends it, and tells the builders that have had it for a block to come. */
	#end(
		bundle: PlainBundle,
		block: number,
		last: { readonly stage: BundleStage; readonly reason: BundleReason | null } | null,
	): void {
		if (!this.#forget(bundle) || bundle.landed !== null) return;
		const told = bundle.outFor ?? Math.max(block, bundle.firstBlock);
		if (last !== null) this.#deps.bundles.change(bundle, told, last);
		this.#takeBack(bundle, []);
	}

	/** Tells the builders to forget it, but for those that have got another one in its place. */
	#takeBack(bundle: PlainBundle, others: readonly string[]): void {
		const { tip, sender, bundles } = this.#deps;
		const block = bundle.outFor;
		if (block === null || block !== tip.next()?.number) return;
		const builders = bundle.sentTo.filter((name) => !others.includes(name));
		if (builders.length === 0) return;
		sender.cancelBundle(bundle.outgoing.name, block, builders, (delivery) =>
			bundles.delivered(bundle, block, delivery),
		);
	}

	#forget(bundle: PlainBundle): boolean {
		if (this.#bundles.get(bundle.outgoing.name) !== bundle) return false;
		this.#bundles.delete(bundle.outgoing.name);
		this.#bytes -= bundle.bytes;
		bundle.release();
		return true;
	}
}
