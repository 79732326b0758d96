// Decides when a transaction that searchers may see is disclosed, so that no number of clients
// fills the feed faster than a searcher on an ordinary line reads it. A client that discloses
// little never waits. Builders do not wait for a disclosure.

import { clientOf } from "../../shared/client.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { RateLimiter } from "../../shared/http/rateLimit.ts";
import { FairScheduler, type WaitingJob } from "../../shared/shares/scheduler.ts";
import { isLive } from "../domain/record.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { PoolReader } from "./pool.ts";
import type { TransactionRecords } from "./records.ts";

/** Bytes a second of all clients together: half of what a line of 16 Mbit/s carries. */
const BYTES_PER_SECOND = 1024 * 1024;
/** The most bytes of all clients at once, after a pause. */
const BURST = BYTES_PER_SECOND / 4;
/**
 * Bytes a second that one client may disclose without waiting for others. The limiter allows ten
 * seconds of them at once, and if none of these are used, one larger transaction.
 */
const OWN_BYTES_PER_SECOND = 8 * 1024;
/** The most bytes of a disclosed transaction beside its data and lists. */
const OTHER_BYTES = 1024;
/** Bytes of an entry of an access list, and of a storage key or a blob's hash, as JSON. */
const [ENTRY_BYTES, HASH_BYTES] = [74, 69];

interface DisclosuresDependencies {
	readonly pool: PoolReader;
	readonly records: Pick<TransactionRecords, "get" | "emit" | "subscribe">;
	readonly clock: Clock;
}

/** A transaction that waits for its client's turn. */
interface Waiting {
	readonly sharing: PrivateTransaction["sharing"];
	readonly job: WaitingJob;
}

/** All disclosures. Only this class emits `shared`. */
export class Disclosures {
	readonly #dependencies: DisclosuresDependencies;
	readonly #own: RateLimiter;
	readonly #turns = new FairScheduler({
		concurrency: Number.POSITIVE_INFINITY,
		maxWaiting: Number.POSITIVE_INFINITY,
		mayStart: () => this.#refilled() > 0,
	});
	/** By hash. */
	readonly #waiting = new Map<string, Waiting>();
	/** Bytes that may be disclosed in turns, at the monotonic time `#creditAt` in ms. */
	#credit = BURST;
	#creditAt: number;
	#timer: Timer | null = null;

	constructor(dependencies: DisclosuresDependencies) {
		const { clock, records } = dependencies;
		this.#dependencies = dependencies;
		this.#own = new RateLimiter({ rps: OWN_BYTES_PER_SECOND }, { clock });
		this.#creditAt = clock.monotonic();
		records.subscribe(({ hash, stage }) => {
			if (!isLive(stage)) this.#withdraw(hash);
		});
	}

	/**
	 * Searchers may see the transaction. Discloses it at once if its client has disclosed little
	 * lately, else in turns. One that has ended by then, or that an owner has hidden, is not
	 * disclosed.
	 */
	request(transaction: PrivateTransaction): void {
		const { tx, sharing, submitterAddress: address } = transaction;
		const { hash } = tx;
		if (this.isWaiting(transaction) || !this.#isPending(hash, sharing)) return;
		this.#withdraw(hash);
		const bytes = disclosedBytes(tx);
		if (this.#own.takeFrom({ address }, bytes) === 0) {
			this.#disclose(hash, bytes);
			return;
		}
		const job = this.#turns.enqueue({ client: clientOf(address), cost: bytes }, async () => {
			this.#waiting.delete(hash);
			if (this.#isPending(hash, sharing)) this.#disclose(hash, bytes);
		});
		if (job === null) return;
		this.#waiting.set(hash, { sharing, job });
		this.#goOnLater();
	}

	/** Whether it will be disclosed when its client's turn comes. */
	isWaiting({ tx, sharing }: PrivateTransaction): boolean {
		return this.#waiting.get(tx.hash)?.sharing === sharing;
	}

	/** Whether it can be disclosed on the same terms as when that was requested. */
	#isPending(hash: string, sharing: PrivateTransaction["sharing"]): boolean {
		const entry = this.#dependencies.pool.get(hash);
		if (entry?.durable !== true || entry.transaction.sharing !== sharing) return false;
		return this.#dependencies.records.get(hash)?.record.shared === false;
	}

	#disclose(hash: string, bytes: number): void {
		this.#credit = this.#refilled() - bytes;
		this.#dependencies.records.emit(hash, { type: "shared", at: this.#dependencies.clock.now() });
	}

	#withdraw(hash: string): void {
		const waiting = this.#waiting.get(hash);
		if (waiting === undefined) return;
		this.#waiting.delete(hash);
		this.#turns.withdraw(waiting.job);
	}

	/** The credit now. */
	#refilled(): number {
		const now = this.#dependencies.clock.monotonic();
		const more = ((now - this.#creditAt) / 1000) * BYTES_PER_SECOND;
		this.#credit = Math.min(BURST, this.#credit + more);
		this.#creditAt = now;
		return this.#credit;
	}

	/** Continues with the turns when there is credit again. */
	#goOnLater(): void {
		if (this.#timer !== null || this.#waiting.size === 0) return;
		const ms = Math.max(1, Math.ceil((-this.#credit / BYTES_PER_SECOND) * 1000));
		this.#timer = this.#dependencies.clock.after(ms, () => {
			this.#timer = null;
			this.#turns.resume();
			this.#goOnLater();
		});
	}
}

/** At least as many bytes as searchers get: see partialPendingTransaction in auction/feed.ts. */
export function disclosedBytes({ data, accessList, blobVersionedHashes }: DecodedTransaction): number {
	const { addresses, keys } = accessList;
	const lists = ENTRY_BYTES * addresses + HASH_BYTES * (keys + blobVersionedHashes.length);
	return OTHER_BYTES + 2 * data.length + lists;
}
