// What boost does with a submission beside sending it on, each part alone in this process: transactions are made here, and
// the CPU time of each part in µs goes out as one line of JSON.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hexToBytes } from "../../shared/ethereum/hex.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { benchAccounts, benchTransaction } from "./transactions.ts";

const COUNT = 6_000;
/** As many submissions share a commit as arrive together over 64 connections. */
const GROUP = 64;
/** A transaction of 200 bytes, and what is known of it. */
const RECORD_BYTES = 560;

const accounts = benchAccounts(100);
const raws = Array.from({ length: COUNT }, (_, i) =>
	benchTransaction(accounts[i % 100], Math.floor(i / 100)),
);

/** CPU time of `work` for each of `COUNT`, in µs. */
async function micros(work: () => Promise<void> | void): Promise<number> {
	const before = process.cpuUsage();
	await work();
	const { user, system } = process.cpuUsage(before);
	return (user + system) / COUNT;
}

function decodeAndRecover(): void {
	for (const raw of raws) {
		const decoded = decodeTransaction(hexToBytes(raw) ?? Buffer.alloc(0));
		if (!decoded.ok) throw new Error(decoded.message);
	}
}

async function put(): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
	const store = await openLmdb(folder);
	for (let i = 0; i < COUNT; i += GROUP) {
		const group = Array.from({ length: Math.min(GROUP, COUNT - i) }, (_, k) =>
			store.write([{ key: `b/${String(i + k).padStart(66, "0")}`, value: Buffer.alloc(RECORD_BYTES, k) }]),
		);
		await Promise.all(group);
	}
	await store.close();
	rmSync(folder, { recursive: true });
}

// Once to warm up, then the one that counts.
decodeAndRecover();
const decodeMicros = await micros(decodeAndRecover);
await put();
const putMicros = await micros(put);
process.stdout.write(`parts ${JSON.stringify({ decodeMicros, putMicros })}\n`);
