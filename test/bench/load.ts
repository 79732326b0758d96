// What the benchmarks send: accounts, the same in each run, signed transfers with calldata (200 bytes each), and bodies
// over a fixed number of connections whose answers are counted. Loopback addresses only.

import { Client, Pool } from "undici";
import { rawTransaction, type TestAccount, testAccount } from "../support/txFactory.ts";

export interface LoadResult {
	readonly seconds: number;
	readonly answers: readonly string[];
}

/** Posts every body once, `connections` at a time, to `url` (http://127.0.0.1:port/path). */
export async function load(url: string, bodies: readonly string[], connections: number): Promise<LoadResult> {
	const { origin, pathname, hostname } = new URL(url);
	if (hostname !== "127.0.0.1") throw new Error("load goes to loopback addresses only");
	let opened = 0;
	const pool = new Pool(origin, {
		connections,
		// Each connection is a client of its own, since what one client may hold is bounded.
		factory: (to, options) => {
			opened += 1;
			return new Client(to, { ...options, localAddress: `127.0.0.${1 + (opened % 250)}` });
		},
	});
	const answers: string[] = [];
	let next = 0;
	const begun = performance.now();
	const work = async (): Promise<void> => {
		for (let i = next++; i < bodies.length; i = next++) {
			const answer = await pool.request({
				method: "POST",
				path: pathname,
				headers: { "content-type": "application/json" },
				body: bodies[i] ?? "",
			});
			answers[i] = await answer.body.text();
		}
	};
	await Promise.all(Array.from({ length: connections }, work));
	const seconds = (performance.now() - begun) / 1000;
	await pool.close();
	return { seconds, answers };
}

/** Makes the whole transaction 200 bytes long. */
const CALLDATA = Buffer.alloc(86, 7);

/** `count` accounts. */
export function benchAccounts(count: number): readonly TestAccount[] {
	return Array.from({ length: count }, (_, i) => testAccount(i));
}

/** A signed transfer with calldata as 0x hex: 200 bytes. */
export function benchTransaction(by: TestAccount | undefined, nonce: number): string {
	if (by === undefined) throw new Error("no such account");
	const raw = rawTransaction({ by, nonce, gasLimit: 30_000, value: 1, data: CALLDATA });
	return `0x${raw.toString("hex")}`;
}
