// An upstream made of bare sockets: keeps requests byte by byte, and writes whatever a test wants, so that it can do
// what no proper server would.

import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { until } from "./until.ts";

/** One connection, as it was seen. */
export interface RawPeer {
	readonly socket: Socket;
	/** All that came, as latin1. */
	received: string;
	closed: boolean;
}

/** What a request is answered with: called once for each whole request, with its text and its number on all connections. */
export type RawScript = (peer: RawPeer, request: string, nth: number) => void;

/** A server on a port of its own. */
export class RawUpstream {
	readonly peers: RawPeer[] = [];
	/** Whole requests, in the order of their ends. */
	readonly requests: string[] = [];
	readonly #server: Server;

	private constructor(script: RawScript) {
		this.#server = createServer((socket) => {
			const peer: RawPeer = { socket, received: "", closed: false };
			this.peers.push(peer);
			let rest = "";
			socket.on("data", (chunk) => {
				peer.received += chunk.toString("latin1");
				rest += chunk.toString("latin1");
				for (let end = endOf(rest); end !== null; end = endOf(rest)) {
					const request = rest.slice(0, end);
					rest = rest.slice(end);
					this.requests.push(request);
					script(peer, request, this.requests.length);
				}
			});
			socket.on("error", () => {});
			socket.on("close", () => {
				peer.closed = true;
			});
		});
	}

	static async start(script: RawScript = () => {}): Promise<RawUpstream> {
		const upstream = new RawUpstream(script);
		await new Promise<void>((resolve) => upstream.#server.listen(0, "127.0.0.1", resolve));
		return upstream;
	}

	get port(): number {
		return (this.#server.address() as AddressInfo).port;
	}

	get url(): string {
		return `http://127.0.0.1:${this.port}`;
	}

	/** All bytes that ever came. */
	get received(): string {
		return this.peers.map(({ received }) => received).join("");
	}

	/** Resolves once `count` whole requests came. */
	async sawRequests(count: number): Promise<void> {
		await until(`${count} requests`, () => this.requests.length >= count);
	}

	async close(): Promise<void> {
		for (const { socket } of this.peers) socket.destroy();
		await new Promise<void>((resolve) => this.#server.close(() => resolve()));
	}
}

/** An answer with its length. */
export function httpText(body: string, status = "200 OK", headers: readonly string[] = []): string {
	const lines = [`HTTP/1.1 ${status}`, ...headers, `content-length: ${Buffer.byteLength(body)}`];
	return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** Where the first request of `text` ends; null where it is not whole. */
function endOf(text: string): number | null {
	const blank = text.indexOf("\r\n\r\n");
	if (blank === -1) return null;
	const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, blank))?.[1] ?? 0);
	const end = blank + 4 + length;
	return text.length < end ? null : end;
}
