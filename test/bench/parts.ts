// The parts of a submission, each alone in this process: bodies are made here, and the CPU time of each part in µs
// goes out as one line of JSON. Run by the benchmark as a process of its own.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { createBodySigner, createKey } from "../../shared/ethereum/flashbotsSignature.ts";
import { hexToBytes } from "../../shared/ethereum/hex.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { benchAccounts, benchTransaction } from "./transactions.ts";

const COUNT = 6_000;
/** As many submissions share a commit as arrive together over 64 connections. */
const GROUP = 64;

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

function decode(): void {
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
			store.write([{ key: `p/${String(i + k).padStart(66, "0")}`, value: Buffer.alloc(360, k) }]),
		);
		await Promise.all(group);
	}
	await store.close();
	rmSync(folder, { recursive: true });
}

function sign(): void {
	const signer = createBodySigner(createKey());
	for (const raw of raws) signer.sign(body(raw));
}

function body(raw: string): string {
	return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendPrivateRawTransaction", params: [raw] });
}

async function post(): Promise<void> {
	const pool = new Pool(process.env.SINK_URL ?? "", { connections: 8 });
	let next = 0;
	const work = async (): Promise<void> => {
		for (let i = next++; i < COUNT; i = next++) {
			const headers = { "content-type": "application/json" };
			const answer = await pool.request({ method: "POST", path: "/", headers, body: body(raws[i] ?? "") });
			await answer.body.text();
		}
	};
	await Promise.all(Array.from({ length: 8 }, work));
	await pool.close();
}

// Once to warm up, then the one that counts.
decode();
const decodeMicros = await micros(decode);
await put();
const putMicros = await micros(put);
sign();
const signMicros = await micros(sign);
await post();
const postMicros = await micros(post);
process.stdout.write(`parts ${JSON.stringify({ decodeMicros, putMicros, signMicros, postMicros })}\n`);
