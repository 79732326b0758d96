// The methods that boost understands itself. Everything else is passed on, see ingress.ts.

import { z } from "zod";
import type { Clock } from "../../shared/clock.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { clientOf } from "../../shared/http/clientIdentity.ts";
import type { SyncWaits } from "../../shared/http/syncWaits.ts";
import {
	AnswerLater,
	defineMethod,
	type MethodTable,
	methodTable,
	RAW_PARAMS_SIZE,
} from "../../shared/jsonrpc/method.ts";
import { address, blockReference, hash, rawBytes } from "../../shared/jsonrpc/schemas.ts";
import { neverMined, SYNC_DEFAULT_MS, syncTimeoutMs } from "../../shared/jsonrpc/sendSync.ts";
import type { RequestState } from "../domain/request.ts";
import type { Cancels } from "../requests/cancels.ts";
import type { Submissions } from "../requests/submissions.ts";
import type { SyncRequest } from "../views/syncWait.ts";
import type { Views } from "../views/views.ts";

/** What a call knows of its request. */
export interface BoostContext {
	readonly call: CallContext;
	readonly state: RequestState;
	/** For how many of its calls, from the first on, the weight was taken from the client's allowance already. */
	granted: number;
}

/** What the methods use. */
export interface BoostMethodNeeds {
	readonly submissions: Submissions;
	readonly cancels: Cancels;
	readonly views: Views;
	readonly syncWaits: Pick<SyncWaits<SyncRequest>, "wait">;
	/** A read of any upstream's: its result. */
	readonly read: (method: string, params: readonly unknown[], state: RequestState) => Promise<unknown>;
	readonly clock: Clock;
}

const method = defineMethod<BoostMethodNeeds, BoostContext>();
const raw = { name: "raw", schema: rawBytes("a signed transaction as 0x hex") } as const;

const METHODS = [
	method({
		name: "eth_sendRawTransaction",
		summary: "Takes a signed transaction and delivers it privately.",
		params: [raw],
		maxParamsSize: RAW_PARAMS_SIZE,
		result: z.string(),
		ordered: true,
		handle: ([bytes], { state }, { submissions }) =>
			submissions.submit(bytes, state).then(({ tx }) => tx.hash),
	}),
	method({
		name: "eth_sendRawTransactionSync",
		summary: "As eth_sendRawTransaction, but answers the receipt (EIP-7966).",
		params: [raw, { name: "timeoutMs", schema: syncTimeoutMs }],
		maxParamsSize: RAW_PARAMS_SIZE,
		result: z.record(z.string(), z.unknown()),
		ordered: true,
		async handle([bytes, timeoutMs = SYNC_DEFAULT_MS], { call, state }, { submissions, syncWaits, clock }) {
			const begun = clock.monotonic();
			const { tx, cancels } = await submissions.submit(bytes, state);
			if (cancels) throw neverMined(tx.hash);
			return new AnswerLater((leftMs) => {
				const until = Math.min(begun + timeoutMs, clock.monotonic() + leftMs);
				const client = clientOf(call.client.address);
				return syncWaits.wait({ hash: tx.hash, client, life: call.life, begun, until, state });
			});
		},
	}),
	method({
		name: "eth_cancelTransaction",
		summary: "Takes a pending transaction back from all who hold it.",
		params: [{ name: "hash", schema: hash }],
		result: z.literal(true),
		ordered: true,
		handle: ([wanted], { state }, { cancels }) => cancels.cancel(wanted, state),
	}),
	method({
		name: "eth_getTransactionCount",
		summary: "The account's next nonce; with the tag pending, private transactions count too.",
		params: [
			{ name: "address", schema: address },
			{ name: "block", schema: blockReference.optional() },
		],
		result: z.string(),
		handle: ([account, block = "latest"], { state }, { views, read }) =>
			block === "pending"
				? views.pendingNonce(account, state)
				: read("eth_getTransactionCount", [account, block], state),
	}),
	method({
		name: "eth_getTransactionByHash",
		summary: "A transaction, pending private ones included.",
		params: [{ name: "hash", schema: hash }],
		result: z.record(z.string(), z.unknown()).nullable(),
		handle: ([wanted], { state }, { views }) => views.byHash(wanted, state),
	}),
];

/** The table of the methods, bound to `needs`. */
export function boostMethods(needs: BoostMethodNeeds): MethodTable<BoostContext> {
	return methodTable(METHODS, needs);
}
