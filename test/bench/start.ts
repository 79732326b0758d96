// A relay starts with many pending transactions in its store, left by another one that had sent
// them all. The figures are the time until it serves, and their memory when all are sent again. The
// relay's own code writes the rows, without a relay.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fold, newRecord, type TransactionRecord } from "../../relay/domain/record.ts";
import { ownedTransaction, ownerOf } from "../../relay/domain/transaction.ts";
import { TransactionDisk } from "../../relay/transactions/disk.ts";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { checkFormat } from "../../shared/kv/format.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { silentLogger } from "../../shared/log.ts";
import { startDevChain } from "../devnet/devChain.ts";
import type { TestAccount } from "../support/txFactory.ts";
import { UNDAMAGED } from "../support/undamaged.ts";
import {
	benchAccounts,
	benchTransaction,
	delivered,
	type Figure,
	fund,
	startRelay,
	startSink,
} from "./load.ts";

/** The first one shows what a start takes that has nothing to load. */
const COUNTS = [0, 1_000, 10_000, 100_000] as const;
/** The pool takes 64 of each sender. */
const SENDERS = 2_000;
/** Rows in one commit. */
const BATCH = 1_000;

/** Runs it; takes about a minute. */
export async function benchStart(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const sink = await startSink();
	const accounts = benchAccounts(SENDERS);
	const figures: Figure[] = [];
	try {
		await fund(chain, accounts);
		let none: { own: number; mapped: number; cpuSeconds: number } | null = null;
		for (const count of COUNTS) {
			const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
			try {
				await fill(join(folder, "relay"), accounts, count);
				// A head of now: to write the rows took a while.
				await chain.rpc("evm_mine");
				const begun = performance.now();
				const relay = await startRelay(chain, sink.url, { DATA_DIR: folder });
				const seconds = (performance.now() - begun) / 1_000;
				const cpuSeconds = relay.process.cpuMicros() / 1_000_000;
				await delivered(relay);
				const memory = relay.process.memory();
				await relay.stop();
				none ??= { ...memory, cpuSeconds };
				figures.push(
					{ name: `a start with ${count} pending: it serves after`, value: `${seconds.toFixed(1)} s` },
					{ name: "  CPU time until then, all threads", value: `${cpuSeconds.toFixed(1)} s` },
				);
				// The memory of 1,000, and their time, are lost in what warms up.
				if (count < 10_000) continue;
				figures.push({
					name: "  beyond a start with none, for each",
					value: `${((1_000_000 * (cpuSeconds - none.cpuSeconds)) / count).toFixed(0)} µs`,
					growth: { chart: "start: CPU for each, by pending transactions", at: count },
				});
				const each = (bytes: number) => `${(bytes / count / 1_024).toFixed(1)} KiB`;
				figures.push(
					{ name: "  memory of its own for each, once all are sent", value: each(memory.own - none.own) },
					{ name: "  pages of the store for each", value: each(memory.mapped - none.mapped) },
				);
			} finally {
				rmSync(folder, { recursive: true, force: true });
			}
		}
		return figures;
	} finally {
		await sink.stop();
		await chain.stop();
	}
}

/** Writes the rows of `count` transactions that were sent to the builder, `accounts` in turns. */
export async function fill(folder: string, accounts: readonly TestAccount[], count: number): Promise<void> {
	const kv = await openLmdb(folder);
	await checkFormat(kv);
	const disk = new TransactionDisk({ kv, damaged: UNDAMAGED, log: silentLogger });
	for (let from = 0; from < count; from += BATCH) {
		const records: TransactionRecord[] = [];
		const written: Promise<void>[] = [];
		for (let i = from; i < Math.min(count, from + BATCH); i += 1) {
			const by = accounts[i % accounts.length];
			const { transaction, record } = pending(by, Math.floor(i / accounts.length), i);
			written.push(disk.insert(transaction, record, [], record.receivedAt));
			const at = record.receivedAt + 20;
			fold(record, { type: "ready", at, block: 1 });
			fold(record, { type: "broadcast", at, block: 1, behindHidden: false });
			const answer = { kind: "private", answer: "accepted", ms: 3 } as const;
			fold(record, { type: "delivered", at: at + 10, block: 1, builder: "sink", ...answer });
			records.push(record);
		}
		await Promise.all(written);
		await disk.update(records, Date.now());
	}
	await kv.close();
}

/** Writes the records of `count` transactions that their users cancelled, as they are archived. */
export async function fillArchive(
	folder: string,
	accounts: readonly TestAccount[],
	count: number,
): Promise<void> {
	const kv = await openLmdb(folder);
	await checkFormat(kv);
	const disk = new TransactionDisk({ kv, damaged: UNDAMAGED, log: silentLogger });
	for (let from = 0; from < count; from += BATCH) {
		const records: TransactionRecord[] = [];
		for (let i = from; i < Math.min(count, from + BATCH); i += 1) {
			const { record } = pending(accounts[i % accounts.length], Math.floor(i / accounts.length), i);
			const at = record.receivedAt + 20;
			fold(record, { type: "ready", at, block: 1 });
			fold(record, { type: "broadcast", at, block: 1, behindHidden: false });
			fold(record, { type: "cancelled", at, block: 1, builders: ["sink"] });
			records.push(record);
		}
		await disk.archive(records, Date.now());
	}
	await kv.close();
}

/** One of many, from one of 250 clients. */
function pending(by: TestAccount | undefined, nonce: number, i: number) {
	const raw = Buffer.from(benchTransaction(by, nonce).slice(2), "hex");
	const hash = `0x${keccak256(raw).toString("hex")}`;
	const decoded = decodeTransaction(raw, { hash, from: by?.address ?? "" });
	if (!decoded.ok) throw new Error(decoded.message);
	const address = `127.0.0.${1 + (i % 250)}`;
	const owner = ownerOf({
		path: "nochecks",
		...{ softCancellations: false, refundRecipient: null, referrer: null, isHidden: false, builders: null },
		address,
	});
	const basis = { tx: decoded.tx, submitterAddress: address, receivedAt: Date.now(), requestId: null };
	const transaction = ownedTransaction(basis, [owner]);
	const record = newRecord(transaction);
	fold(record, { type: "received", at: transaction.receivedAt, block: 0 });
	return { transaction, record };
}
