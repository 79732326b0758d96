// Sends bundles, transactions and cancels to the builders, each through the builder's own queue,
// and reports the answers. A bundle that asks for a refund goes only to builders that pay refunds.
// The caller chooses all other recipients.

import { clientOf } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import type { SignatureWork } from "../../shared/ethereum/signatureWork.ts";
import { EventLoopQueue } from "../../shared/shares/scheduler.ts";
import { type Fullness, fullest } from "../../shared/shares/shares.ts";
import { type BuilderRow, hasRecords } from "../domain/builder.ts";
import type { OutgoingBundle } from "../domain/bundle.ts";
import type { BundleDelivery } from "../domain/bundleStatus.ts";
import { type EndpointPolicy, policyOf, type SubmissionPath } from "../domain/endpoints.ts";
import type { DeliveryAnswer, DeliveryKind, TxEvent } from "../domain/events.ts";
import type { RefundTerms } from "../domain/refund.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import { BodySignatures } from "./bodySignatures.ts";
import {
	BUILDER_CONNECTIONS,
	type BuilderCall,
	BuilderClient,
	type BuilderClientDependencies,
	bodyOf,
	bundleCall,
	bundleUuid,
	cancelBundleCalls,
	cancelPrivateCalls,
	keepsTimes,
	privateCall,
	refundTerms,
	type SignedBody,
} from "./builderClient.ts";
import { Lane, type LaneItem } from "./lane.ts";

export interface FanoutOptions {
	readonly builders: readonly BuilderRow[];
	/** Private key (0x hex) that requests are signed with. */
	readonly signingKey: string;
	/** See LaneOptions.capacity. */
	readonly laneCapacity: number;
}

export interface FanoutDependencies extends BuilderClientDependencies {
	readonly work: Pick<SignatureWork, "sign">;
	/** Called with each answer to a transaction that was sent alone, or to its cancel. */
	readonly delivered: (hash: string, event: Extract<TxEvent, { type: "delivered" }>) => void;
	/**
	 * Checked before each request. False while another relay may be the active one. Cancels are
	 * sent anyway.
	 */
	readonly maySend: () => boolean;
	readonly onDelivery: DeliveryListener;
}

interface Builder {
	readonly row: BuilderRow;
	readonly client: BuilderClient;
	readonly lane: Lane;
}

/** From so many bytes on, a body takes a millisecond to make and to hash. */
const LARGE_BYTES = 32 * 1024;
/** As many as may wait in a builder queue. */
const KEPT_SIGNATURES = 100_000;

/** The kind of a delivery. `backrun` is any bundle except one that contains only a target. */
export type DeliveredKind = DeliveryKind | "backrun";

/** Called for every delivery, for metrics, readiness and traces. */
export type DeliveryListener = (
	builder: string,
	kind: DeliveredKind,
	answer: DeliveryAnswer,
	ms: number,
	/** Hash of the transaction, or of a bundle's first one; "" if it is not known any more. */
	hash: string,
	/** The target block. */
	block: number,
) => void;

/** One transaction to be sent to builders. */
export interface Dispatch {
	readonly transaction: PrivateTransaction;
	/** The target block. */
	readonly block: number;
	/** The last block of its lifetime: how long builders may keep a private transaction. */
	readonly lastBlock: number;
	/** Wei that the builder earns by it, default 0. A client's highest goes first. */
	readonly worth?: number;
	/** Called when a request with it is written. */
	readonly left?: () => void;
}

/** Called with each builder's response. */
export type BundleAnswered = (delivery: BundleDelivery) => void;

/** The functions of the builders that users' transactions need. */
export type Broadcaster = Pick<
	Fanout,
	| "builtBy"
	| "cancel"
	| "eligible"
	| "forget"
	| "isOut"
	| "leastWaiting"
	| "restore"
	| "send"
	| "sentTo"
	| "takeBack"
>;

/** The functions of the builders that searchers' bundles need. */
export type BundleSender = Pick<
	Fanout,
	"builtBy" | "cancelBundle" | "keepsTimes" | "names" | "perSecond" | "sendBundle" | "terms"
>;

/** The builders and their queues. */
export class Fanout {
	readonly #builders: ReadonlyMap<string, Builder>;
	readonly #eligible: Readonly<Record<EndpointPolicy["builders"], readonly string[]>>;
	/** The identifier of a bundle by its name. */
	readonly #uuid: (name: string) => string;
	readonly #signatures: BodySignatures;
	readonly #large: EventLoopQueue;
	readonly #delivered: FanoutDependencies["delivered"];
	readonly #clock: Clock;
	readonly #onDelivery: DeliveryListener;

	constructor(options: FanoutOptions, dependencies: FanoutDependencies) {
		const marked = options.builders.filter((row) => row.fullPrivacy);
		const trusted = marked.length > 0 ? marked : options.builders.slice(0, 1);
		this.#eligible = {
			all: options.builders.map((row) => row.name),
			fullPrivacy: trusted.map((row) => row.name),
		};
		const { signingKey } = options;
		this.#uuid = (name) => bundleUuid(name, signingKey);
		this.#signatures = new BodySignatures({ key: signingKey, kept: KEPT_SIGNATURES }, dependencies);
		this.#large = new EventLoopQueue(dependencies);
		this.#delivered = dependencies.delivered;
		this.#clock = dependencies.clock;
		this.#onDelivery = dependencies.onDelivery;
		this.#builders = new Map(
			options.builders.map((row) => {
				const client = new BuilderClient(row, dependencies);
				const lane = new Lane(
					{
						capacity: options.laneCapacity,
						concurrency: BUILDER_CONNECTIONS,
						perSecond: row.requestsPerSecond,
					},
					{
						send: client.send.bind(client),
						maySend: dependencies.maySend,
						clock: dependencies.clock,
					},
				);
				return [row.name, { row, client, lane }];
			}),
		);
	}

	/** Names of the builders that a path allows. */
	allowed(path: SubmissionPath): readonly string[] {
		return this.#eligible[policyOf(path).builders];
	}

	/** Names of the builders that its path and its owners allow. */
	eligible({ path, builders }: Pick<PrivateTransaction, "path" | "builders">): readonly string[] {
		const allowed = this.allowed(path);
		return builders === null ? allowed : allowed.filter((name) => builders.includes(name));
	}

	/** Whether any builder was sent the transaction since its last submission. */
	isOut(hash: string): boolean {
		return this.sentTo(hash).length > 0;
	}

	/** Names of the builders that were sent the transaction since its last submission. */
	sentTo(hash: string): readonly string[] {
		const builders = [...this.#builders.values()];
		return builders.filter(({ lane }) => lane.sentFor("user", hash) !== undefined).map(({ row }) => row.name);
	}

	/** Marks builders that were sent the transaction before this process started. */
	restore(hash: string, builders: Iterable<string>): void {
		for (const { lane } of this.#recipients([...builders])) lane.restore(hash);
	}

	/** Drops the knowledge about a transaction that is no longer pending. */
	forget(hash: string): void {
		for (const { lane } of this.#builders.values()) lane.forget("user", hash);
	}

	/**
	 * Removes the transaction from all queues. Returns the builders that were sent it and may need a
	 * cancel.
	 */
	takeBack({ tx }: PrivateTransaction): readonly string[] {
		for (const { lane } of this.#builders.values()) lane.withdraw(tx.from, tx.hash);
		return this.sentTo(tx.hash);
	}

	/** Queues it for `builders`; does not wait. */
	send(dispatch: Dispatch, builders: readonly string[]): void {
		const { transaction, block, lastBlock, worth, left } = dispatch;
		const { tx } = transaction;
		const kind = policyOf(transaction.path).form;
		const bundle = kind === "bundle" ? targetBundle(dispatch) : null;
		const uuid = bundle === null ? "" : this.#uuid(bundle.name);
		const client = clientOf(transaction.submitterAddress);
		for (const { row, lane } of this.#recipients(builders)) {
			lane.push({
				key: tx.from,
				subject: tx.hash,
				client,
				worth,
				kind: "user",
				block,
				requestId: transaction.requestId,
				urgent: false,
				make: () =>
					this.#signed(client, tx.size, () =>
						bundle === null ? privateCall(row, tx, lastBlock) : bundleCall(row, bundle, uuid),
					),
				left,
				answered: this.#answered.bind(this, transaction, row.name, kind, block),
			});
		}
	}

	/**
	 * Queues its cancel at `builders`, in every form that they support; does not wait. Call {@link
	 * takeBack} first.
	 */
	cancel(transaction: PrivateTransaction, builders: readonly string[], block: number): void {
		const { tx, path } = transaction;
		const client = clientOf(transaction.submitterAddress);
		const isBundle = policyOf(path).form === "bundle";
		const uuid = isBundle ? this.#uuid(targetName(tx.hash)) : "";
		for (const { row, lane } of this.#recipients(builders)) {
			const calls = isBundle ? cancelBundleCalls(row, uuid, block) : cancelPrivateCalls(row, tx.hash);
			pushCancels(lane, this.#signatures, calls, {
				answered: this.#answered.bind(this, transaction, row.name, "cancel", block),
				key: tx.from,
				subject: tx.hash,
				client,
				kind: "user",
				block,
				requestId: transaction.requestId,
			});
		}
	}

	/**
	 * Queues the bundle for those of `builders` that may have it, and returns their names without
	 * waiting. A bundle with a refund goes only to builders that pay refunds. A newer bundle
	 * replaces a queued one of the same name, which is answered `unsent`. `answered` may be called
	 * before this returns, if a queue is full or closed. `left` is called when a request with it is
	 * written to a builder. That never happens if it is replaced in the queue.
	 */
	sendBundle(
		bundle: OutgoingBundle,
		builders: readonly string[],
		answered: BundleAnswered,
		left?: (builder: string) => void,
	): readonly string[] {
		const { name, block, refund, client, worth, kind, slot, requestId } = bundle;
		const recipients = this.#recipients(builders).filter(
			({ row }) => refund === null || refundTerms(row, refund.percent) !== null,
		);
		const key = laneKey(name);
		const uuid = this.#uuid(key);
		const first = bundle.transactions[0]?.tx.hash ?? "";
		const size = bundle.transactions.reduce((sum, { tx }) => sum + tx.size, 0);
		for (const { row, lane } of recipients) {
			lane.push({
				key,
				subject: name,
				client,
				worth,
				kind,
				slot,
				block,
				requestId,
				urgent: false,
				make: () => this.#signed(client, size, () => bundleCall(row, bundle, uuid)),
				left: left && (() => left(row.name)),
				answered: this.#bundleAnswered.bind(this, answered, row.name, "bundle", first, block),
			});
		}
		return recipients.map(({ row }) => row.name);
	}

	/**
	 * Queues the cancel of a bundle for `block` at those of `builders` that were sent it; does not
	 * wait.
	 */
	cancelBundle(
		{ name, client, kind, requestId }: Pick<OutgoingBundle, "name" | "client" | "kind" | "requestId">,
		block: number,
		builders: readonly string[],
		answered: BundleAnswered,
	): void {
		const key = laneKey(name);
		const uuid = this.#uuid(key);
		for (const { row, lane } of this.#recipients(builders)) {
			lane.withdraw(key, name);
			// The builder has nothing to cancel, since it was not sent this bundle for a coming block.
			if (!lane.isSentAhead(kind, name)) continue;
			lane.forget(kind, name);
			pushCancels(lane, this.#signatures, cancelBundleCalls(row, uuid, block), {
				answered: this.#bundleAnswered.bind(this, answered, row.name, "cancel", "", block),
				key,
				subject: name,
				client,
				kind,
				block,
				requestId,
			});
		}
	}

	/** All builders' names. */
	names(): readonly string[] {
		return this.#eligible.all;
	}

	/**
	 * The refund that a builder pays when `percent` is requested; null where it pays none or is not
	 * known.
	 */
	terms(name: string, percent: number): RefundTerms | null {
		const builder = this.#builders.get(name);
		return builder === undefined ? null : refundTerms(builder.row, percent);
	}

	/** Searchers' requests per second that a builder accepts while users send none. */
	perSecond(name: string): number {
		return this.#builders.get(name)?.lane.perSecond ?? 0;
	}

	/** Names of the builders whose blocks have this coinbase. */
	builtBy(coinbase: string): readonly string[] {
		const builders = [...this.#builders.values()];
		return builders.filter(({ row }) => row.feeRecipients.includes(coinbase)).map(({ row }) => row.name);
	}

	/** Whether the builder itself enforces a bundle's times. */
	keepsTimes(name: string): boolean {
		const builder = this.#builders.get(name);
		return builder !== undefined && keepsTimes(builder.row);
	}

	/** Drops items that wait for `head` or an earlier block. */
	setHead(head: number): void {
		for (const { lane } of this.#builders.values()) lane.setHead(head);
	}

	/** Items in all queues, for metrics. */
	get depth(): number {
		let depth = 0;
		for (const { lane } of this.#builders.values()) depth += lane.depth;
		return depth;
	}

	/** By builder: how many items wait or are in flight, and whether bidders have records there. */
	get states(): readonly { readonly name: string; readonly waiting: number; readonly hasRecords: boolean }[] {
		return Array.from(this.#builders, ([name, { row, lane }]) => {
			return { name, waiting: lane.depth, hasRecords: hasRecords(row) };
		});
	}

	/** How many items wait or are in flight at the builder that has the fewest. */
	get leastWaiting(): number {
		let least = Number.POSITIVE_INFINITY;
		for (const { lane } of this.#builders.values()) least = Math.min(least, lane.depth);
		return least;
	}

	/** How full the fullest queue is, for metrics. */
	get fullness(): Fullness {
		return fullest([...this.#builders.values()].map(({ lane }) => lane.fullness));
	}

	/** Finishes requests in flight and drops waiting items, which are still in the store. */
	async close(): Promise<void> {
		const builders = [...this.#builders.values()];
		await Promise.all(builders.map(({ lane }) => lane.close()));
		await Promise.all(builders.map(({ client }) => client.close()));
	}

	#recipients(names: readonly string[]): Builder[] {
		return names.flatMap((name) => this.#builders.get(name) ?? []);
	}

	#answered(
		transaction: PrivateTransaction,
		builder: string,
		kind: DeliveryKind,
		block: number,
		answer: DeliveryAnswer,
		ms: number,
	): void {
		const { hash } = transaction.tx;
		this.#onDelivery(builder, kind, answer, ms, hash, block);
		const at = this.#clock.now();
		this.#delivered(hash, { type: "delivered", at, block, builder, kind, answer, ms });
	}

	#bundleAnswered(
		answered: BundleAnswered,
		builder: string,
		kind: BundleDelivery["kind"],
		hash: string,
		block: number,
		answer: DeliveryAnswer,
		ms: number,
	): void {
		this.#onDelivery(builder, kind === "bundle" ? "backrun" : kind, answer, ms, hash, block);
		answered({ at: this.#clock.now(), builder, kind, answer, ms });
	}

	/**
	 * The signed body of a call with transactions of `size` bytes. A large one takes milliseconds, so
	 * several of them do not share a turn of the event loop.
	 */
	#signed(client: string, size: number, callOf: () => BuilderCall): SignedBody | Promise<SignedBody> {
		const make = () => this.#signatures.signed(bodyOf(callOf()));
		return size < LARGE_BYTES ? make() : this.#large.result(client, make).then((made) => made);
	}
}

/** Queues cancels, which go before everything else of the same kind. */
function pushCancels(
	lane: Lane,
	signatures: BodySignatures,
	calls: readonly BuilderCall[],
	item: Omit<LaneItem, "make" | "urgent">,
): void {
	for (const call of calls) lane.push({ ...item, make: () => signatures.signed(bodyOf(call)), urgent: true });
}

/**
 * A bundle's queue key, from which its identifier is derived. It can't equal a sender's address or
 * a target's name.
 */
function laneKey(name: string): string {
	return `bundle ${name}`;
}

/**
 * The name of the bundle that contains only a target. No {@link OutgoingBundle.name} looks like it.
 */
function targetName(hash: string): string {
	return `target ${hash}`;
}

/** A bundle of the transaction alone, without a refund. */
export function targetBundle({ transaction, block }: Dispatch): OutgoingBundle {
	const { tx, path, submitterAddress, requestId } = transaction;
	return {
		name: targetName(tx.hash),
		transactions: [{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false }],
		client: clientOf(submitterAddress),
		requestId,
		kind: "user",
		block,
		times: null,
		refund: null,
	};
}
