// A fake builder for tests of the wire: keeps requests and answers as the test says. It builds and checks nothing.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type BuilderRow, parseBuilders } from "../../../../relay/domain/builder.ts";

export interface SeenRequest {
	readonly body: Buffer;
	readonly signature: string;
	readonly contentType: string;
	/** The body as JSON. */
	readonly call: { readonly id: unknown; readonly method: string; readonly params: readonly unknown[] };
}

export interface FakeBuilder {
	readonly url: string;
	readonly seen: readonly SeenRequest[];
	/** Requests that wait for their answer. */
	readonly held: number;
	/** From now on: what it answers, or null to hold what comes. */
	answerWith(answer: { status: number; text: string } | null): void;
	/** Answers what it holds, and from now on everything. */
	release(): void;
	/** The row of BUILDERS for it. */
	row(name: string, options?: Partial<BuilderRow>): BuilderRow;
	close(): Promise<void>;
}

const ACCEPTED = { status: 200, text: '{"jsonrpc":"2.0","id":1,"result":null}' };

/** A builder that accepts everything, listening on this machine. */
export async function startFakeBuilder(): Promise<FakeBuilder> {
	const seen: SeenRequest[] = [];
	const held: ServerResponse[] = [];
	let answer: { status: number; text: string } | null = ACCEPTED;
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => {
			const body = Buffer.concat(chunks);
			const { "x-flashbots-signature": signature, "content-type": contentType } = request.headers;
			const call = JSON.parse(body.toString("utf8"));
			seen.push({ body, signature: String(signature), contentType: String(contentType), call });
			if (answer === null) held.push(response);
			else response.writeHead(answer.status).end(answer.text);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	const url = `http://127.0.0.1:${port}`;
	return {
		url,
		seen,
		get held() {
			return held.length;
		},
		answerWith(next) {
			answer = next;
		},
		release() {
			answer = ACCEPTED;
			for (const response of held.splice(0)) response.writeHead(ACCEPTED.status).end(ACCEPTED.text);
		},
		row(name, options) {
			const parsed = parseBuilders([{ name, url, ...options }]);
			if (!parsed.ok || parsed.rows[0] === undefined) throw new Error("not a row");
			return parsed.rows[0];
		},
		close() {
			server.closeAllConnections();
			return new Promise((resolve) => server.close(() => resolve()));
		},
	};
}
