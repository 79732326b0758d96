// Who waits for the receipt of a transaction: a hash and a time come in, the node's receipt goes out, or the error that
// tells why there will be none soon (EIP-7966). It submits nothing, and knows no request.

import type { Clock, Timer } from "../../shared/clock.ts";
import { type Waiting, WaitingRoom, type WaitingRoomLimits } from "../../shared/http/waitingRoom.ts";
import { ForeignRpcError, RpcError } from "../../shared/jsonrpc/errors.ts";
import { failingSimulation, notSoon, timedOut, WHY_NOT_SOON } from "../../shared/jsonrpc/sendSync.ts";
import { isMined } from "../domain/lifecycle.ts";
import type { Following, NodeReads, RecordReader } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";

/** Who comes when there is no room is told at once that the time is up. */
export type ReceiptWaitsOptions = Partial<WaitingRoomLimits>;

export interface ReceiptWaitsDependencies {
	readonly following: Following;
	readonly records: RecordReader;
	readonly node: Pick<NodeReads, "receipt">;
	readonly clock: Clock;
}

/** What somebody waits for; times are in ms of the clock's monotonic reading. */
export interface ReceiptRequest extends Waiting {
	/** Of a transaction that was taken, lower case. */
	readonly hash: string;
	/** When its call began. */
	readonly begun: number;
	/** When it must be answered. */
	readonly until: number;
}

/** A wait holds its request, of up to 2 MiB, for long: what servers take in at a time must not be full of such. */
const LIMITS: WaitingRoomLimits = {
	maxWaits: 4_096,
	maxPerClient: 256,
	maxBytes: 64 * 1024 * 1024,
	maxBytesPerClient: 8 * 1024 * 1024,
};
/** How soon a node is asked again that has no receipt yet, or did not answer, in ms. */
const RETRY_MS = 250;

/** All waits of the process. */
export class ReceiptWaits {
	readonly #deps: ReceiptWaitsDependencies;
	readonly #room: WaitingRoom;
	readonly #open = new Set<Wait>();
	#closed = false;

	constructor(options: ReceiptWaitsOptions, dependencies: ReceiptWaitsDependencies) {
		this.#deps = dependencies;
		this.#room = new WaitingRoom({ ...LIMITS, ...options });
	}

	/** How many wait. */
	get size(): number {
		return this.#open.size;
	}

	/**
	 * The node's receipt once the transaction is mined. Throws RpcError `timedOut` when the time is up, the relay stops or
	 * the client has gone, and `notSoon` where it has ended, stands behind a nonce gap or fails its simulation: each with
	 * the hash as data. Nobody waits longer than asked for, whatever the node does.
	 */
	wait(request: ReceiptRequest): Promise<unknown> {
		const { hash, begun, life } = request;
		const { clock } = this.#deps;
		const why = this.#closed ? STOPPING : this.#room.enter(request) ? null : TOO_MANY;
		if (why !== null) return Promise.reject(timedOut(hash, clock.monotonic() - begun, why));
		return new Promise((resolve, reject) => {
			const wait = new Wait(request, this.#deps, (end) => {
				this.#open.delete(wait);
				this.#room.leave(request);
				if (end.ok) resolve(end.receipt);
				else reject(end.thrown);
			});
			this.#open.add(wait);
			wait.begin();
			life.onGone(() => wait.stop("its client has gone"));
		});
	}

	/** Answers all that wait, and all that come later: the relay stops. What they wait for is on disk, and lives on. */
	close(): void {
		this.#closed = true;
		for (const wait of [...this.#open]) wait.stop(STOPPING);
	}
}

type End =
	| { readonly ok: true; readonly receipt: unknown }
	| { readonly ok: false; readonly thrown: unknown };

const STOPPING = "the relay is shutting down, and keeps it";
const TOO_MANY = "too many calls wait already, ask for its receipt";

/** One wait. `begin` must be called once. */
class Wait {
	readonly #request: ReceiptRequest;
	readonly #deps: ReceiptWaitsDependencies;
	/** Called once. */
	readonly #onEnd: (end: End) => void;
	#unfollow: () => void = () => {};
	#deadline: Timer | null = null;
	#retry: Timer | null = null;
	#asking = false;
	/** In a block, as far as the relay knows. */
	#mined = false;
	#ended = false;

	constructor(request: ReceiptRequest, dependencies: ReceiptWaitsDependencies, onEnd: (end: End) => void) {
		this.#request = request;
		this.#deps = dependencies;
		this.#onEnd = onEnd;
	}

	/**
	 * Follows first, and looks at the record then: what has happened since the submission is in the record, and what
	 * happens from now on is told. So nothing is missed, and the hash need not be known before the submission.
	 */
	begin(): void {
		const { following, records, clock } = this.#deps;
		const { hash, begun, until } = this.#request;
		this.#deadline = clock.after(Math.max(0, until - clock.monotonic()), () =>
			this.#fail(timedOut(hash, until - begun)),
		);
		this.#unfollow = following.follow(hash, (record) => this.#look(record));
		records.record(hash).then(
			(record) => {
				if (record !== null) this.#look(record);
			},
			(thrown: unknown) => this.#fail(thrown),
		);
	}

	/** Answers it now. */
	stop(why: string): void {
		const { hash, begun } = this.#request;
		this.#fail(timedOut(hash, this.#deps.clock.monotonic() - begun, why));
	}

	#look(record: TransactionRecord): void {
		if (this.#ended) return;
		const why = whyNotSoon(record);
		if (why !== null) {
			this.#fail(notSoon(record.hash, why));
			return;
		}
		this.#mined = isMined(record.stage);
		if (this.#mined && !this.#asking && this.#retry === null) this.#ask();
	}

	/** Asks for the receipt, and again until there is one: a reorganisation may take it away, and bring another one. */
	#ask(): void {
		this.#asking = true;
		receiptOf(this.#request.hash, this.#deps.node).then(
			(receipt) => {
				this.#asking = false;
				// Not mined any more: it is of a block that is gone.
				if (this.#ended || !this.#mined) return;
				if (receipt !== null) this.#end({ ok: true, receipt });
				else this.#retry = this.#deps.clock.after(RETRY_MS, () => this.#askAgain());
			},
			(thrown: unknown) => this.#fail(thrown),
		);
	}

	#askAgain(): void {
		this.#retry = null;
		if (this.#mined && !this.#ended) this.#ask();
	}

	#fail(thrown: unknown): void {
		this.#end({ ok: false, thrown });
	}

	#end(end: End): void {
		if (this.#ended) return;
		this.#ended = true;
		this.#unfollow();
		this.#deadline?.cancel();
		this.#retry?.cancel();
		this.#onEnd(end);
	}
}

/** The node's receipt, or null where it has none yet or does not answer: it may at the next try. */
async function receiptOf(hash: string, node: Pick<NodeReads, "receipt">): Promise<unknown> {
	try {
		return (await node.receipt(hash)) ?? null;
	} catch (thrown) {
		if (thrown instanceof RpcError || thrown instanceof ForeignRpcError) return null;
		throw thrown;
	}
}

/** Why it can't be mined soon, or null: it is mined, or may be in the next block. */
function whyNotSoon({ stage, simulationError, events }: TransactionRecord): string | null {
	if (stage === "QUEUED") {
		const last = events.findLast((event) => event.type === "queued");
		const reason = last?.type === "queued" ? last.reason : null;
		if (reason === "nonceGap") return WHY_NOT_SOON.nonceGap;
		// Behind one that is out unchecked its turn comes with the next block.
		return reason === "behindHeld" ? WHY_NOT_SOON.behindHeld : null;
	}
	if (stage === "SIMULATION_FAILED") {
		// The node could not tell: it is asked again in a second.
		if (simulationError === null || simulationError.code === "NODE_UNAVAILABLE") return null;
		return failingSimulation(simulationError.message);
	}
	return WHY_NOT_SOON.ended[stage] ?? null;
}
