// Speaks HTTP/1.1 by hand: sends bytes as given, and reads answers one by one. It corrects nothing, so that tests can
// send what no proper client would.

import { connect, type Socket } from "node:net";
import { resetSocket } from "./resetSocket.ts";

/** An answer as it came. */
export interface RawAnswer {
	readonly status: number;
	/** Names in lower case. */
	readonly headers: Readonly<Record<string, string>>;
	readonly body: string;
}

const DEADLINE_MS = 30_000;

/** One connection to 127.0.0.1. */
export class RawConnection {
	readonly #socket: Socket;
	#received = Buffer.alloc(0);
	#ended = false;
	#changed = () => {};

	private constructor(socket: Socket) {
		this.#socket = socket;
		socket.on("data", (chunk) => {
			this.#received = Buffer.concat([this.#received, chunk]);
			this.#changed();
		});
		// A reset ends it like a close: tests look at what came before.
		socket.on("error", () => {});
		socket.on("close", () => {
			this.#ended = true;
			this.#changed();
		});
	}

	/** Opens one to 127.0.0.1, from `localAddress` where it matters which client it is. */
	static open(port: number, localAddress?: string): Promise<RawConnection> {
		return new Promise((resolve, reject) => {
			const socket = connect({
				...{ port, host: "127.0.0.1" },
				...(localAddress === undefined ? {} : { localAddress }),
			});
			socket.once("error", reject);
			socket.once("connect", () => {
				socket.off("error", reject);
				resolve(new RawConnection(socket));
			});
		});
	}

	/** Sends `bytes` as they are. */
	write(bytes: string | Buffer): void {
		this.#socket.write(bytes);
	}

	/** Sends `bytes` without reading anything meanwhile; resolves when all are sent, or could not be. */
	async writeBlindly(bytes: Buffer): Promise<void> {
		this.#socket.pause();
		await new Promise<void>((resolve) => this.#socket.write(bytes, () => resolve()));
		this.#socket.resume();
	}

	/** Cuts the connection without a goodbye. */
	destroy(): void {
		resetSocket(this.#socket);
	}

	/** The next answer. `head`: it has no body whatever its headers say. */
	async answer(head = false): Promise<RawAnswer> {
		return this.#until("an answer", () => this.#take(head));
	}

	/** Resolves when the peer has closed; answers what came since the last answer. */
	async closed(): Promise<string> {
		return this.#until("the close", () => (this.#ended ? this.#received.toString("latin1") : undefined));
	}

	get isClosed(): boolean {
		return this.#ended;
	}

	#take(head: boolean): RawAnswer | undefined {
		const end = this.#received.indexOf("\r\n\r\n");
		if (end === -1) return undefined;
		const [start = "", ...lines] = this.#received.subarray(0, end).toString("latin1").split("\r\n");
		const headers: Record<string, string> = {};
		for (const line of lines) {
			const colon = line.indexOf(":");
			headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
		}
		const length = head ? 0 : Number(headers["content-length"] ?? 0);
		const whole = end + 4 + length;
		if (this.#received.length < whole) return undefined;
		const body = this.#received.subarray(end + 4, whole).toString("utf8");
		this.#received = this.#received.subarray(whole);
		return { status: Number(start.split(" ")[1]), headers, body };
	}

	#until<T>(what: string, look: () => T | undefined): Promise<T> {
		return new Promise((resolve, reject) => {
			const deadline = setTimeout(
				() => reject(new Error(`${what} did not come; there is: ${this.#received.toString("latin1")}`)),
				DEADLINE_MS,
			);
			const check = (): void => {
				const found = look();
				if (found === undefined && !this.#ended) return;
				clearTimeout(deadline);
				this.#changed = () => {};
				if (found !== undefined) resolve(found);
				else {
					reject(new Error(`closed before ${what}; there is: ${this.#received.toString("latin1")}`));
				}
			};
			this.#changed = check;
			check();
		});
	}
}

/** The bytes of a request; `Content-Length` is added for a body, unless `headers` has it or chunks it. */
export function requestText(
	verb: string,
	path: string,
	headers: Readonly<Record<string, string>> = {},
	body?: string | Buffer,
): Buffer {
	const lines = [`${verb} ${path} HTTP/1.1`, "Host: relay.test"];
	for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
	const names = Object.keys(headers).map((name) => name.toLowerCase());
	if (body !== undefined && !names.includes("content-length") && !names.includes("transfer-encoding")) {
		lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
	}
	return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), Buffer.from(body ?? "")]);
}

/** A POST of JSON. */
export function postText(
	path: string,
	value: unknown,
	headers: Readonly<Record<string, string>> = {},
): Buffer {
	const body = typeof value === "string" || Buffer.isBuffer(value) ? value : JSON.stringify(value);
	return requestText("POST", path, { "Content-Type": "application/json", ...headers }, body);
}
