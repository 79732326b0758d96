// The barest proxy that the package http-proxy makes: kept connections, no rules. It prints its port.

import { Agent, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import httpProxy from "http-proxy";

const proxy = httpProxy.createProxyServer({
	target: process.env.TARGET_URL ?? "",
	agent: new Agent({ keepAlive: true, maxSockets: 256 }),
});
proxy.on("error", () => process.exit(1));
const server = createServer((request, response) => proxy.web(request, response));
server.listen(0, "127.0.0.1", () => {
	process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => process.exit(0));
