// The market's options, and the other parts of the relay that it depends on.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import type { BlobProofs } from "../../shared/ethereum/blobProofs.ts";
import type { ForkAt } from "../../shared/ethereum/forks.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { DamagedEntries } from "../../shared/kv/damagedEntries.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import type { Logger } from "../../shared/log.ts";
import type { BidsOptions } from "../auction/bids.ts";
import type { BundleTableOptions } from "../auction/bundleTable.ts";
import type { PlainLimits } from "../auction/plainBundle.ts";
import type { BundleSender } from "../broadcast/fanout.ts";
import type { BundleRejection } from "../domain/bundle.ts";
import type { BundleBlockStatus, BundleRecord } from "../domain/bundleStatus.ts";
import type { Tip } from "../domain/chain.ts";
import type { Accounts, Publisher, Simulations } from "../domain/ports.ts";
import type { ChainRules } from "../domain/transactionRules.ts";
import type { PaymentReader } from "../inclusion/payments.ts";
import type { Transactions } from "../transactions/transactions.ts";
import type { FiguresOptions } from "./figures.ts";

export interface MarketOptions {
	readonly rules: ChainRules;
	readonly refundPercent: number;
	/** Most bids of one target at one builder. */
	readonly bidsPerTarget: number;
	/** Secret that the numbers for assigning slots are derived from. */
	readonly secret: Buffer;
	/** Whether the node is known to simulate one transaction behind another, which bidding needs. */
	readonly bidding: () => boolean;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
	readonly limits: {
		readonly bids: BidsOptions;
		readonly table: BundleTableOptions;
		readonly figures: FiguresOptions;
		readonly plain: PlainLimits;
	};
}

export interface MarketDependencies {
	readonly transactions: Pick<
		Transactions,
		"backrunLeftOut" | "bid" | "bundled" | "delivered" | "pool" | "records" | "refunded"
	>;
	readonly accounts: Accounts;
	readonly tip: Tip;
	readonly simulations: Simulations;
	/** Returns the fork whose rules apply in a block. */
	readonly forkAt: ForkAt;
	readonly sender: BundleSender;
	/** The length of the chain's slots. */
	readonly slot: SlotLength;
	readonly payments: PaymentReader;
	readonly blobProofs: Pick<BlobProofs, "ready">;
	readonly publisher: Publisher;
	/** Stores bidders' payments and searchers' figures. */
	readonly kv: KeyValueStore;
	readonly damaged: DamagedEntries;
	/** A bundle's status as subscribers receive it. */
	readonly view: (record: BundleRecord, status: BundleBlockStatus) => unknown;
	readonly onBundle: (kind: "bid" | "plain", outcome: "accepted" | "failed" | BundleRejection) => void;
	/** Called with the amounts that each landed bid claimed and paid, in wei. */
	readonly onLanded: (claimed: bigint, paid: bigint) => void;
	/** Called when the node has a later head than the tracked one. */
	readonly onLaterHead: () => void;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}
