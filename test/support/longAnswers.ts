// A proxy in front of a real node that spoils the bodies of its answers: far too long, cut off,
// without an end, or byte by byte.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, request as send } from "undici";
import { pause, systemClock } from "../../shared/clock.ts";

/** A fault of the body of an answer. */
export type BodyFault =
	/** The result is padded to {@link LONG_BYTES}. */
	| "long"
	/**
	 * The result is padded to {@link HUGE_BYTES}, and is valid all the same where its form allows
	 * that.
	 */
	| "huge"
	/** It is some MiB long; half of it is sent, then the connection is closed. */
	| "cut"
	/** It is sent in chunks, which go on for as long as they are read. */
	| "endless"
	/** {@link LONG_BYTES} are sent in chunks, and then nothing more. */
	| "unfinished"
	/** It is as long as a block of mainnet, and all answers together get a megabyte a second. */
	| "slow"
	/** One byte every 100 ms. */
	| "dripped";

/** A call as it was sent to the node. */
export interface NodeCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** A running proxy. */
export interface LongAnswers {
	/** http://127.0.0.1:port */
	readonly url: string;
	/** How many requests have met a fault. */
	readonly met: number;
	/**
	 * From now on answers to requests with a call for which `meets` is true have `fault`; null: none
	 * has.
	 */
	set(fault: BodyFault | null, meets?: (call: NodeCall) => boolean): void;
	stop(): Promise<void>;
}

const MIB = 1024 * 1024;
/** About as long as the longest answer that is accepted. */
const LONG_BYTES = 30 * 1000 * 1000;
/** The length of a huge answer. */
const HUGE_BYTES = 50 * 1000 * 1000;
/** Shorter than any limit, so that it is the end that is missed. */
const CUT_BYTES = 4 * MIB;
const CHUNK_BYTES = MIB;
const SLOW_BYTES = 1_800_000;
const SLOW_CHUNK_BYTES = 100_000;
const SLOW_MS = 100;
const DRIP_MS = 100;
const JSON_TYPE = { "content-type": "application/json" };
/** The placeholder for the padding. */
const HERE = "the padding goes here";
/** The padding of a list: a value of 66 characters, as most of a node's are. */
const VALUE = `"0x${"5a".repeat(32)}"`;

const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

/** Starts one in front of the node at `target`. */
export async function startLongAnswers(target: string): Promise<LongAnswers> {
	let fault: BodyFault | null = null;
	let meets: (call: NodeCall) => boolean = () => true;
	let met = 0;
	const link: Link = { free: Promise.resolve() };

	const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
		const chunks: Buffer[] = [];
		for await (const chunk of incoming) chunks.push(chunk as Buffer);
		const body = Buffer.concat(chunks);
		const answer = await send(target, { dispatcher, method: "POST", headers: JSON_TYPE, body });
		const text = await answer.body.text();
		const current = fault;
		if (current === null || !callsIn(body.toString()).some((call) => meets(call))) {
			response.writeHead(answer.statusCode, JSON_TYPE).end(text);
			return;
		}
		met += 1;
		await spoil(current, text, response, link);
	};
	const server = createServer((incoming, response) => {
		serve(incoming, response).catch(() => response.destroy());
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		get met() {
			return met;
		},
		set(next, whose = () => true) {
			fault = next;
			meets = whose;
		},
		async stop() {
			const closed = new Promise((resolve) => server.close(resolve));
			server.closeAllConnections();
			await closed;
		},
	};
}

/** The link that all answers go through, one chunk at a time. */
interface Link {
	free: Promise<void>;
}

async function spoil(fault: BodyFault, text: string, response: ServerResponse, link: Link): Promise<void> {
	switch (fault) {
		case "long":
		case "huge": {
			const parts = padded(text, fault === "long" ? LONG_BYTES : HUGE_BYTES);
			const length = parts.reduce((sum, part) => sum + part.length, 0);
			response.writeHead(200, { ...JSON_TYPE, "content-length": length });
			for (const part of parts) response.write(part);
			response.end();
			return;
		}
		case "cut": {
			const whole = Buffer.concat(padded(text, CUT_BYTES));
			response.writeHead(200, { ...JSON_TYPE, "content-length": whole.length });
			response.write(whole.subarray(0, whole.length / 2), () => response.destroy());
			return;
		}
		case "endless":
		case "unfinished": {
			const [start = Buffer.alloc(0), padding = Buffer.alloc(0)] = padded(text, LONG_BYTES);
			response.writeHead(200, JSON_TYPE);
			response.write(start);
			const most = fault === "endless" ? Number.POSITIVE_INFINITY : padding.length;
			for (let at = 0; at < most && !response.destroyed; at += CHUNK_BYTES)
				if (!response.write(padding.subarray(0, CHUNK_BYTES))) await drained(response);
			return;
		}
		case "slow": {
			const whole = Buffer.concat(padded(text, SLOW_BYTES));
			response.writeHead(200, { ...JSON_TYPE, "content-length": whole.length });
			for (let at = 0; at < whole.length && !response.destroyed; at += SLOW_CHUNK_BYTES) {
				link.free = link.free.then(() => pause(systemClock, SLOW_MS));
				await link.free;
				response.write(whole.subarray(at, at + SLOW_CHUNK_BYTES));
			}
			response.end();
			return;
		}
		case "dripped": {
			const whole = Buffer.from(text);
			response.writeHead(200, { ...JSON_TYPE, "content-length": whole.length });
			for (const byte of whole) {
				if (response.destroyed) return;
				response.write(Buffer.of(byte));
				await pause(systemClock, DRIP_MS);
			}
			response.end();
		}
	}
}

/** Resolves when more may be written, or nobody reads any more. */
function drained(response: ServerResponse): Promise<void> {
	return new Promise((resolve) => {
		const done = (): void => {
			response.off("drain", done).off("close", done);
			resolve();
		};
		response.on("drain", done).on("close", done);
	});
}

function callsIn(body: string): readonly NodeCall[] {
	const parsed = JSON.parse(body) as NodeCall | NodeCall[];
	return Array.isArray(parsed) ? parsed : [parsed];
}

/** The answer in parts, of which the second is the padding of about `bytes`. */
function padded(text: string, bytes: number): readonly Buffer[] {
	const parsed = JSON.parse(text) as { result?: unknown } | { result?: unknown }[];
	const [first] = Array.isArray(parsed) ? parsed : [parsed];
	if (first === undefined || !("result" in first)) throw new Error("an answer without a result");
	const isText = typeof first.result === "string";
	first.result = withPlace(first.result);
	const [before = "", after = ""] = JSON.stringify(parsed).split(isText ? HERE : `"${HERE}"`);
	return [Buffer.from(before), isText ? zeros(bytes) : values(bytes), Buffer.from(after)];
}

/** `result` with {@link HERE} where it can be longer. */
function withPlace(result: unknown): unknown {
	if (typeof result === "string") return `0x${HERE}${result.slice(2)}`;
	if (!Array.isArray(result)) return { ...(result as object | null), padding: [HERE] };
	const [first, ...others] = result as unknown[];
	const isObject = typeof first === "object" && first !== null;
	return isObject ? [{ ...first, padding: [HERE] }, ...others] : [HERE, ...result];
}

const made = new Map<string, Buffer>();

/** A whole number of bytes in hex. */
function zeros(bytes: number): Buffer {
	return kept(`zeros ${bytes}`, () => Buffer.alloc(2 * Math.floor(bytes / 2), "0"));
}

/** A list's values, with commas between them. */
function values(bytes: number): Buffer {
	return kept(`values ${bytes}`, () => {
		const count = Math.floor(bytes / (VALUE.length + 1));
		return Buffer.from(Array.from({ length: count }, () => VALUE).join(","));
	});
}

/** Makes it the first time only. */
function kept(name: string, make: () => Buffer): Buffer {
	const known = made.get(name) ?? make();
	made.set(name, known);
	return known;
}
