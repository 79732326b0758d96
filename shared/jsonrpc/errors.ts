// The one table of JSON-RPC errors, with the code and HTTP status of each kind. The words of single
// rejections are the callers'.

/**
 * Every kind of error a client can get, with its JSON-RPC code (JSON-RPC 2.0 section 5.1, EIP-1474, EIP-7966) and
 * the HTTP status of an answer that consists of it alone. Wallets read bodies of 200s only, so most are 200.
 */
export const RPC_ERRORS = {
	parse: { code: -32700, status: 400 },
	invalidRequest: { code: -32600, status: 200 },
	methodNotFound: { code: -32601, status: 200 },
	invalidParams: { code: -32602, status: 200 },
	internal: { code: -32603, status: 200 },
	/** Draining or not ready: -32603 too, but told to balancers by its status. */
	unavailable: { code: -32603, status: 503 },
	limit: { code: -32005, status: 200 },
	/** Over the rate limit: -32005 with 429, so that proxies and clients slow down. */
	rateLimit: { code: -32005, status: 429 },
	/** The body is larger than is read. */
	tooLarge: { code: -32005, status: 413 },
	rejected: { code: -32000, status: 200 },
	reverted: { code: 3, status: 200 },
	/** Taken, but not mined in the time that was given; the data is the hash. */
	timedOut: { code: 4, status: 200 },
	/** Taken, but it cannot be mined soon; the data is the hash. */
	notSoon: { code: 5, status: 200 },
} as const satisfies Record<string, { code: number; status: number }>;

export type RpcErrorKind = keyof typeof RPC_ERRORS;

/** An error meant for the client: its message and data leave the process as they are. */
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

/** An error of an upstream's, passed on with its own code: for reads that the node answered with an error. */
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
