// Predicts how any body may be answered: how many answers, and with which ids. Written from JSON-RPC 2.0 and apart
// from the relay's code; also checks whether an answer is well formed.

import assert from "node:assert/strict";

/** How a body must be answered: refused as a whole, by one answer, by a batch of them, or not at all. */
export type Shape =
	| { readonly kind: "unparsable" }
	| { readonly kind: "refused" }
	| { readonly kind: "single"; readonly id: unknown }
	| { readonly kind: "batch"; readonly ids: readonly unknown[] }
	| { readonly kind: "silent" };

/** Codes that a client may see; -32603 only with words of the node's about code that it has run. */
const CODES: ReadonlySet<number> = new Set([
	3, -32000, -32001, -32003, -32005, -32015, -32600, -32601, -32602, -32603,
]);
const MAX_BATCH = 100;

/** How `body` must be answered on a path that is served. */
export function shapeOf(body: Uint8Array): Shape {
	let parsed: unknown;
	try {
		parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
	} catch {
		return { kind: "unparsable" };
	}
	if (!Array.isArray(parsed)) return single(parsed);
	if (parsed.length === 0 || parsed.length > MAX_BATCH) return { kind: "refused" };
	const ids = parsed.map(single).flatMap((shape) => (shape.kind === "single" ? [shape.id] : []));
	return ids.length === 0 ? { kind: "silent" } : { kind: "batch", ids };
}

function single(entry: unknown): Shape {
	if (typeof entry !== "object" || entry === null || Array.isArray(entry))
		return { kind: "single", id: null };
	const { id, jsonrpc, method } = entry as Record<string, unknown>;
	const exact = typeof id !== "number" || (id >= -Number.MAX_SAFE_INTEGER && id <= Number.MAX_SAFE_INTEGER);
	const isId = exact && ["string", "number"].includes(typeof id);
	const isCall = (jsonrpc === undefined || jsonrpc === "2.0") && typeof method === "string" && method !== "";
	// Minus zero is written as zero.
	if (isId) return { kind: "single", id: id === 0 ? 0 : id };
	if (id === undefined && isCall) return { kind: "silent" };
	return { kind: "single", id: null };
}

/** An answer to one call: in good form, with `id`, and no fault of the relay's own. True where the node is to blame. */
export function checkOne(answer: unknown, id: unknown): boolean {
	const { jsonrpc, id: echoed, result, error, ...more } = answer as Record<string, unknown>;
	assert.deepEqual([jsonrpc, echoed, more], ["2.0", id, {}]);
	if (error === undefined) {
		assert.notEqual(result, undefined);
		return false;
	}
	assert.equal(result, undefined);
	const { code, message, data } = error as { code: number; message: string; data?: { reason?: string } };
	assert.ok(CODES.has(code), `code ${code}: ${message}`);
	assert.ok(typeof message === "string" && message !== "");
	if (code === -32601) assert.match(message, /^the method .* does not exist\/is not available/);
	if (code === -32600) assert.match(message, /^invalid request: /);
	if (!message.startsWith("internal error")) return false;
	// The node's, at most: its word for it is beside it.
	assert.equal(data?.reason, "node unavailable", message);
	return true;
}
