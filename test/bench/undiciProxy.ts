// The barest proxy that node:http and undici make: a body is read, sent on and its answer passed back. It prints its port.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Dispatcher, Pool } from "undici";

const pool = new Pool(process.env.TARGET_URL ?? "", { connections: 256 });

/** Collects an answer, and passes it back whole. */
class PassingBack implements Dispatcher.DispatchHandler {
	readonly #response: ServerResponse;
	readonly #chunks: Buffer[] = [];
	#status = 0;

	constructor(response: ServerResponse) {
		this.#response = response;
	}

	onRequestStart(): void {}

	onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
		this.#status = statusCode;
	}

	onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
		this.#chunks.push(chunk);
	}

	onResponseEnd(): void {
		const body = Buffer.concat(this.#chunks);
		this.#response.writeHead(this.#status, {
			"content-type": "application/json",
			"content-length": body.length,
		});
		this.#response.end(body);
	}

	onResponseError(): void {
		process.exit(1);
	}
}

const server = createServer((request, response) => {
	const chunks: Buffer[] = [];
	request.on("data", (chunk: Buffer) => chunks.push(chunk));
	request.on("end", () => {
		const headers = { "content-type": "application/json" };
		const body = Buffer.concat(chunks);
		pool.dispatch({ method: "POST", path: request.url ?? "/", headers, body }, new PassingBack(response));
	});
});
server.listen(0, "127.0.0.1", () => {
	process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => process.exit(0));
