// What the transport costs: requests a second with and without it, side by side, printed and not judged, since
// machines differ. What is judged is that every request had its answer.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { postText, RawConnection } from "../support/rawHttp.ts";
import { startTransport } from "../support/transportServer.ts";

const REQUESTS = 4_000;
const CONNECTIONS = 8;
const BURST = 10;

/** Sends bursts on a few connections; answers how many requests a second were answered with 200. */
async function measure(port: number, request: Buffer): Promise<number> {
	const burst = Buffer.concat(Array<Buffer>(BURST).fill(request));
	const client = async (): Promise<number> => {
		const connection = await RawConnection.open(port);
		let good = 0;
		for (let sent = 0; sent < REQUESTS / CONNECTIONS; sent += BURST) {
			connection.write(burst);
			for (let i = 0; i < BURST; i++) if ((await connection.answer()).status === 200) good++;
		}
		connection.destroy();
		return good;
	};
	const begun = performance.now();
	const counts = await Promise.all(Array.from({ length: CONNECTIONS }, client));
	const seconds = (performance.now() - begun) / 1000;
	assert.equal(
		counts.reduce((sum, count) => sum + count, 0),
		REQUESTS,
	);
	return Math.round(REQUESTS / seconds);
}

test("requests a second beside a bare node:http server", async (context) => {
	const param = `0x${"ab".repeat(200)}`;
	const request = postText("/fast", { jsonrpc: "2.0", id: 1, method: "test_echo", params: [param] });
	const bare = createServer((incoming, response) => {
		const chunks: Buffer[] = [];
		incoming.on("data", (chunk) => chunks.push(chunk));
		incoming.on("end", () => {
			const { id, params } = JSON.parse(Buffer.concat(chunks).toString());
			const text = JSON.stringify({ jsonrpc: "2.0", id, result: params[0] });
			response.writeHead(200, { "content-type": "application/json", "content-length": text.length });
			response.end(text);
		});
	});
	await new Promise<void>((resolve) => bare.listen(0, "127.0.0.1", resolve));
	const transport = await startTransport({ rps: 1_000_000 });
	const barePort = (bare.address() as AddressInfo).port;
	await measure(barePort, request);
	await measure(transport.port, request);
	const alone = await measure(barePort, request);
	const ours = await measure(transport.port, request);
	context.diagnostic(`client and server on one core: bare node:http ${alone}/s, the transport ${ours}/s`);
	await transport.stop();
	await new Promise((resolve) => bare.close(resolve));
});
