// Measures each part of a submission alone, and prints their CPU times in µs as one line of JSON. The benchmark runs
// it as a process of its own.

import { Pool } from "undici";
import { createBodySigner, createKey } from "../../shared/ethereum/signatures.ts";
import { decode, micros, put, raws } from "./partTimes.ts";

/** A transaction of 200 bytes, and what is known of it at first. */
const RECORD_BYTES = 360;

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
		for (let i = next++; i < raws.length; i = next++) {
			const headers = { "content-type": "application/json" };
			const answer = await pool.request({ method: "POST", path: "/", headers, body: body(raws[i] ?? "") });
			await answer.body.text();
		}
	};
	await Promise.all(Array.from({ length: 8 }, work));
	await pool.close();
}

const decodeMicros = await micros(decode);
const putMicros = await micros(() => put(RECORD_BYTES));
const signMicros = await micros(sign);
const postMicros = await micros(post);
process.stdout.write(`parts ${JSON.stringify({ decodeMicros, putMicros, signMicros, postMicros })}\n`);
