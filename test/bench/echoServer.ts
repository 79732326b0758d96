// A bare node:http server that parses a JSON body and answers a fixed result: what any relay in Node must at least
// spend on a request. It prints its port.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: `0x${"0".repeat(64)}` });
const server = createServer((request, response) => {
	const chunks: Buffer[] = [];
	request.on("data", (chunk: Buffer) => chunks.push(chunk));
	request.on("end", () => {
		JSON.parse(Buffer.concat(chunks).toString("utf8"));
		response.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
		response.end(answer);
	});
});
server.listen(0, "127.0.0.1", () => {
	process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => process.exit(0));
