// The node as `eth_callMany` asks it, all questions of one request under one deadline: calls go in, sorted answers
// come out. Where the node gives no answer at all, the request ends with the one error that the client gets for it.

import type { Clock } from "../../../shared/clock.ts";
import { type RpcAnswer, type RpcCall, UpstreamError } from "../../../shared/jsonrpc/client.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import type { Ask } from "../engines/engine.ts";
import { readAnswer } from "../engines/verdicts.ts";

/** The node. Both throw an UpstreamError where no answer was had in `timeoutMs`. */
export interface CallManyNode {
	call(call: RpcCall, timeoutMs: number): Promise<RpcAnswer>;
	batch(calls: readonly RpcCall[], timeoutMs: number): Promise<RpcAnswer[]>;
}

/** Asks within what is left of the deadline. All throw {@link nodeUnavailable}. */
export interface Asking {
	readonly ask: Ask;
	/** The answers in the order of `calls`, unsorted. */
	askAll(calls: readonly RpcCall[]): Promise<RpcAnswer[]>;
	/** Whether an answer was about the node's own state, not about what it was asked. */
	isTroubled(): boolean;
}

/** Answered where the node can't be asked now. */
export function nodeUnavailable(): RpcError {
	return new RpcError("internal", "internal error: the node can't be asked now, try again", {
		reason: "node unavailable",
	});
}

/** Codes of a node that could not do what it serves: internal error, busy, over a limit. */
const TROUBLE: ReadonlySet<number> = new Set([-32603, -32002, -32005]);

/** A new deadline of `timeoutMs` for one request. */
export function askWithin(node: CallManyNode, clock: Clock, timeoutMs: number): Asking {
	const end = clock.monotonic() + timeoutMs;
	let troubled = false;
	const within = async <T>(send: (leftMs: number) => Promise<T>): Promise<T> => {
		const left = end - clock.monotonic();
		if (left <= 0) throw nodeUnavailable();
		try {
			return await send(left);
		} catch (thrown) {
			throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
		}
	};
	return {
		async ask(call) {
			const answer = await within((leftMs) => node.call(call, leftMs));
			const read = readAnswer(answer);
			if (read.kind === "fault" && !answer.ok && TROUBLE.has(answer.error.code)) troubled = true;
			return read;
		},
		askAll: (calls) => within((leftMs) => node.batch(calls, leftMs)),
		isTroubled: () => troubled,
	};
}
