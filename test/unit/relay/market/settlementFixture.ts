// Mined transactions with backruns behind them, and the blocks that hold them, laid down by hand around the real
// settlement and records. What was told can be read off the records.

import type { PaidBlock, PaymentReader } from "../../../../relay/domain/ports.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import type { RefundTerms } from "../../../../relay/domain/refund.ts";
import { Settlement, type TargetOutcome } from "../../../../relay/market/settlement.ts";
import { type RecordEntry, TransactionRecords } from "../../../../relay/transactions/records.ts";
import { Background } from "../../../../shared/background.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";

export const COINBASE = "0xc01";
export const USER = `0x${"77".repeat(20)}`;
const BASE_FEE = 10n;

export type Row = PaidBlock["transactions"][number];

/** The node and the relay's records. */
export class SettlementFixture implements PaymentReader {
	readonly clock = new ManualClock();
	readonly warnings: string[] = [];
	readonly records: TransactionRecords;
	readonly background: Background;
	readonly blocks = new Map<string, PaidBlock>();
	/** What backruns brought; else what was bid. */
	readonly proceeds = new Map<string, bigint>();
	readonly terms = new Map<string, RefundTerms>([["a", { percent: 90, refundGas: 0 }]]);
	/** Hashes of blocks that the node fails on. */
	readonly failing = new Set<string>();
	/** Hashes of backruns that the node fails on. */
	readonly unreadable = new Set<string>();
	/** Hashes of blocks that the node does not have. */
	readonly away = new Set<string>();
	/** From now on: reading throws what it never should. */
	broken = false;
	readonly asked: string[] = [];
	/** Waited for before each block is answered. */
	gate: Promise<void> = Promise.resolve();
	readonly settlement: Settlement;
	readonly outcomes: TargetOutcome[] = [];

	constructor(entries: Iterable<RecordEntry> = []) {
		const warn: Logger["warn"] = (message) => this.warnings.push(message);
		const log: Logger = { ...silentLogger, warn, error: warn };
		this.records = new TransactionRecords({ log });
		for (const entry of entries) this.records.open(structuredClone(entry));
		this.background = new Background({}, { log });
		const { records, background, clock } = this;
		const termsOf = (builder: string) => this.terms.get(builder) ?? null;
		this.settlement = new Settlement({
			records,
			events: records,
			payments: this,
			termsOf,
			onOutcome: async (outcome) => void this.outcomes.push(outcome),
			background,
			clock,
			log,
		});
	}

	async block(hash: string): Promise<PaidBlock | null> {
		this.asked.push(hash);
		await this.gate;
		if (this.failing.has(hash)) throw new UpstreamError("timeout");
		return this.away.has(hash) ? null : (this.blocks.get(hash) ?? null);
	}

	async canonicalHash(): Promise<string | null> {
		return null;
	}

	async brought(hash: string) {
		if (this.unreadable.has(hash)) throw new UpstreamError("timeout");
		if (this.broken) throw new TypeError("a fault of ours");
		return { fees: 0n, transfers: this.proceeds.get(hash) ?? null };
	}

	/** A transaction that was mined in block 101; `sent` are the backruns that went out behind it, in this order. */
	mined(index: number, sent: readonly Sent[], blockHash = "0x101"): TransactionRecord {
		const transaction = privateTransaction({ by: testAccount(400 + index), refundRecipient: USER });
		const record = newRecord(transaction);
		fold(record, { type: "received", at: 1, block: 100 });
		this.records.open({ transaction, record });
		this.records.emit(record.hash, { type: "broadcast", at: 1, block: 101 });
		for (const { backrun, bid, block = 101, builders = ["a"] } of sent) {
			const rest = { bundle: `bundle of ${backrun}`, bid: bid.toString(), builders };
			this.records.emit(record.hash, { type: "bundled", at: 1, block, backrun, ...rest });
		}
		this.include(record, blockHash);
		return record;
	}

	include(record: TransactionRecord, blockHash: string, block = 101): void {
		this.records.emit(record.hash, { type: "included", at: 2, block, blockHash, index: 0, reverted: false });
	}

	/** The block's transactions in order: hashes of ours and backruns, or payments of the coinbase. */
	lay(rows: readonly (string | Partial<Row>)[], hash = "0x101", number = 101): void {
		const transactions = rows.map((row, i): Row => {
			const one = typeof row === "string" ? { hash: row } : row;
			return {
				hash: `pay ${i}`,
				from: typeof row === "string" ? "0xsome" : COINBASE,
				to: USER,
				value: 0n,
				...one,
			};
		});
		this.blocks.set(hash, {
			number,
			timestamp: number * 12,
			coinbase: COINBASE,
			baseFee: BASE_FEE,
			transactions,
		});
	}

	/** The node's answers wait until what this returns is called. */
	hold(): () => void {
		let open = () => {};
		this.gate = new Promise((resolve) => {
			open = resolve;
		});
		return () => open();
	}

	async run(): Promise<void> {
		this.settlement.run();
		await this.background.join();
	}
}

/** A backrun that went out behind a transaction. */
export interface Sent {
	readonly backrun: string;
	readonly bid: bigint;
	readonly block?: number;
	readonly builders?: readonly string[];
}

export const A: Sent = { backrun: "0xa", bid: 1_000n };
export const B: Sent = { backrun: "0xb", bid: 500n };

/** The last refund that was told: bid, brought, cost, owed, paid. */
export function told({ events }: TransactionRecord): string | undefined {
	const event = events.findLast(({ type }) => type === "refunded");
	if (event?.type !== "refunded") return undefined;
	return [event.backrun, event.bid, event.brought, event.cost, event.owed, event.paid].join(" ");
}

/** What was paid by what {@link told} says. */
export function paidOf(line: string | null): string {
	return line?.split(" ").at(-1) ?? "0";
}
