// How the relay speaks to a builder: bundles, private transactions and cancels in the dialect that the builder's row in the
// setting BUILDERS names, signed with the relay's key, sent, and the odd answers that real builders give classified.

import { createHash } from "node:crypto";
import type { Clock } from "../../shared/clock.ts";
import { bytesToHex, toQuantity } from "../../shared/ethereum/hex.ts";
import { createBodySigner, keccak256 } from "../../shared/ethereum/signatures.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { BuilderRow } from "../domain/builder.ts";
import type { BundleRefund, OutgoingBundle } from "../domain/bundle.ts";
import type { DeliveryAnswer } from "../domain/events.ts";
import type { RefundTerms } from "../domain/refund.ts";

/** A JSON-RPC call to a builder, without envelope. */
export interface BuilderCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** Raw bytes as 0x hex. */
function rawHex(tx: DecodedTransaction): string {
	return bytesToHex(tx.raw);
}

/** A transaction of its own, not a bundle, by the method the builder's row names; kept until `lastBlock` at most. */
export function privateCall(row: BuilderRow, tx: DecodedTransaction, lastBlock: number): BuilderCall {
	const raw = rawHex(tx);
	if (row.privateMethod !== "eth_sendPrivateTransaction") return { method: row.privateMethod, params: [raw] };
	return { method: row.privateMethod, params: [{ tx: raw, maxBlockNumber: toQuantity(lastBlock) }] };
}

/** The calls that make the builder forget a private transaction; none where it knows no way to cancel. */
export function cancelPrivateCalls(row: BuilderRow, hash: string): readonly BuilderCall[] {
	if (row.cancel === "none") return [];
	return [{ method: "eth_cancelPrivateTransaction", params: [{ txHash: hash }] }];
}

/** The calls that make the builder forget the bundle under `uuid`, as far as it knows any. `block`: the next one. */
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

/** The terms on which the builder of `row` refunds when `percent` (0 to 100) is asked for; null: it pays none. */
export function refundTerms(row: BuilderRow, percent: number): RefundTerms | null {
	if (!row.refund || row.maxRefundPercent === 0) return null;
	return { percent: Math.min(percent, row.maxRefundPercent), refundGas: row.refundGas };
}

/**
 * The call that hands over `bundle` under `uuid` (UUIDv4) in the row's dialect, in the place of what went out under it
 * before. A refund is asked for as far as the row pays it; one of 0 percent is left out.
 */
export function bundleCall(row: BuilderRow, bundle: OutgoingBundle, uuid: string): BuilderCall {
	if (row.dialect === "mev-share") return mevShareCall(row, bundle, uuid);
	const { transactions, block, refund } = bundle;
	const wire = {
		txs: transactions.map(({ tx }) => rawHex(tx)),
		blockNumber: toQuantity(block),
		revertingTxHashes: transactions.filter(({ mayRevert }) => mayRevert).map(({ tx }) => tx.hash),
		...droppingFields(row, bundle),
		replacementUuid: uuid,
		...(refund === null ? {} : refundFields(row, refund)),
	};
	return { method: "eth_sendBundle", params: [wire] };
}

/** `droppingTxHashes`, only for builders that know it: others may refuse a bundle that has it. */
function droppingFields(row: BuilderRow, { transactions }: OutgoingBundle): object {
	const hashes = transactions.filter(({ mayDrop }) => mayDrop).map(({ tx }) => tx.hash);
	return row.dropping && hashes.length > 0 ? { droppingTxHashes: hashes } : {};
}

function refundFields(row: BuilderRow, refund: BundleRefund): object {
	const percent = refundTerms(row, refund.percent)?.percent ?? 0;
	if (percent === 0) return {};
	return {
		refundPercent: percent,
		refundRecipient: refund.recipient,
		...(refund.of === null ? {} : { refundTxHashes: [refund.of] }),
	};
}

function mevShareCall(
	row: BuilderRow,
	{ transactions, block, refund }: OutgoingBundle,
	uuid: string,
): BuilderCall {
	const bundle = {
		version: "v0.1",
		inclusion: { block: toQuantity(block), maxBlock: toQuantity(block) },
		body: transactions.map(({ tx, mayRevert }) => ({ tx: rawHex(tx), canRevert: mayRevert })),
		validity: validityOf(row, refund),
		privacy: { hints: [] },
		replacementUuid: uuid,
	};
	return { method: "mev_sendBundle", params: [bundle] };
}

function validityOf(row: BuilderRow, refund: BundleRefund | null): object {
	const percent = refund === null ? 0 : (refundTerms(row, refund.percent)?.percent ?? 0);
	if (refund === null || percent === 0) return { refund: [], refundConfig: [] };
	return {
		refund: [{ bodyIdx: refund.bodyIdx, percent }],
		refundConfig: [{ address: refund.recipient, percent: 100 }],
	};
}

/** A request's body, and what stands in X-Flashbots-Signature. */
export interface SignedBody {
	readonly body: Buffer;
	readonly signature: string;
}

const UUID_BYTES = 16;

export type Identity = ReturnType<typeof createIdentity>;

/** The relay's identity by its private key (0x hex): signs bodies and derives the identifiers of bundles. Nothing else sees the key. */
export function createIdentity(signingKey: string) {
	const signer = createBodySigner(signingKey);
	return {
		/**
		 * The identifier of what goes out under `name`: a UUIDv4 (RFC 9562) made from the name and our key, so that it is
		 * the same after a restart and can't be guessed from a hash in the name, which searchers may know.
		 */
		uuid(name: string): string {
			const bytes = Buffer.from(keccak256(Buffer.from(`${name} ${signingKey}`))).subarray(0, UUID_BYTES);
			bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
			bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
			const hex = bytes.toString("hex");
			return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
				"-",
			);
		},
		/** For the calls of one fan-out to `builders` builders: identical bodies are signed once. */
		signing(builders: number): (call: BuilderCall) => SignedBody {
			// By digest: the bodies themselves would be kept until the slowest builder has taken its own.
			const made = new Map<string, string>();
			return (call) => {
				const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, ...call }));
				if (builders === 1) return { body, signature: signer.sign(body) };
				const digest = createHash("sha256").update(body).digest("base64");
				const signature = made.get(digest) ?? signer.sign(body);
				made.set(digest, signature);
				return { body, signature };
			};
		},
	};
}

/** How long a builder may take to answer one request, in ms: after that its block is nearly built. */
export const BUILDER_TIMEOUT_MS = 4_000;
/** Requests under way to one builder at most: public ones cut off clients that hold more than ten connections. */
export const BUILDER_CONNECTIONS = 8;
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Checks made before each attempt. */
export interface SendRights {
	/** When it is about to be written: false where it may not leave any more. */
	readonly shouldSend: () => boolean;
	/** Before it is sent a second time. */
	readonly mayRepeat: () => boolean;
}

/** Sends bodies to one builder. */
export class BuilderClient {
	readonly #client: JsonRpcClient;

	constructor(row: BuilderRow, dependencies: { clock: Clock }) {
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
	 * Posts `body`, signed in X-Flashbots-Signature. Never throws. What failed as unreachable is sent a second time:
	 * a connection that the builder closed while it was idle fails like that once, and a bundle may come twice.
	 */
	async send(body: Buffer, signature: string, rights: SendRights): Promise<DeliveryAnswer> {
		const answer = await this.#post(body, signature, rights);
		if (answer !== "unreachable") return answer;
		const second = rights.mayRepeat() ? await this.#post(body, signature, rights) : answer;
		// Not `unsent`: the first attempt may have arrived.
		return second === "unreachable" || second === "unsent" ? "failed" : second;
	}

	close(): Promise<void> {
		return this.#client.close();
	}

	async #post(
		body: Buffer,
		signature: string,
		{ shouldSend }: SendRights,
	): Promise<DeliveryAnswer | "unreachable"> {
		try {
			const headers = { "x-flashbots-signature": signature };
			const { status, text } = await this.#client.exchange(body, headers, BUILDER_TIMEOUT_MS, {
				shouldSend,
			});
			return judge(status, text);
		} catch (thrown) {
			const code = thrown instanceof UpstreamError ? thrown.code : "unreachable";
			if (code === "withheld") return "unsent";
			if (code === "timeout" || code === "unreachable") return code;
			return "failed";
		}
	}
}

/**
 * How an answer counts. Builders answer `{"result":200,"error":null}`, `result:null` and plain text where they took
 * a bundle, and errors under any status; an HTML page or a 5xx without JSON is a transport failure, not an answer.
 */
export function judge(status: number, text: string): DeliveryAnswer {
	let parsed: unknown;
	try {
		parsed = JSON.parse(text);
	} catch {
		const page = /^\s*</.test(text);
		const cut = /^\s*[[{]/.test(text);
		return status >= 200 && status < 300 && !page && !cut ? "accepted" : "failed";
	}
	if (typeof parsed === "object" && parsed !== null && "error" in parsed && parsed.error) return "rejected";
	return status >= 200 && status < 300 ? "accepted" : "failed";
}
