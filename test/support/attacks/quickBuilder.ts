// A fake builder that accepts everything after a realistic delay, and reports when it received a
// transaction. It checks no signature and builds no block, so that it is never the bottleneck.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface QuickBuilder {
	readonly url: string;
	/** Number of requests so far. */
	readonly requests: number;
	/** Resolves when a request that contains `text` is received from now on. Rejects after `ms`. */
	holding(text: string, ms: number): Promise<void>;
	/** Counts requests that contain `text` from now on; the returned function returns the count. */
	count(text: string): () => number;
	stop(): Promise<void>;
}

/** How long builders take to answer. */
const ANSWER_MS = 50;
const RESULT = '{"jsonrpc":"2.0","id":1,"result":null}';

/** Starts a builder on loopback. */
export async function startQuickBuilder(): Promise<QuickBuilder> {
	const looks = new Set<(body: Buffer) => void>();
	let requests = 0;
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => {
			requests += 1;
			const body = Buffer.concat(chunks);
			for (const look of looks) look(body);
			setTimeout(() => {
				response.writeHead(200, { "content-type": "application/json" }).end(RESULT);
			}, ANSWER_MS);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		get requests() {
			return requests;
		},
		holding: (text, ms) =>
			new Promise((resolve, reject) => {
				const end = (): void => {
					looks.delete(look);
					clearTimeout(timer);
				};
				const look = (body: Buffer): void => {
					if (!body.includes(text)) return;
					end();
					resolve();
				};
				const timer = setTimeout(() => {
					end();
					reject(new Error(`not with its builder within ${ms} ms`));
				}, ms);
				looks.add(look);
			}),
		count(text) {
			let times = 0;
			looks.add((body) => {
				if (body.includes(text)) times += 1;
			});
			return () => times;
		},
		stop: () =>
			new Promise((resolve) => {
				server.close(() => resolve());
				server.closeAllConnections();
			}),
	};
}
