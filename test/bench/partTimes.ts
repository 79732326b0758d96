// The parts that relay and boost share, decoding and storing the same transactions, and their CPU time per
// transaction in µs.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hexToBytes } from "../../shared/ethereum/hex.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { benchAccounts, benchTransaction } from "./load.ts";

const COUNT = 6_000;
/** As many submissions share a commit as arrive together over 64 connections. */
const GROUP = 64;

const accounts = benchAccounts(100);

/** Signed transactions, as hex. */
export const raws: readonly string[] = Array.from({ length: COUNT }, (_, i) =>
	benchTransaction(accounts[i % 100], Math.floor(i / 100)),
);

/** CPU time of `work` for each of {@link raws}, in µs; once to warm up, then the one that counts. */
export async function micros(work: () => Promise<void> | void): Promise<number> {
	await work();
	const before = process.cpuUsage();
	await work();
	const { user, system } = process.cpuUsage(before);
	return (user + system) / COUNT;
}

/** Decodes all, and recovers their senders. */
export function decode(): void {
	for (const raw of raws) {
		const decoded = decodeTransaction(hexToBytes(raw) ?? Buffer.alloc(0));
		if (!decoded.ok) throw new Error(decoded.message);
	}
}

/** Keeps `bytes` for each in a new store. */
export async function put(bytes: number): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
	const store = await openLmdb(folder);
	for (let i = 0; i < COUNT; i += GROUP) {
		const group = Array.from({ length: Math.min(GROUP, COUNT - i) }, (_, k) =>
			store.write([{ key: `p/${String(i + k).padStart(66, "0")}`, value: Buffer.alloc(bytes, k) }]),
		);
		await Promise.all(group);
	}
	await store.close();
	rmSync(folder, { recursive: true });
}
