// The JSON-RPC methods that boost handles itself. For all others: whether any upstream may answer,
// or only our relay.

import { z } from "zod";
import { clientOf } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import type { ReceivedCall } from "../../shared/jsonrpc/envelope.ts";
import {
	AnswerLater,
	address,
	blockReference,
	defineMethod,
	hash,
	type MethodTable,
	methodTable,
	RAW_PARAMS_SIZE,
	rawBytes,
	readParamsSize,
} from "../../shared/jsonrpc/method.ts";
import { READS } from "../../shared/jsonrpc/reads.ts";
import { CANCEL_PARAMS, cancelSigner } from "../../shared/signedCancels.ts";
import { neverMined, type SyncWaits, syncTimeoutMs } from "../../shared/syncWaits.ts";
import type { RequestState } from "../domain/request.ts";
import type { Cancels } from "../requests/cancels.ts";
import { unavailable } from "../requests/failover.ts";
import type { Submissions } from "../requests/submissions.ts";
import type { SyncRequest } from "../views/syncWait.ts";
import type { Views } from "../views/views.ts";

/** The context of a call. */
export interface BoostContext {
	readonly call: CallContext;
	readonly state: RequestState;
	/**
	 * Calls of the request that the rate limit has already counted, and must not count again; null if
	 * none.
	 */
	granted: Set<ReceivedCall> | null;
}

export interface BoostMethodDependencies {
	readonly submissions: Submissions;
	readonly cancels: Cancels;
	readonly views: Views;
	readonly syncWaits: Pick<SyncWaits<SyncRequest>, "wait">;
	/** Makes a read at an upstream and returns its result. */
	readonly read: (method: string, params: readonly unknown[], state: RequestState) => Promise<unknown>;
	/** Null while it is not known. */
	readonly chainId: () => bigint | null;
	readonly clock: Clock;
}

const method = defineMethod<BoostMethodDependencies, BoostContext>();
const raw = { name: "raw", schema: rawBytes("a signed transaction as 0x hex") } as const;

const METHODS = [
	method({
		name: "eth_sendRawTransaction",
		summary: "Accepts a signed transaction and sends it privately.",
		params: [raw],
		maxParamsSize: RAW_PARAMS_SIZE,
		result: z.string(),
		ordered: true,
		handle: ([bytes], { state }, { submissions }) =>
			submissions.submit(bytes, state).then(({ tx }) => tx.hash),
	}),
	method({
		name: "eth_sendRawTransactionSync",
		summary: "Like eth_sendRawTransaction, but returns the receipt (EIP-7966).",
		params: [raw, { name: "timeoutMs", schema: syncTimeoutMs }],
		maxParamsSize: RAW_PARAMS_SIZE,
		result: z.record(z.string(), z.unknown()),
		ordered: true,
		async handle([bytes, timeoutMs], { call, state }, { submissions, syncWaits, clock }) {
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
		summary: "Cancels a pending transaction everywhere.",
		params: CANCEL_PARAMS,
		result: z.literal(true),
		ordered: true,
		handle([wanted, signature], { state }, { cancels, chainId }) {
			if (signature === undefined) return cancels.cancel(wanted, state);
			const chain = chainId();
			if (chain === null)
				throw unavailable("the chain id is not known yet, so the signature can't be checked");
			const signer = cancelSigner(chain, wanted, signature);
			return cancels.cancel(wanted, { ...state, caller: { ...state.caller, signer } });
		},
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

export function boostMethods(dependencies: BoostMethodDependencies): MethodTable<BoostContext> {
	return methodTable(METHODS, dependencies);
}

/**
 * `submission`, `sync`, `cancel`: handled by the journal. `nonce`, `byHash`: merged from several
 * sources. `read`: a read of the chain, which any upstream answers. `relay`: only for our relay,
 * never sent to a third party.
 */
export type MethodKind = "submission" | "sync" | "cancel" | "nonce" | "byHash" | "read" | "relay";

const OWN: ReadonlyMap<string, MethodKind> = new Map<string, MethodKind>([
	["eth_sendRawTransaction", "submission"],
	["eth_sendRawTransactionSync", "sync"],
	["eth_cancelTransaction", "cancel"],
	["eth_getTransactionCount", "nonce"],
	["eth_getTransactionByHash", "byHash"],
]);

/** A method that only our relay serves. */
interface RelayMethod {
	/** In the rate limit. */
	readonly weight: number;
	/**
	 * Whether it is answered over a websocket even without an id, like the relay's own method of that
	 * name.
	 */
	readonly answeredWithoutId: boolean;
}

const LIGHT: RelayMethod = { weight: 1, answeredWithoutId: false };
const HEAVY: RelayMethod = { weight: 10, answeredWithoutId: false };
/** Methods that subscribe or bid. */
const ANSWERED: RelayMethod = { weight: 1, answeredWithoutId: true };

/**
 * Methods that only our relay serves. Unknown methods go there too: it answers them with an error.
 */
export const RELAY_ONLY: ReadonlyMap<string, RelayMethod> = new Map(
	Object.entries({
		eth_sendBundle: ANSWERED,
		eth_cancelBundle: ANSWERED,
		mev_sendBundle: ANSWERED,
		eth_callMany: HEAVY,
		eth_callBundle: HEAVY,
		mev_simBundle: HEAVY,
		eth_sendPrivateTransaction: LIGHT,
		eth_subscribe: ANSWERED,
		eth_unsubscribe: ANSWERED,
		eth_newFilter: LIGHT,
		eth_newBlockFilter: LIGHT,
		eth_newPendingTransactionFilter: LIGHT,
		eth_getFilterChanges: HEAVY,
		eth_getFilterLogs: HEAVY,
		eth_uninstallFilter: LIGHT,
		eth_accounts: LIGHT,
		service_client: LIGHT,
		service_transactionStatuses: HEAVY,
		service_receipt: HEAVY,
		service_bundles: HEAVY,
		service_searcherStats: HEAVY,
		flashbots_getBundleStatsV2: LIGHT,
		flashbots_getUserStatsV2: LIGHT,
		flashbots_getBundleStats: LIGHT,
		flashbots_getUserStats: LIGHT,
		"rpc.discover": LIGHT,
	}),
);

export function kindOf(method: string): MethodKind {
	return OWN.get(method) ?? (READS.has(method) ? "read" : "relay");
}

export function weightOf(method: string): number {
	return (READS.get(method) ?? RELAY_ONLY.get(method) ?? LIGHT).weight;
}

/**
 * The maximum size of a call's parameters as JSON, in characters. The relay checks its own methods
 * itself.
 */
export function maxParamsSizeOf(method: string): number {
	const weight = READS.get(method)?.weight;
	return weight === undefined ? RAW_PARAMS_SIZE : readParamsSize(weight);
}

/** The method's metrics label: its name if known, else "unknown". */
export function labelOf(method: string): string {
	return isKnown(method) ? method : "unknown";
}

export function isKnown(method: string): boolean {
	return OWN.has(method) || READS.has(method) || RELAY_ONLY.has(method);
}

export const KNOWN_METHODS: readonly string[] = [...OWN.keys(), ...READS.keys(), ...RELAY_ONLY.keys()];

/** Every label that {@link labelOf} returns. */
export const METHOD_LABELS: readonly string[] = [...KNOWN_METHODS, "unknown"];
