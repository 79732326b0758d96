// A body of boost's own for a client's calls that can't be forwarded as they are. Only some of a
// batch may be made, or two of them have the same id. Or an upstream may not read or echo the
// client's text (ids of twenty digits, params that are null). The answer is returned under the
// client's ids, in the order of its calls.

import { nextTurn } from "../../shared/clock.ts";
import { errorText } from "../../shared/jsonrpc/answers.ts";
import type { ReceivedCall } from "../../shared/jsonrpc/envelope.ts";
import { RPC_ERRORS } from "../../shared/jsonrpc/errors.ts";
import { idText, type RpcId } from "../../shared/jsonrpc/ids.ts";
import { firstEntry, idIn, isList, nextEntry, type Span, scanValue } from "../../shared/jsonrpc/scan.ts";
import { joinInTurns } from "../../shared/longText.ts";
import { answerOf, parsed } from "../upstream/verdict.ts";

/** A body with the ids of its calls: their positions in it, undefined for notifications. */
export interface OwnBody {
	readonly body: string;
	readonly ids: readonly (RpcId | undefined)[];
}

/** Bytes of an answer that are scanned before the event loop runs again. */
const TURN_BYTES = 1024 * 1024;
const NO_ANSWER = {
	code: RPC_ERRORS.unavailable.code,
	message: "no relay available: the upstream did not answer this call",
	data: undefined,
};

/** The body of `calls`, which have parameters, as a batch or as the one call. */
export function ownBody(calls: readonly ReceivedCall[], batch: boolean): OwnBody {
	const ids = calls.map(({ id }, i) => (id === undefined ? undefined : i));
	const texts = calls.map(({ method, params }, i) =>
		JSON.stringify({ jsonrpc: "2.0", id: ids[i], method, params: params ?? [] }),
	);
	return { body: batch ? `[${texts.join(",")}]` : (texts[0] ?? ""), ids };
}

/**
 * The answer to `calls`. `answer` is the answer to the {@link ownBody} of those not in `others`.
 * `others` has the answers to the rest (null: none is due). Null if no answer is due.
 */
export async function clientsAnswer(
	calls: readonly ReceivedCall[],
	others: ReadonlyMap<ReceivedCall, Buffer | string | null>,
	answer: Buffer,
	batch: boolean,
): Promise<Buffer | null> {
	const found = await answersById(answer);
	// A batch may be answered as a whole with one error.
	const whole = isList(answer) ? null : answerOf(parsedShort(answer), undefined);
	const { code, message, data } = whole?.kind === "error" ? whole.error : NO_ANSWER;
	const pieces: (Buffer | string)[] = [];
	let place = 0;
	for (const call of calls) {
		const other = others.get(call);
		if (other !== undefined) {
			if (other !== null) pieces.push(",", other);
			continue;
		}
		const span = found.get(String(place++));
		if (call.id === undefined) continue;
		pieces.push(",");
		if (span === undefined) pieces.push(errorText(call.id, code, message, data));
		else {
			const own = idText(call.id);
			pieces.push(answer.subarray(span.from, span.idFrom), own, answer.subarray(span.idTo, span.to));
		}
	}
	if (pieces.length === 0) return null;
	pieces.shift();
	return joinInTurns(batch ? ["[", ...pieces, "]"] : pieces);
}

/** Errors for a whole batch are shorter than this. */
const LONGEST_ERROR = 64 * 1024;

/** The spans of the answers, by the texts of their ids. */
async function answersById(answer: Buffer): Promise<Map<string, Span>> {
	const found = new Map<string, Span>();
	if (!isList(answer)) {
		const span = scanValue(answer, 0);
		const id = idIn(answer, span);
		if (id !== null) found.set(id, span);
		return found;
	}
	let turn = 0;
	for (let entry = firstEntry(answer); entry !== null; entry = nextEntry(answer, entry)) {
		const id = idIn(answer, entry);
		if (id !== null) found.set(id, entry);
		if (entry.to - turn > TURN_BYTES) {
			turn = entry.to;
			await nextTurn();
		}
	}
	return found;
}

function parsedShort(answer: Buffer): unknown {
	return answer.length > LONGEST_ERROR ? undefined : parsed(answer);
}
