// Fake nodes with scripted answers, and proxies in front of real nodes with the faults that nodes
// and their providers have.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, request as send } from "undici";
import type { Caller } from "../../relay/domain/ports.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";

/** A node may take long. */
const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

/** A JSON-RPC call that the proxy received. */
interface ProxiedCall {
	readonly method: string;
	readonly params: readonly unknown[];
	/** Number of calls in its HTTP request. */
	readonly batch: number;
}

/** The proxy's action on a request instead of passing it to the node. */
export type NodeFault =
	/** It never answers. */
	| { readonly kind: "hang" }
	/** It closes the connection without an answer. */
	| { readonly kind: "destroy" }
	| { readonly kind: "html"; readonly status: number }
	| { readonly kind: "truncated" }
	| { readonly kind: "wrongId" }
	/** It answers each call with a JSON-RPC error. */
	| {
			readonly kind: "error";
			readonly code: number;
			readonly message: string;
			readonly data?: unknown;
			readonly status?: number;
	  }
	/** It answers each call with this result. */
	| { readonly kind: "result"; readonly result: unknown }
	/**
	 * It refuses batches of more than `calls`: by 413, by one error for all, or by an answer to the
	 * first call only.
	 */
	| {
			readonly kind: "batchLimit";
			readonly calls: number;
			readonly how: "status" | "oneError" | "firstOnly";
	  };

/** Which requests a fault applies to. */
export interface FaultWhen {
	/** Only requests with a call of one of these methods. */
	readonly methods?: readonly string[];
	/** The fault ends after this many requests. */
	readonly times?: number;
}

/** How the proxy treats single calls. */
export interface NodeRule {
	/**
	 * The JSON-RPC error instead of the node's answer, or the HTTP status for the whole request;
	 * null: none.
	 */
	refuse?(
		method: string,
		params: readonly unknown[],
	): { readonly code: number; readonly message: string; readonly status?: number } | null;
	/** The result instead of the node's answer; undefined: the node is asked. */
	answer?(method: string, params: readonly unknown[]): Promise<unknown>;
	/** The call as it is passed to the node. */
	forward?(call: Call): Call;
}

/** A running proxy. */
export type NodeProxy = Awaited<ReturnType<typeof startNodeProxy>>;

interface Call {
	readonly id: unknown;
	readonly method: string;
	readonly params?: readonly unknown[];
}

/** Starts a proxy on loopback. `first` is the node's URL. */
export async function startNodeProxy(first: string) {
	let targets: readonly string[] = [first];
	let passed = 0;
	let calls: ProxiedCall[] = [];
	let requests = 0;
	const credentials = new Set<string>();
	let fault: NodeFault | null = null;
	let when: FaultWhen & { left: number } = { left: Infinity };
	let gate: Promise<void> = Promise.resolve();
	let gated: readonly string[] | undefined;
	let delayMs = 0;
	let delayed: readonly string[] | undefined;
	let rule: NodeRule | null = null;

	const faultFor = (list: readonly Call[]): NodeFault | null => {
		if (fault === null || when.left === 0) return null;
		if (when.methods !== undefined && !list.some(({ method }) => when.methods?.includes(method))) return null;
		if (fault.kind === "batchLimit" && list.length <= fault.calls) return null;
		when.left -= 1;
		return fault;
	};

	const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		const body = Buffer.concat(chunks).toString();
		const parsed = JSON.parse(body) as Call | Call[];
		const list = Array.isArray(parsed) ? parsed : [parsed];
		requests += 1;
		credentials.add(`${request.url} ${request.headers.authorization}`);
		for (const { method, params = [] } of list) calls.push({ method, params, batch: list.length });
		if (gated === undefined || list.some(({ method }) => gated?.includes(method))) await gate;
		const isDelayed = delayed === undefined || list.some(({ method }) => delayed?.includes(method));
		// It keeps no process that has nothing else to do.
		if (delayMs > 0 && isDelayed) await new Promise((resolve) => setTimeout(resolve, delayMs).unref());
		const met = faultFor(list);
		if (met !== null) {
			answerFault(met, list, Array.isArray(parsed), response);
			return;
		}
		const headers = { "content-type": "application/json" };
		const target = targets[passed % targets.length] ?? first;
		passed += 1;
		if (rule !== null) {
			const { status, json } = await ruled(rule, list, target);
			response.writeHead(status, headers).end(JSON.stringify(Array.isArray(parsed) ? json : json[0]));
			return;
		}
		const answer = await send(target, { dispatcher, method: "POST", headers, body });
		response.writeHead(answer.statusCode, headers).end(await answer.body.text());
	};

	const server = createServer((request, response) => {
		serve(request, response).catch(() => response.destroy());
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		/** All calls so far, or those of one method. */
		calls: (method?: string): readonly ProxiedCall[] =>
			calls.filter((call) => method === undefined || call.method === method),
		/** Number of HTTP requests so far. */
		get requests() {
			return requests;
		},
		/** The paths and `Authorization` headers of all requests. */
		credentials: credentials as ReadonlySet<string>,
		/** Passes requests on to other nodes, as a load balancer does: to each in turn. */
		setTargets(...urls: readonly string[]): void {
			targets = urls;
		},
		/** Forgets the calls. */
		reset(): void {
			calls = [];
			requests = 0;
		},
		setFault(next: NodeFault | null, options: FaultWhen = {}): void {
			fault = next;
			when = { ...options, left: options.times ?? Infinity };
		},
		/** From now on it answers or changes single calls by this rule; null: by none. */
		setRule(next: NodeRule | null): void {
			rule = next;
		},
		/**
		 * Makes requests wait until the returned function is called; if `methods` are given, only
		 * requests with a call of one of them.
		 */
		hold(methods?: readonly string[]): () => void {
			gated = methods;
			let release = (): void => {};
			gate = new Promise((resolve) => {
				release = resolve;
			});
			return release;
		},
		/**
		 * Delays requests from now on by `ms` each; if `methods` are given, only requests with a call
		 * of one of them. 0 ends the delay.
		 */
		setDelay(ms: number, methods?: readonly string[]): void {
			delayMs = ms;
			delayed = methods;
		},
		async stop(): Promise<void> {
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

/**
 * The node's answers to the calls that `rule` neither refuses nor answers, as it changes them, and
 * its own to the others.
 */
async function ruled(rule: NodeRule, list: readonly Call[], target: string) {
	const refused = list.map((call) => rule.refuse?.(call.method, call.params ?? []) ?? null);
	const results = await Promise.all(list.map(({ method, params = [] }) => rule.answer?.(method, params)));
	const status = refused.find((one) => one?.status !== undefined)?.status ?? 200;
	const isPassed = (_: unknown, i: number) => refused[i] === null && results[i] === undefined;
	const passed = list.filter(isPassed).map((call) => rule.forward?.(call) ?? call);
	let answers: readonly { readonly id: unknown }[] = [];
	if (passed.length > 0) {
		const headers = { "content-type": "application/json" };
		const text = JSON.stringify(passed);
		const answer = await send(target, { dispatcher, method: "POST", headers, body: text });
		answers = (await answer.body.json()) as typeof answers;
	}
	const json = list.map(({ id }, i) => {
		if (refused[i] !== null) return { jsonrpc: "2.0", id, error: refused[i] };
		if (results[i] !== undefined) return { jsonrpc: "2.0", id, result: results[i] };
		return answers.find((one) => one.id === id);
	});
	return { status, json };
}

function answerFault(
	fault: NodeFault,
	list: readonly Call[],
	batched: boolean,
	response: ServerResponse,
): void {
	const send = (status: number, json: unknown): void => {
		response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
	};
	const each = (outcome: object, status = 200): void => {
		const answers = list.map(({ id }) => ({ jsonrpc: "2.0", id, ...outcome }));
		send(status, batched ? answers : answers[0]);
	};
	const tooMany = { code: -32600, message: "batch too large" };
	switch (fault.kind) {
		case "hang":
			return;
		case "destroy":
			response.destroy();
			return;
		case "html":
			response
				.writeHead(fault.status, { "content-type": "text/html" })
				.end("<html>secret-of-the-node</html>");
			return;
		case "truncated":
			response.writeHead(200, { "content-type": "application/json" }).end('{"jsonrpc":"2.0","id":1,"resu');
			return;
		case "wrongId":
			send(200, { jsonrpc: "2.0", id: "another", result: "0x1" });
			return;
		case "error":
			each({ error: { code: fault.code, message: fault.message, data: fault.data } }, fault.status);
			return;
		case "result":
			each({ result: fault.result });
			return;
		case "batchLimit":
			if (fault.how === "status") send(413, "payload too large");
			else if (fault.how === "oneError") send(200, { jsonrpc: "2.0", id: null, error: tooMany });
			else send(200, [{ jsonrpc: "2.0", id: list[0]?.id, error: tooMany }]);
	}
}

/** Returns the result of a call, or throws; a {@link NodeError} becomes the node's error. */
export type Answer = (params: readonly unknown[]) => unknown;

/** A JSON-RPC error from the node. */
export class NodeError extends Error {
	readonly code: number;
	readonly data: unknown;
	constructor(code: number, message: string, data?: unknown) {
		super(message);
		this.code = code;
		this.data = data;
	}
}

/** A node in this process with an answer for each method; others are unknown methods. */
export class ScriptedNode {
	readonly answers: Record<string, Answer>;
	readonly calls: RpcCall[] = [];

	constructor(answers: Record<string, Answer>) {
		this.answers = answers;
	}

	/** The methods that were called, in order. */
	get asked(): string[] {
		return this.calls.map(({ method }) => method);
	}

	async call(call: RpcCall): Promise<RpcAnswer> {
		this.calls.push(call);
		const answer = this.answers[call.method];
		try {
			if (answer === undefined) throw new NodeError(-32601, "the method does not exist");
			return { ok: true, result: await answer(call.params) };
		} catch (thrown) {
			if (!(thrown instanceof NodeError)) throw thrown;
			const { code, message, data } = thrown;
			return { ok: false, error: { code, message, data } };
		}
	}

	batch(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
		return Promise.all(calls.map((call) => this.call(call)));
	}
}

/** A client that never disconnects; calls with another `name` are another client's. */
export function caller(name = "client"): Caller {
	return { client: name, life: { onGone() {} } };
}
