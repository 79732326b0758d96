// A fake builder that builds and checks nothing, for tests of many transactions or of odd answers.
// The test decides its answers, and it records the bodies that it receives.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** How a request is answered. `hang`: never; `destroy`: its connection is closed. */
export type PlainAnswer =
	| "hang"
	| "destroy"
	| { readonly status: number; readonly body: string; readonly contentType?: string };

export type PlainBuilder = Awaited<ReturnType<typeof startPlainBuilder>>;

/** Matches raw transactions, which have at least 100 bytes, but no hashes, which have 32. */
export const RAW = /0x[0-9a-f]{200,}/g;
/** The default answer. */
export const RESULT: PlainAnswer = { status: 200, body: '{"jsonrpc":"2.0","id":1,"result":null}' };

/** Starts one on loopback. */
export async function startPlainBuilder() {
	const bodies: string[] = [];
	const paths = new Set<string>();
	/**
	 * Cached, since waits read it often: the raw transactions of the first bodies, and the number of
	 * these bodies.
	 */
	let raws = new Set<string>();
	let read = 0;
	let answerOf: (body: string) => PlainAnswer = () => RESULT;
	const server = createServer((request, response) => {
		readBody(request).then(
			(body) => {
				bodies.push(body);
				paths.add(request.url ?? "");
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
		/** The bodies received, oldest first. */
		bodies,
		/** The paths that were requested. */
		paths: paths as ReadonlySet<string>,
		/** The raw transactions (0x hex) in all bodies, whatever the method. */
		raws(): ReadonlySet<string> {
			for (const body of bodies.slice(read)) for (const raw of body.match(RAW) ?? []) raws.add(raw);
			read = bodies.length;
			return raws;
		},
		/** How many connections are open. */
		connections(): Promise<number> {
			return new Promise((resolve, reject) => {
				server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
			});
		},
		/** Changes how requests are answered from now on; by default with a result. */
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
