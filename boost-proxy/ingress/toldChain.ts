// What clients were told of the chain, by whichever upstream. After a failover to one that is some blocks behind, they are not told
// less: the height stays, and what that upstream lacks is an error instead of null or []. Bytes of other answers stay as they are.

import type { Clock } from "../../shared/clock.ts";
import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { batchAnswer, errorAnswer, okAnswer, type WrittenAnswer } from "../../shared/jsonrpc/answers.ts";
import { RPC_ERRORS } from "../../shared/jsonrpc/errors.ts";
import type { RpcId } from "../../shared/jsonrpc/ids.ts";
import { recentlyUsed } from "../../shared/recentlyUsed.ts";
import { ToldHead } from "../../shared/toldHead.ts";
import type { ToldHeads } from "../domain/ports.ts";
import type { ReadAnswer, UpstreamName, WireVerdict } from "../domain/request.ts";
import { type Answer, answerOf, parsed, rounded } from "../upstream/verdict.ts";

/** A call of a body of reads. */
interface ReadCall {
	readonly id: RpcId | undefined;
	readonly method: string;
	readonly params: readonly unknown[] | null;
}

/**
 * How long the upstream that told the height must say less until that is believed, and how long any other, in ms. The relay has
 * waited before it says less.
 */
const OWN_MS = 5_000;
const OTHER_MS = 30_000;
const OTHER_SLOTS = 5;
/** A longer answer to one call is neither a number nor null nor []. */
const SHORT_BYTES = 512;
/** Longer answers to batches are passed on as they are. */
const BATCH_BYTES = 256 * 1024;
const KEPT_RECEIPTS = 10_000;
const KEPT_HASHES = 256;
/** How far below the height a range of logs must end to be had by any upstream, in blocks. */
const RECENT_BLOCKS = 128;
/** How many blocks the relay may be ahead of what the slots allow: a development chain makes blocks on request. */
const AHEAD_BLOCKS = 128;
/** Codes of nodes for a block that they do not have: a server's error, not found, invalid params (geth, for logs). */
const UNKNOWN_BLOCK: ReadonlySet<number> = new Set([-32000, -32001, -32602]);
/** In the bytes of an answer, which was judged already; within another text its quotes would have backslashes before them. */
const HEIGHT = /"result": ?"(0x[0-9a-f]{1,12})"/;
const HEX = /^0x[0-9a-f]+$/i;
const HASH_LENGTH = 66;

/** Reads that name a block by their first parameter, and answer null if the upstream does not have it. */
const BY_BLOCK: ReadonlySet<string> = new Set([
	"eth_getBlockByHash",
	"eth_getBlockByNumber",
	"eth_getBlockReceipts",
	"eth_getBlockTransactionCountByHash",
	"eth_getBlockTransactionCountByNumber",
	"eth_getTransactionByBlockHashAndIndex",
	"eth_getTransactionByBlockNumberAndIndex",
	"eth_getRawTransactionByBlockHashAndIndex",
	"eth_getRawTransactionByBlockNumberAndIndex",
]);
const WATCHED: ReadonlySet<string> = new Set([
	...BY_BLOCK,
	"eth_blockNumber",
	"eth_getLogs",
	"eth_getTransactionReceipt",
]);

export class ToldChain implements ToldHeads {
	readonly #head: ToldHead;
	readonly #slot: SlotLength;
	readonly #clock: Clock;
	/** The relay's last higher head, and since when it is known (monotonic ms): no head can be more slots ahead of it than have passed. */
	#anchor: { readonly number: number; readonly since: number } | null = null;
	/** Since when the relay reports nothing but more than that, in monotonic ms; null: its last head was possible. */
	#beyondSince: number | null = null;
	/** By transaction. */
	readonly #receipts = recentlyUsed<true>(KEPT_RECEIPTS);
	/** Numbers of blocks that clients were told of, by hash. */
	readonly #hashes = recentlyUsed<number>(KEPT_HASHES);

	constructor({ slot }: { readonly slot: SlotLength }, dependencies: { readonly clock: Clock }) {
		const waits = {
			ownMs: OWN_MS,
			// Read each time, since a slot's length is learnt.
			get otherMs() {
				return Math.max(OTHER_MS, OTHER_SLOTS * slot.ms);
			},
		};
		this.#head = new ToldHead(waits, dependencies);
		this.#slot = slot;
		this.#clock = dependencies.clock;
	}

	sawHead(number: bigint | number, by: UpstreamName, hash?: string): void {
		this.#tell(Number(number), by);
		if (hash !== undefined) this.#hashes.set(hash, Number(number));
	}

	get height(): number | null {
		return this.#head.number;
	}

	/** Whether the answer to any of `calls` must be checked. */
	watches(calls: readonly ReadCall[]): boolean {
		return calls.some(({ method }) => WATCHED.has(method));
	}

	/** The body that the client gets for one eth_blockNumber, the read that wallets make most often. */
	checkHeight(id: RpcId | undefined, { body, status, by }: ReadAnswer): Buffer | string {
		const told = status === 200 && body.length <= SHORT_BYTES ? HEIGHT.exec(body.toString("latin1")) : null;
		if (told === null) return body;
		const number = Number(told[1]);
		const height = this.#tell(number, by);
		return height === number ? body : (okAnswer(id, toQuantity(height)).text ?? body);
	}

	/**
	 * The body that the client gets for calls that are watched. `askHead` asks the same upstream for its height, and is called
	 * only for an answer that may leave out what clients know.
	 */
	async check(
		calls: readonly ReadCall[],
		batch: boolean,
		answer: ReadAnswer,
		askHead: () => Promise<bigint | null>,
	): Promise<Buffer | string> {
		const { body, by } = answer;
		if (answer.status !== 200) return body;
		if (!batch && body.length > SHORT_BYTES) {
			this.#note(calls[0]);
			return body;
		}
		if (body.length > BATCH_BYTES) return body;
		const value = parsed(body);
		const entries = batch ? (Array.isArray(value) ? value : []) : [value];
		const answers = new Map<unknown, Answer>();
		for (const entry of entries) {
			const one = answerOf(entry, undefined);
			if (one !== null) answers.set(one.id, one);
		}
		const changed = new Map<unknown, { readonly result: unknown } | WireVerdict>();
		let head: bigint | null | undefined;
		for (const call of calls) {
			const one = answers.get(keyOf(call));
			if (one === undefined || !WATCHED.has(call.method)) continue;
			if (one.kind === "result" && call.method === "eth_blockNumber") {
				const height = this.#told(one.result, by);
				if (height !== null) changed.set(keyOf(call), { result: height });
				continue;
			}
			const block =
				one.kind === "result" ? this.#missing(call, one.result) : this.#missingByError(call, one.error, by);
			if (block === null) continue;
			if (head === undefined) {
				head = await askHead();
				if (head !== null) this.#tell(Number(head), by);
			}
			if (head !== null && head < BigInt(block)) changed.set(keyOf(call), behind(block));
		}
		return changed.size === 0 ? body : rebuilt(calls, batch, answers, changed);
	}

	/** `by` says that `number` is its head. Returns what clients are told. */
	#tell(number: number, by: UpstreamName): number {
		const now = this.#clock.monotonic();
		const { number: known, since } = this.#anchor ?? { number: Number.POSITIVE_INFINITY, since: now };
		const most = known + 1 + Math.floor((now - since) / this.#slot.ms);
		if (by !== "relay") return this.#head.tell(Math.min(number, most), by);
		// One of several nodes may make it up. Where a node catches up, or boost slept, it lasts.
		this.#beyondSince = number > most + AHEAD_BLOCKS ? (this.#beyondSince ?? now) : null;
		if (this.#beyondSince !== null && now - this.#beyondSince < OWN_MS) return this.height ?? known;
		// Until the relay has answered there is only the fallback's word, which ends with the outage.
		if (this.#anchor === null && this.#head.by === "fallback") this.#head.restart(number, by);
		const height = this.#head.tell(number, by);
		if (height === number && this.#anchor?.number !== number) this.#anchor = { number, since: now };
		return height;
	}

	/** The height that the client gets instead of the upstream's; null if they are the same. */
	#told(result: unknown, by: UpstreamName): string | null {
		const number = parseNodeQuantity(result);
		if (number === null) return null;
		const height = this.#tell(Number(number), by);
		return BigInt(height) === number ? null : toQuantity(height);
	}

	/** The number of a block that clients know and that the answer may leave out; null if there is none. */
	#missing(call: ReadCall, result: unknown): number | null {
		const { height } = this;
		const first = call.params?.[0];
		if (height === null) return null;
		const isEmpty = result === null || (Array.isArray(result) && result.length === 0);
		if (!isEmpty) this.#note(call);
		if (call.method === "eth_getTransactionReceipt") {
			return result === null && typeof first === "string" && this.#receipts.has(first.toLowerCase())
				? height
				: null;
		}
		if (!isEmpty || (result !== null && call.method !== "eth_getLogs")) return null;
		const block = this.#named(first);
		// Old logs are the same everywhere.
		return block === null || (call.method === "eth_getLogs" && block <= height - RECENT_BLOCKS)
			? null
			: block;
	}

	/** The same for an error, which may say in other words that the fallback does not have the block. */
	#missingByError({ params }: ReadCall, { code }: WireVerdict, by: UpstreamName): number | null {
		return by === "fallback" && UNKNOWN_BLOCK.has(code) ? this.#named(params?.[0]) : null;
	}

	/** The number of the last block that clients know and a first parameter names; null if it names none. */
	#named(first: unknown): number | null {
		if (typeof first === "string") return this.#known(first);
		const { blockHash, blockNumber, toBlock, fromBlock } = (first ?? {}) as Record<string, unknown>;
		for (const one of [blockHash, blockNumber, toBlock, fromBlock]) {
			const block = this.#known(one);
			if (block !== null) return block;
		}
		return null;
	}

	/** The number of a block that clients know, by its number or hash. */
	#known(reference: unknown): number | null {
		if (typeof reference !== "string" || !HEX.test(reference)) return null;
		if (reference.length === HASH_LENGTH) return this.#hashes.get(reference.toLowerCase()) ?? null;
		const number = parseNodeQuantity(reference);
		return number !== null && number <= BigInt(this.height ?? -1) ? Number(number) : null;
	}

	/** The client gets a receipt or a block. */
	#note(call: ReadCall | undefined): void {
		const hash = call?.params?.[0];
		if (call === undefined || typeof hash !== "string" || hash.length !== HASH_LENGTH) return;
		const key = hash.toLowerCase();
		if (call.method === "eth_getTransactionReceipt") this.#receipts.set(key, true);
		// Its number is not read, but is the height at most.
		else if (BY_BLOCK.has(call.method) && !this.#hashes.has(key)) this.#hashes.set(key, this.height ?? 0);
	}
}

/** Clients ask again after an error, while null would be an answer. The words are go-ethereum's. */
function behind(block: number): WireVerdict {
	const message = `header not found: block ${block} is not at this upstream yet, try again`;
	return { code: RPC_ERRORS.rejected.code, message };
}

function errorOf(id: ReadCall["id"], { code, message, data }: WireVerdict): WrittenAnswer {
	return errorAnswer(id, { outcome: "foreign", code, message, data, status: 200 });
}

/** The id as answers have it once they are parsed. */
function keyOf({ id }: ReadCall): unknown {
	return id === undefined ? undefined : rounded(id);
}

/** The answers in the order of the calls, those that changed instead of the upstream's. */
function rebuilt(
	calls: readonly ReadCall[],
	batch: boolean,
	answers: ReadonlyMap<unknown, Answer>,
	changed: ReadonlyMap<unknown, { readonly result: unknown } | WireVerdict>,
): Buffer | string {
	const texts = calls.map((call) => {
		const { id } = call;
		const own = changed.get(keyOf(call));
		const theirs = answers.get(keyOf(call));
		if (own !== undefined) return "result" in own ? okAnswer(id, own.result) : errorOf(id, own);
		if (theirs === undefined) return okAnswer(undefined, null);
		return theirs.kind === "result" ? okAnswer(id, theirs.result) : errorOf(id, theirs.error);
	});
	return (batch ? batchAnswer(texts).text : texts[0]?.text) ?? "";
}
