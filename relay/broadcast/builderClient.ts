// Requests to one builder: bundles, private transactions and cancels in the dialect of its row in
// BUILDERS, signed with the relay's key. Builders answer in many ways, so answers are classified
// here.

import { toQuantity } from "../../shared/ethereum/hex.ts";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient, type JsonRpcClientDependencies, UpstreamError } from "../../shared/jsonrpc/client.ts";
import { jsonHex, longJson } from "../../shared/jsonrpc/longJson.ts";
import type { Logger } from "../../shared/log.ts";
import { advice, type Symptom } from "../../shared/outgoing/advice.ts";
import { REQUEST_ID } from "../../shared/requestId.ts";
import type { BuilderRow } from "../domain/builder.ts";
import type { BundleRefund, OutgoingBundle, TimeRange } from "../domain/bundle.ts";
import type { DeliveryAnswer } from "../domain/events.ts";
import { owedRefund, type RefundTerms } from "../domain/refund.ts";

/** A JSON-RPC call to a builder, without envelope. */
export interface BuilderCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/**
 * Sends a private transaction without a bundle, by the method in the builder's row; valid until
 * `lastBlock`.
 */
export function privateCall(row: BuilderRow, tx: DecodedTransaction, lastBlock: number): BuilderCall {
	const raw = jsonHex(tx.raw);
	if (row.privateMethod !== "eth_sendPrivateTransaction") return { method: row.privateMethod, params: [raw] };
	return { method: row.privateMethod, params: [{ tx: raw, maxBlockNumber: toQuantity(lastBlock) }] };
}

/** The calls that cancel a private transaction; none where the builder supports no cancels. */
export function cancelPrivateCalls(row: BuilderRow, hash: string): readonly BuilderCall[] {
	if (row.cancel === "none") return [];
	return [{ method: "eth_cancelPrivateTransaction", params: [{ txHash: hash }] }];
}

/**
 * The calls that cancel the bundle `uuid`; none where the builder supports no cancels. `block`: the
 * next block.
 */
export function cancelBundleCalls(row: BuilderRow, uuid: string, block: number): readonly BuilderCall[] {
	if (row.cancel === "none") return [];
	const endpoint: BuilderCall = { method: "eth_cancelBundle", params: [{ replacementUuid: uuid }] };
	const empty: BuilderCall = {
		method: "eth_sendBundle",
		params: [{ txs: [], blockNumber: toQuantity(block), replacementUuid: uuid }],
	};
	if (row.cancel === "endpoint") return [endpoint];
	return row.cancel === "empty" ? [empty] : [endpoint, empty];
}

/**
 * The refund that the builder of `row` pays when `percent` (0 to 100) is requested; null where it
 * pays none.
 */
export function refundTerms(row: BuilderRow, percent: number): RefundTerms | null {
	if (!row.refund || row.maxRefundPercent === 0) return null;
	return { percent: Math.min(percent, row.maxRefundPercent), refundGas: row.refundGas };
}

/**
 * The call that sends `bundle` in the row's dialect. It replaces the bundle sent before with the
 * same `uuid` (UUIDv4). The refund is limited to the builder's maximum, and left out at 0 percent.
 */
export function bundleCall(row: BuilderRow, bundle: OutgoingBundle, uuid: string): BuilderCall {
	if (row.dialect === "mev-share") return mevShareCall(row, bundle, uuid);
	const { transactions, block, refund } = bundle;
	const params = {
		txs: transactions.map(({ tx }) => jsonHex(tx.raw)),
		blockNumber: toQuantity(block),
		revertingTxHashes: transactions.filter(({ mayRevert }) => mayRevert).map(({ tx }) => tx.hash),
		...timeFields(bundle.times),
		...droppingFields(row, bundle),
		replacementUuid: uuid,
		...(refund === null ? {} : refundFields(row, refund)),
	};
	return { method: "eth_sendBundle", params: [params] };
}

/** Whether the builder itself enforces a bundle's times: mev_sendBundle has no field for them. */
export function keepsTimes({ dialect }: BuilderRow): boolean {
	return dialect === "bundle";
}

function timeFields(times: TimeRange | null): object {
	if (times === null) return {};
	const { from, until } = times;
	return {
		...(from === 0 ? {} : { minTimestamp: from }),
		...(until === Number.POSITIVE_INFINITY ? {} : { maxTimestamp: until }),
	};
}

/** `droppingTxHashes`, only for builders that know it: others may reject a bundle that has it. */
function droppingFields(row: BuilderRow, { transactions }: OutgoingBundle): object {
	const hashes = transactions.filter(({ mayDrop }) => mayDrop).map(({ tx }) => tx.hash);
	return row.dropping && hashes.length > 0 ? { droppingTxHashes: hashes } : {};
}

function refundFields(row: BuilderRow, refund: BundleRefund): object {
	const percent = paidPercent(row, refund);
	if (percent === 0) return {};
	return {
		refundPercent: percent,
		refundRecipient: refund.recipient,
		...(refund.of === null ? {} : { refundTxHashes: [refund.of] }),
	};
}

/**
 * The refund percentage requested from a builder; 0 if paying it would cost more than the refund.
 */
function paidPercent(row: BuilderRow, { percent, payout }: BundleRefund): number {
	const terms = refundTerms(row, percent);
	if (terms === null) return 0;
	return payout !== undefined && owedRefund(payout.brings, terms, payout).owed === 0n ? 0 : terms.percent;
}

function mevShareCall(
	row: BuilderRow,
	{ transactions, block, refund }: OutgoingBundle,
	uuid: string,
): BuilderCall {
	const bundle = {
		version: "v0.1",
		inclusion: { block: toQuantity(block), maxBlock: toQuantity(block) },
		body: transactions.map(({ tx, mayRevert }) => ({ tx: jsonHex(tx.raw), canRevert: mayRevert })),
		validity: validityOf(row, refund),
		privacy: { hints: [] },
		replacementUuid: uuid,
	};
	return { method: "mev_sendBundle", params: [bundle] };
}

function validityOf(row: BuilderRow, refund: BundleRefund | null): object {
	const percent = refund === null ? 0 : paidPercent(row, refund);
	if (refund === null || percent === 0) return { refund: [], refundConfig: [] };
	return {
		refund: [{ bodyIdx: refund.bodyIdx, percent }],
		refundConfig: [{ address: refund.recipient, percent: 100 }],
	};
}

/** A request's body, and its X-Flashbots-Signature. */
export interface SignedBody {
	readonly body: Buffer;
	readonly signature: string;
}

/** The body of a request that makes `call`. */
export function bodyOf({ method, params }: BuilderCall): Buffer {
	const body = longJson({ jsonrpc: "2.0", id: 1, method, params });
	// ASCII only: methods, hex, and field names.
	return typeof body === "string" ? Buffer.from(body, "latin1") : body.whole();
}

const UUID_BYTES = 16;

/**
 * The bundle identifier for `name`: a UUIDv4 (RFC 9562) derived from the name and the relay's
 * private key. It stays the same after a restart, and a searcher who knows the name can't guess it.
 */
export function bundleUuid(name: string, signingKey: string): string {
	const bytes = Buffer.from(keccak256(Buffer.from(`${name} ${signingKey}`))).subarray(0, UUID_BYTES);
	bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
	bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
	const hex = bytes.toString("hex");
	return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Deadline for one request to a builder, in ms. After that its block is nearly built. */
const BUILDER_TIMEOUT_MS = 4_000;
/**
 * Most requests in flight to one builder. Public builders disconnect clients with more than ten
 * connections.
 */
export const BUILDER_CONNECTIONS = 8;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Most error codes of one builder that are logged. */
const MAX_CODES = 16;

/** A request's id, and whether it may be sent, which is checked at each attempt. */
export interface SendChecks {
	/** Sent in `X-Request-Id`; null: none. */
	readonly requestId: string | null;
	/** Called right before the request is written; false if it must no longer be sent. */
	shouldSend(): boolean;
	/** Called each time that the request is written. */
	onSent(): void;
}

export interface BuilderClientDependencies extends JsonRpcClientDependencies {
	readonly log: Logger;
}

interface Judged {
	readonly status: number;
	readonly text: string;
	readonly answer: DeliveryAnswer;
}

/** Sends bodies to one builder. */
export class BuilderClient {
	readonly #name: string;
	readonly #client: JsonRpcClient;
	readonly #log: Logger;
	/** Its last answer. */
	#judged: Judged = { status: 0, text: "", answer: "failed" };
	/** The last problem that was logged; null while the builder answers. */
	#loggedHint: string | null = null;
	/** Error codes that were logged. */
	readonly #loggedCodes = new Set<number>();

	constructor(row: BuilderRow, dependencies: BuilderClientDependencies) {
		this.#name = row.name;
		this.#log = dependencies.log;
		this.#client = new JsonRpcClient(
			{
				url: row.url,
				connections: BUILDER_CONNECTIONS,
				timeoutMs: BUILDER_TIMEOUT_MS,
				maxAnswerBytes: MAX_ANSWER_BYTES,
			},
			dependencies,
		);
	}

	/**
	 * Posts a signed body. Never throws. An unreachable builder is tried a second time, because a
	 * connection that it closed while idle fails once; sending a bundle twice does no harm.
	 */
	async send(signed: SignedBody, checks: SendChecks): Promise<DeliveryAnswer> {
		const answer = await this.#post(signed, checks);
		if (answer !== "unreachable") return answer;
		const second = checks.shouldSend() ? await this.#post(signed, checks) : answer;
		// Not `unsent`: the first attempt may have arrived.
		return second === "unreachable" || second === "unsent" ? "failed" : second;
	}

	close(): Promise<void> {
		return this.#client.close();
	}

	async #post({ body, signature }: SignedBody, checks: SendChecks): Promise<DeliveryAnswer | "unreachable"> {
		try {
			const headers: Record<string, string> = { "x-flashbots-signature": signature };
			if (checks.requestId !== null) headers[REQUEST_ID] = checks.requestId;
			const { status, text, symptom } = await this.#client.exchange(
				body,
				headers,
				BUILDER_TIMEOUT_MS,
				checks,
			);
			// A builder mostly gives the same answer, so it is parsed only when it changes.
			if (status !== this.#judged.status || text !== this.#judged.text) {
				this.#judged = { status, text, answer: judge(status, text) };
				if (this.#judged.answer === "rejected") this.#tellRejection(text);
			}
			const { answer } = this.#judged;
			this.#tell(answer === "failed" ? symptom : null);
			return answer;
		} catch (thrown) {
			const code = thrown instanceof UpstreamError ? thrown.code : "unreachable";
			if (code === "unsent") return "unsent";
			if (thrown instanceof UpstreamError) this.#tell(thrown.symptom);
			if (code === "timeout" || code === "unreachable") return code;
			return "failed";
		}
	}

	/** Logs each error code once. Never logs the text, which may quote a transaction. */
	#tellRejection(text: string): void {
		const { code } = (JSON.parse(text) as { readonly error: { readonly code?: unknown } }).error;
		if (typeof code !== "number" || this.#loggedCodes.size >= MAX_CODES || this.#loggedCodes.has(code))
			return;
		this.#loggedCodes.add(code);
		this.#log.warn("builder rejects requests", { upstream: this.#name, code });
	}

	/** Logs a symptom that came instead of an answer, when it changes; null: an answer. */
	#tell(symptom: Symptom | null): void {
		const hint = symptom === null ? null : advice("its url in BUILDERS", symptom);
		if (hint !== null && hint !== this.#loggedHint) {
			this.#log.warn("builder does not answer like a builder", { upstream: this.#name, hint });
		}
		if (symptom === null || hint !== null) this.#loggedHint = hint;
	}
}

/**
 * Classifies an answer. Builders that accept a bundle answer `{"result":200,"error":null}`,
 * `result:null` or plain text, and they send errors with any status. An HTML page, or a 5xx without
 * JSON, is a transport failure.
 */
export function judge(status: number, text: string): DeliveryAnswer {
	let parsed: unknown;
	try {
		parsed = JSON.parse(text);
	} catch {
		const isPage = /^\s*</.test(text);
		const isCutOff = /^\s*[[{]/.test(text);
		return status >= 200 && status < 300 && !isPage && !isCutOff ? "accepted" : "failed";
	}
	if (typeof parsed === "object" && parsed !== null && "error" in parsed && parsed.error) return "rejected";
	return status >= 200 && status < 300 ? "accepted" : "failed";
}
