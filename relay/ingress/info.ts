// The JSON of `GET /info`: the relay's chain, how bids must pay, and its limits.

import type { Build } from "../../shared/version.ts";
import type { BuilderRow } from "../domain/builder.ts";
import { MAX_BLOCKS_AHEAD } from "../domain/bundle.ts";
import { MAX_BUNDLE_TRANSACTIONS, MAX_UUID_LENGTH } from "./bundleRequests.ts";

export interface InfoSettings {
	/** The coinbase of all builders, if they have one. */
	readonly FEE_RECIPIENT: string | undefined;
	readonly REFUND_PERCENT: number;
	readonly TX_TTL_BLOCKS: number;
	readonly MAX_BODY_BYTES: number;
	readonly MAX_BATCH: number;
	readonly RATE_LIMIT_RPS: number;
}

/** The facts of the report that are not settings. */
export interface InfoFacts extends Build {
	readonly chainId: bigint;
	/** The relay's name in signatures of reads; null: none. */
	readonly name: string | null;
	readonly maxPendingPerSender: number;
	/** Whether this relay is the core, or an edge before it. */
	readonly role: Role;
	/** The core's term; null if the store is not a database. */
	readonly term: number | null;
	/** Whether bids are accepted now; null while no core answers. */
	readonly bidding: boolean | null;
	/** The currently known time between blocks, in ms. */
	readonly slotMs: number;
	/** The fork whose rules the next block has; null while no block is known. */
	readonly fork: string | null;
	/** The builders at which bidders have records. */
	readonly recordsAt: readonly Pick<BuilderRow, "name" | "feeRecipients">[];
	/**
	 * Whether PREVRANDAO and the beacon root of the next block are known, so that simulations use
	 * the real ones.
	 */
	readonly isPublished: boolean;
	/** The simulation abilities of the core's node, as JSON; null while no core answers. */
	readonly simulation: unknown;
	/** The address whose key signs receipts; null while no core answers. */
	readonly receiptSigner: string | null;
	/** Null while no core answers. */
	readonly leaks: Leaks | null;
}

/**
 * Whether a private transaction would be seen in the node's public mempool: `unseen` if the node
 * does not show that.
 */
export type Leaks = "seen" | "unseen";

/** The core decides; an edge serves clients and asks the core. */
export type Role = "core" | "edge";

/** The JSON of `GET /info`. */
export function infoReport(settings: InfoSettings, facts: InfoFacts): unknown {
	const { version, commit, chainId, maxPendingPerSender, bidding, isPublished, simulation, slotMs, fork } =
		facts;
	return {
		name: facts.name,
		version,
		commit,
		role: facts.role,
		term: facts.term,
		chainId: `0x${chainId.toString(16)}`,
		fork,
		feeRecipient: settings.FEE_RECIPIENT ?? null,
		pay: "block.coinbase",
		bidding,
		recordsAt: facts.recordsAt.map(({ name }) => name),
		coinbases: Object.fromEntries(facts.recordsAt.map((row) => [row.name, row.feeRecipients])),
		randomness: isPublished ? "real" : "random",
		simulation,
		receiptSigner: facts.receiptSigner,
		leaks: facts.leaks,
		refundPercent: settings.REFUND_PERCENT,
		txTtlBlocks: settings.TX_TTL_BLOCKS,
		slotMs,
		slotSeconds: slotMs / 1_000,
		limits: {
			maxBodyBytes: settings.MAX_BODY_BYTES,
			maxBatch: settings.MAX_BATCH,
			rateLimitRps: settings.RATE_LIMIT_RPS,
			maxPendingPerSender,
			maxBundleBlocksAhead: MAX_BLOCKS_AHEAD,
			maxBundleTransactions: MAX_BUNDLE_TRANSACTIONS,
			maxReplacementUuidLength: MAX_UUID_LENGTH,
		},
	};
}
