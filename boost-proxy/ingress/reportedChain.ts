// The chain height that clients have received, from any upstream. It does not fall after a failover
// to an upstream that is some blocks behind. Other answers keep their bytes.

import type { Clock } from "../../shared/clock.ts";
import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { batchAnswer, errorAnswer, okAnswer } from "../../shared/jsonrpc/answers.ts";
import type { RpcId } from "../../shared/jsonrpc/ids.ts";
import { ReportedHead } from "../../shared/reportedHead.ts";
import type { ReportedHeads } from "../domain/ports.ts";
import type { ReadAnswer, UpstreamName } from "../domain/request.ts";
import { type Answer, answerOf, parsed, rounded } from "../upstream/verdict.ts";

/** A call of a body of reads. */
interface ReadCall {
	readonly id: RpcId | undefined;
	readonly method: string;
}

/**
 * How long a lower height must last until it counts, in ms: from the upstream that gave the height,
 * and from any other. The relay itself has already waited before it reports a lower height.
 */
const OWN_MS = 5_000;
const OTHER_MS = 30_000;
const OTHER_SLOTS = 5;
/** A longer answer to one call is no number. */
const SHORT_BYTES = 512;
/** Longer answers to batches are forwarded unchanged. */
const BATCH_BYTES = 256 * 1024;
/**
 * How many blocks the relay may be ahead of the number that the slots allow. A development chain
 * makes blocks on request.
 */
const AHEAD_BLOCKS = 128;
/**
 * Matches the bytes of an answer that was already validated. Within another text, backslashes would
 * precede its quotes.
 */
const HEIGHT = /"result": ?"(0x[0-9a-f]{1,12})"/;

export class ReportedChain implements ReportedHeads {
	readonly #head: ReportedHead;
	readonly #slot: SlotLength;
	readonly #clock: Clock;
	/**
	 * The relay's last higher head, and since when it is known (monotonic ms). No head can be ahead
	 * of it by more slots than have passed.
	 */
	#anchor: { readonly number: number; readonly since: number } | null = null;
	/**
	 * Since when the relay has reported only higher heads than that, in monotonic ms; null: its last
	 * head was possible.
	 */
	#beyondSince: number | null = null;

	constructor({ slot }: { readonly slot: SlotLength }, dependencies: { readonly clock: Clock }) {
		const waits = {
			ownMs: OWN_MS,
			// Read each time, since the length of a slot is learnt.
			get otherMs() {
				return Math.max(OTHER_MS, OTHER_SLOTS * slot.ms);
			},
		};
		this.#head = new ReportedHead(waits, dependencies);
		this.#slot = slot;
		this.#clock = dependencies.clock;
	}

	sawHead(number: bigint | number, by: UpstreamName): void {
		this.#tell(Number(number), by);
	}

	get height(): number | null {
		return this.#head.number;
	}

	/** The body that the client gets for `calls`, with no lower height than before. */
	checked(calls: readonly ReadCall[], batch: boolean, answer: ReadAnswer): Buffer | string {
		const { body, status } = answer;
		if (status !== 200 || !calls.some(isHeight)) return body;
		return batch ? this.#batch(calls, answer) : this.#single(calls[0]?.id, answer);
	}

	/** Checks the answer to one eth_blockNumber, the read that wallets make most often. */
	#single(id: RpcId | undefined, { body, by }: ReadAnswer): Buffer | string {
		const match = body.length <= SHORT_BYTES ? HEIGHT.exec(body.toString("latin1")) : null;
		if (match === null) return body;
		const number = Number(match[1]);
		const height = this.#tell(number, by);
		return height === number ? body : (okAnswer(id, toQuantity(height)).text ?? body);
	}

	#batch(calls: readonly ReadCall[], { body, by }: ReadAnswer): Buffer | string {
		if (body.length > BATCH_BYTES) return body;
		const entries = parsed(body);
		const answers = new Map<unknown, Answer>();
		for (const entry of Array.isArray(entries) ? entries : []) {
			const one = answerOf(entry, undefined);
			if (one !== null) answers.set(one.id, one);
		}
		const heights = new Map<unknown, string>();
		for (const key of calls.filter(isHeight).map(keyOf)) {
			const one = answers.get(key);
			const number = one?.kind === "result" ? parseNodeQuantity(one.result) : null;
			if (number === null) continue;
			const height = this.#tell(Number(number), by);
			if (BigInt(height) !== number) heights.set(key, toQuantity(height));
		}
		return heights.size === 0 ? body : rebuilt(calls, answers, heights);
	}

	/** `by` reports `number` as its head. Returns the head for clients. */
	#tell(number: number, by: UpstreamName): number {
		const now = this.#clock.monotonic();
		const { number: known, since } = this.#anchor ?? { number: Number.POSITIVE_INFINITY, since: now };
		const most = known + 1 + Math.floor((now - since) / this.#slot.ms);
		if (by !== "relay") return this.#head.tell(Math.min(number, most), by);
		// One of several nodes may invent a head. If a node catches up, or boost was suspended, the
		// head lasts.
		this.#beyondSince = number > most + AHEAD_BLOCKS ? (this.#beyondSince ?? now) : null;
		if (this.#beyondSince !== null && now - this.#beyondSince < OWN_MS) return this.height ?? known;
		// Until the relay has answered, only the fallback's height is known, which no longer counts
		// after the outage.
		if (this.#anchor === null && this.#head.by === "fallback") this.#head.restart(number, by);
		const height = this.#head.tell(number, by);
		if (height === number && this.#anchor?.number !== number) this.#anchor = { number, since: now };
		return height;
	}
}

function isHeight({ method }: ReadCall): boolean {
	return method === "eth_blockNumber";
}

/** The id as answers have it once they are parsed. */
function keyOf({ id }: ReadCall): unknown {
	return id === undefined ? undefined : rounded(id);
}

/** The answers in the order of the calls, with these heights instead of the upstream's. */
function rebuilt(
	calls: readonly ReadCall[],
	answers: ReadonlyMap<unknown, Answer>,
	heights: ReadonlyMap<unknown, string>,
): Buffer | string {
	const texts = calls.map((call) => {
		const { id } = call;
		const theirs = answers.get(keyOf(call));
		if (theirs === undefined) return okAnswer(undefined, null);
		if (theirs.kind === "result") return okAnswer(id, heights.get(keyOf(call)) ?? theirs.result);
		const { code, message, data } = theirs.error;
		return errorAnswer(id, { outcome: "foreign", code, message, data, status: 200 });
	});
	return batchAnswer(texts).text ?? "";
}
