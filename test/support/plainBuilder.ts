// A builder that builds and checks nothing, for tests of many transactions or of odd answers: it answers what the
// test says, and keeps the bodies that it got.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** How a request is answered. `hang`: never; `destroy`: its socket is closed. */
export type PlainAnswer =
	| "hang"
	| "destroy"
	| { readonly status: number; readonly body: string; readonly contentType?: string };

export type PlainBuilder = Awaited<ReturnType<typeof startPlainBuilder>>;

/** Long hex strings: a signed transaction has at least 100 bytes, a hash has 32. */
const RAW = /0x[0-9a-f]{200,}/g;
const RESULT: PlainAnswer = { status: 200, body: '{"jsonrpc":"2.0","id":1,"result":null}' };

/** Starts one on loopback. */
export async function startPlainBuilder() {
	const bodies: string[] = [];
	/** The raw transactions of the first bodies, and how many these are: who waits for one asks again and again. */
	let raws = new Set<string>();
	let read = 0;
	let answerOf: (body: string) => PlainAnswer = () => RESULT;
	const server = createServer((request, response) => {
		readBody(request).then(
			(body) => {
				bodies.push(body);
				const answer = answerOf(body);
				if (answer === "hang") return;
				if (answer === "destroy") {
					response.destroy();
					return;
				}
				response.writeHead(answer.status, { "content-type": answer.contentType ?? "application/json" });
				response.end(answer.body);
			},
			() => response.destroy(),
		);
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		/** Bodies as they came, oldest first. */
		bodies,
		/** The raw transactions (0x hex) of all bodies, however they were wrapped. */
		raws(): ReadonlySet<string> {
			for (const body of bodies.slice(read)) for (const raw of body.match(RAW) ?? []) raws.add(raw);
			read = bodies.length;
			return raws;
		},
		/** Changes how requests are answered from now on; a result unless set. */
		answerWith(answer: (body: string) => PlainAnswer): void {
			answerOf = answer;
		},
		/** Forgets the bodies. */
		reset(): void {
			bodies.length = 0;
			raws = new Set();
			read = 0;
		},
		stop(): Promise<void> {
			return new Promise((resolve) => {
				server.close(() => resolve());
				server.closeAllConnections();
			});
		},
	};
}

async function readBody(request: IncomingMessage): Promise<string> {
	const chunks: Buffer[] = [];
	for await (const chunk of request) chunks.push(chunk as Buffer);
	return Buffer.concat(chunks).toString("utf8");
}
