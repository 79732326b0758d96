// JSON-RPC methods for tests of the dispatcher and the transport, which return a result, fail in
// some way, or wait until the test releases them; and a dispatcher with these methods, without a
// transport.

import { z } from "zod";
import { type CallContext, callContext } from "../../shared/http/callContext.ts";
import type { CallOutcome } from "../../shared/jsonrpc/answers.ts";
import { type CallLimiter, createDispatcher, type Fallback } from "../../shared/jsonrpc/dispatch.ts";
import { ForeignRpcError, RpcError } from "../../shared/jsonrpc/errors.ts";
import {
	AnswerLater,
	defineMethod,
	hash,
	type MethodTable,
	methodTable,
} from "../../shared/jsonrpc/method.ts";
import { type LogFields, type Logger, silentLogger } from "../../shared/log.ts";
import { ManualClock } from "./manualClock.ts";

/** A secret in thrown errors, which must never appear in an answer. */
export const CANARY = "0xdeadbeefcafe";

/** Records the methods' calls, and releases those that wait. */
export class Script {
	/**
	 * The calls of test_note, test_wait and test_ordered in the order of their start and end: "start
	 * a", "end a".
	 */
	readonly log: string[] = [];
	/** The context of the last call of test_who. */
	who: CallContext | undefined;
	readonly #waiting = new Map<string, (result: unknown) => void>();

	note(line: string): void {
		this.log.push(line);
	}

	/** Names of the calls that wait. */
	get waiting(): string[] {
		return [...this.#waiting.keys()];
	}

	wait(name: string): Promise<unknown> {
		this.note(`start ${name}`);
		return new Promise((resolve) => this.#waiting.set(name, resolve));
	}

	/** Ends the waiting call `name`, with its name as the result. */
	release(name: string): void {
		this.note(`end ${name}`);
		this.#waiting.get(name)?.(name);
		this.#waiting.delete(name);
	}
}

const define = defineMethod<Script, CallContext>();
const name = { name: "name", schema: z.string() };
const result = z.unknown();

const METHODS = [
	define({
		name: "test_echo",
		summary: "Answers its parameter.",
		params: [{ name: "value", schema: z.unknown() }],
		maxParamsSize: 1_000_000,
		result,
		handle: ([value]) => value,
	}),
	define({
		name: "test_hash",
		summary: "Answers the hash in lower case.",
		params: [{ name: "hash", schema: hash }],
		result,
		handle: async ([value]) => value,
	}),
	define({ name: "test_nothing", summary: "Answers nothing.", params: [], result, handle: () => undefined }),
	define({ name: "test_bigint", summary: "Answers no JSON.", params: [], result, handle: async () => [1n] }),
	define({
		name: "test_big",
		summary: "Answers that many bytes.",
		params: [{ name: "bytes", schema: z.number() }],
		result,
		handle: ([bytes]) => "x".repeat(bytes),
	}),
	define({
		name: "test_heavy",
		summary: "Weighs ten.",
		params: [],
		result,
		weight: 10,
		handle: () => true,
	}),
	define({
		name: "test_note",
		summary: "Remembers that it was called.",
		params: [name],
		result,
		handle: ([text], _context, script) => script.note(`note ${text}`),
	}),
	define({
		name: "test_wait",
		summary: "Waits until it is released.",
		params: [name],
		result,
		handle: ([text], _context, script) => script.wait(text),
	}),
	define({
		name: "test_ordered",
		summary: "Waits until it is released; in order within a batch.",
		params: [name],
		result,
		ordered: true,
		handle: ([text], _context, script) => script.wait(text),
	}),
	define({
		name: "test_later",
		summary: "Waits until it is released, in order within a batch; then, out of it, until its result is.",
		params: [name],
		result,
		ordered: true,
		async handle([text], _context, script) {
			await script.wait(text);
			return new AnswerLater((leftMs) => {
				script.note(`left ${leftMs}`);
				if (text === "throws") throw new RpcError("rejected", "thrown");
				return script.wait(`${text}'s result`);
			});
		},
	}),
	define({
		name: "test_laterAtOnce",
		summary: "Has only its result to wait for, from the beginning.",
		params: [name],
		result,
		handle: ([text], _context, script) => new AnswerLater(() => script.wait(text)),
	}),
	define({
		name: "test_who",
		summary: "Answers what is known of the request.",
		params: [],
		result,
		handle: (_params, context, script) => {
			script.who = context;
			const { transport, path, query, client, origin, recovered } = context;
			return { transport, path, query: Object.fromEntries(query), client, origin, recovered };
		},
	}),
	define({
		name: "test_reject",
		summary: "Refuses, with words for the client.",
		params: [],
		result,
		handle: () => {
			throw new RpcError("rejected", "nonce too low: next nonce 5, tx nonce 3", { reason: "NONCE_TOO_LOW" });
		},
	}),
	define({
		name: "test_foreign",
		summary: "Passes on an upstream's error.",
		params: [],
		result,
		handle: async () => {
			throw new ForeignRpcError(3, "execution reverted: no", "0x08c379a0");
		},
	}),
	define({
		name: "test_fault",
		summary: "Has a fault of its own.",
		params: [],
		result,
		handle: () => {
			throw new TypeError(`bad ${CANARY}`);
		},
	}),
	define({
		name: "test_lateFault",
		summary: "Has a fault of its own, later.",
		params: [],
		result,
		handle: async () => {
			throw new Error(`bad ${CANARY}`);
		},
	}),
	define({
		name: "test_badData",
		summary: "Refuses with data that is no JSON.",
		params: [],
		result,
		handle: () => {
			throw new RpcError("rejected", "no", { value: 1n });
		},
	}),
];

/** The methods, which record in `script`. */
export function testMethods(script: Script): MethodTable<CallContext> {
	return methodTable(METHODS, script);
}

/** Serves `node_echo`, `node_dear` (weight 10), `node_null` and `node_down`. */
export const testFallback: Fallback<CallContext> = {
	weigh: (method) => {
		if (method === "node_dear") return 10;
		return ["node_echo", "node_null", "node_down"].includes(method) ? 1 : undefined;
	},
	maxParamsSize: () => 10_000,
	async call(method, params) {
		if (method === "node_down") throw new Error(`http://user:${CANARY}@node`);
		return method === "node_null" ? undefined : params;
	},
};

const CLIENT = { address: "192.0.2.1", signer: null, vouched: false };
export const CONTEXT = callContext({ path: "/fast", search: "" }, CLIENT, null, null);

/** A dispatcher with at most 40 entries in a batch and a deadline of a second for each call. */
export function startDispatcher(limiter?: CallLimiter<CallContext>) {
	const script = new Script();
	const clock = new ManualClock();
	const calls: [string, CallOutcome, number][] = [];
	const faults: LogFields[] = [];
	const log: Logger = { ...silentLogger, error: (_message, fields) => void faults.push(fields ?? {}) };
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch: 40, callLimitMs: 1_000 },
		{
			methods: testMethods(script),
			fallback: testFallback,
			log,
			clock,
			onCall: (method, outcome, seconds) => void calls.push([method, outcome, seconds]),
			...(limiter === undefined ? {} : { limiter }),
		},
	);
	const send = async (body: unknown, refusal: RpcError | null = null) => {
		const text = typeof body === "string" ? body : JSON.stringify(body);
		const reading = dispatcher.read(Buffer.from(text));
		const read = reading instanceof Promise ? await reading : reading;
		const answer = await dispatcher.dispatch(read, CONTEXT, refusal);
		return { ...answer, body: answer.text === null ? null : JSON.parse(String(answer.text)) };
	};
	const call = (method: string, params: unknown = [], id: unknown = 1) =>
		send({ jsonrpc: "2.0", id, method, params });
	return { script, clock, calls, faults, dispatcher, send, call };
}

/** An entry of a batch. */
export function entry(id: number, method: string, ...params: unknown[]) {
	return { jsonrpc: "2.0", id, method, params };
}
