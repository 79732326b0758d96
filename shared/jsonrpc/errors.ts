// The table of the JSON-RPC errors that the relay and boost create themselves, with the code and
// HTTP status of each kind. The callers write the messages. A node's error is forwarded, see
// ForeignRpcError.

/**
 * Every kind of our own errors. Each has its JSON-RPC code (JSON-RPC 2.0 section 5.1, EIP-1474,
 * EIP-7966) and the HTTP status of an answer that is this error alone. Wallets ignore the body
 * unless the HTTP status is 200, so most errors use 200. None uses 5xx. After fifteen such answers
 * in a row MetaMask considers a server down, and sends it nothing for 30 minutes.
 */
export const RPC_ERRORS = {
	parse: { code: -32700, status: 400 },
	invalidRequest: { code: -32600, status: 200 },
	methodNotFound: { code: -32601, status: 200 },
	invalidParams: { code: -32602, status: 200 },
	internal: { code: -32603, status: 200 },
	/**
	 * Nothing can serve it now (draining, not ready, no upstream): -32603 too, with `Retry-After`.
	 * Load balancers query /readyz.
	 */
	unavailable: { code: -32603, status: 200 },
	/** A limit is reached: a client's own, or the one for all clients. */
	limit: { code: -32005, status: 200 },
	/** Over the rate limit: -32005 with 429, so that proxies and clients slow down. */
	rateLimit: { code: -32005, status: 429 },
	/** The body exceeds the size limit. */
	tooLarge: { code: -32005, status: 413 },
	/** Understood, but rejected, or not possible in the present state. */
	rejected: { code: -32000, status: 200 },
	reverted: { code: 3, status: 200 },
	/**
	 * `eth_sendRawTransactionSync` alone: accepted, but not mined in the given time; the data is the
	 * hash.
	 */
	timedOut: { code: 4, status: 200 },
	/**
	 * `eth_sendRawTransactionSync` alone: accepted, but can't be mined soon; the data is the hash.
	 */
	notSoon: { code: 5, status: 200 },
} as const satisfies Record<string, { code: number; status: number }>;

export type RpcErrorKind = keyof typeof RPC_ERRORS;

/** An error for the client, who gets its message and data unchanged. */
export class RpcError extends Error {
	readonly kind: RpcErrorKind;
	readonly data: unknown;
	constructor(kind: RpcErrorKind, message: string, data?: unknown) {
		super(message);
		this.name = "RpcError";
		this.kind = kind;
		this.data = data;
	}
	get code(): number {
		return RPC_ERRORS[this.kind].code;
	}
}

/** A node's error to a read, forwarded with the node's code. */
export class ForeignRpcError extends Error {
	readonly code: number;
	readonly data: unknown;
	constructor(code: number, message: string, data?: unknown) {
		super(message);
		this.name = "ForeignRpcError";
		this.code = code;
		this.data = data;
	}
}

/** The start of the message of each −32603 of the relay itself. */
const OWN_FAULT = "internal error";

/** The data of the relay's −32603 if its node gave no answer. */
export const NODE_UNAVAILABLE = { reason: "node unavailable" } as const;

/** Whether an error of the relay is its own fault, rather than a verdict of its node. */
export function isOwnFault({ code, message }: { readonly code: number; readonly message: string }): boolean {
	return code === RPC_ERRORS.internal.code && message.startsWith(OWN_FAULT);
}

/**
 * A node's message as the relay forwards it. Boost must not mistake it for a fault of the relay.
 */
export function nodesWords(code: number, message: string): string {
	return isOwnFault({ code, message }) ? `node: ${message}` : message;
}
