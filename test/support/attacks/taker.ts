// A fallback that accepts every transaction and knows nothing else.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { decodeTransaction } from "../../../shared/ethereum/transaction.ts";
import { callsIn } from "../../faults/wireFaults.ts";

export type Taker = Awaited<ReturnType<typeof startTaker>>;

/**
 * Starts it on loopback. `pageOf` is the body of the status page of a hash; by default there is
 * none.
 */
export async function startTaker(pageOf?: (hash: string) => unknown) {
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => {
			if (!request.complete) return;
			if (request.method !== "POST") {
				const hash = /0x[0-9a-f]{64}/.exec(request.url ?? "")?.[0] ?? "";
				if (pageOf === undefined) response.writeHead(404).end();
				else response.writeHead(200, JSON_TYPE).end(JSON.stringify(pageOf(hash)));
				return;
			}
			const body = Buffer.concat(chunks).toString();
			const answers = callsIn(body).map(({ id, method, params }) => ({
				...{ jsonrpc: "2.0", id },
				result: resultFor(method, params),
			}));
			response.writeHead(200, JSON_TYPE).end(JSON.stringify(body.startsWith("[") ? answers : answers[0]));
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		stop: () =>
			new Promise<void>((resolve) => {
				server.close(() => resolve());
				server.closeAllConnections();
			}),
	};
}

const JSON_TYPE = { "content-type": "application/json" };

function resultFor(method: string, [first]: readonly unknown[]): unknown {
	if (method === "eth_chainId") return "0x7a69";
	if (method === "eth_blockNumber") return "0x1";
	if (method !== "eth_sendRawTransaction") return null;
	const decoded = decodeTransaction(Buffer.from(String(first).slice(2), "hex"));
	return decoded.ok ? decoded.tx.hash : null;
}
