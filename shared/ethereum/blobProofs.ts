// Checks the KZG proofs of blob transactions before they are acknowledged. Computes cell proofs
// (EIP-7594) for transactions with one proof per blob (EIP-4844), which wallets make by default.
// Builders drop transactions with either fault silently. A blob takes from 4 to 350 ms. So a thread
// does this, one blob at a time, fairly by client.

import { Worker } from "node:worker_threads";
import { type Clock, DeadlineError, type Timer, withDeadline } from "../clock.ts";
import type { Component } from "../lifecycle.ts";
import { FairScheduler, OverloadedError } from "../shares/scheduler.ts";
import { CELLS_PER_BLOB, type SidecarVersion, sidecarOf, sidecarShape, withCellProofs } from "./sidecar.ts";
import { type DecodedTransaction, decodeTransaction } from "./transaction.ts";

/**
 * Why a blob transaction is rejected: its blobs, its client's quota of the thread, or the quota of
 * all clients.
 */
export interface BlobRejection {
	readonly code: "BLOBS" | "CLIENT_FULL" | "POOL_FULL";
	readonly message: string;
	readonly data?: Readonly<Record<string, string>>;
}

export type BlobVerdict =
	| { readonly ok: true; readonly tx: DecodedTransaction }
	| { readonly ok: false; readonly rejection: BlobRejection };

/**
 * Cost of a blob in ms of one core: to check its proof, to check its cell proofs, and to compute
 * these.
 */
const COST_MS = { proof: 4, cells: 50, convert: 350 };
/**
 * Maximum queued work of one client, in ms: two transactions of six blobs without cell proofs. A
 * client's first transaction is always accepted.
 */
const CLIENT_MS = 4_200;
/**
 * Maximum queued blobs of all clients. A transaction with queued blobs takes as much memory as its
 * bytes.
 */
const MAX_WAITING = 256;
/**
 * After this time the client receives an error and may try again, in ms. Shorter than the call's
 * own limit.
 */
const WAIT_MS = 20_000;

const BUSY: BlobRejection = {
	code: "POOL_FULL",
	message: "txpool is full: too many blobs are being verified",
	data: { scope: "pool" },
};
const CLIENT_BUSY: BlobRejection = {
	code: "CLIENT_FULL",
	message: "too many blobs from this client are being verified, try again",
	data: { scope: "client" },
};
/** In go-ethereum's words (core/txpool/errors.go). */
const INVALID: BlobRejection = {
	code: "BLOBS",
	message: "KZG verification error: can't verify opening proof",
};
const NO_CELL_PROOFS: BlobRejection = {
	code: "BLOBS",
	message:
		"blob sidecar has no cell proofs: send it in the form of EIP-7594 (version 1), they can't be computed here",
};

/**
 * Maximum cost of the blobs of raw bytes, in ms of one core. 0 for anything but a blob transaction.
 */
export function blobMs(raw: Uint8Array): number {
	const shape = sidecarShape(raw);
	return shape === null ? 0 : shape.blobCount * (shape.version === 0 ? COST_MS.convert : COST_MS.cells);
}

/** One blob, in the form that the thread receives. */
interface Job {
	readonly blob: Uint8Array;
	readonly commitment: Uint8Array;
	readonly proofs: readonly Uint8Array[];
	readonly convert: boolean;
}

interface Answer {
	readonly valid: boolean;
	readonly cellProofs?: readonly Uint8Array[];
}

/** A running thread. */
interface Thread {
	readonly worker: Worker;
	/** Whether it could load the library. */
	readonly loaded: Promise<boolean>;
}

/** Thrown to callers that wait for a thread that has ended. */
class ThreadEnded extends Error {}

/** The package that computes. */
export const KZG_PACKAGE = "@crate-crypto/node-eth-kzg";
/**
 * Delay after the start until the library is loaded if no blob came before, in ms. Loading takes
 * two seconds of CPU.
 */
const LOAD_MS = 300_000;

export class BlobProofs implements Component {
	readonly name = "blob proofs";
	readonly #queue = new FairScheduler({ concurrency: 1, maxWaiting: MAX_WAITING });
	/** Queued work by client, in ms. */
	readonly #pending = new Map<string, number>();
	/** Started with the first blob. */
	#thread: Thread | null = null;
	#stopped = false;
	readonly #library: string;
	readonly #clock: Clock;
	#loading: Timer | null = null;

	/** `library`: another package than {@link KZG_PACKAGE}. */
	constructor(
		{ library = KZG_PACKAGE }: { readonly library?: string },
		dependencies: { readonly clock: Clock },
	) {
		this.#library = library;
		this.#clock = dependencies.clock;
	}

	/**
	 * Checks all proofs of `tx`. If blocks of `version` need cell proofs and it has none, adds
	 * them: the result has other bytes and the same hash. `client`: the client whose quota of the
	 * thread it uses, see clientOf. Without the library, cell proofs pass unchecked.
	 */
	async ready(tx: DecodedTransaction, version: SidecarVersion, client: string): Promise<BlobVerdict> {
		const { sidecar } = tx;
		if (sidecar === null) return { ok: true, tx };
		const convert = sidecar.version < version;
		const costMs = sidecar.version === 1 ? COST_MS.cells : convert ? COST_MS.convert : COST_MS.proof;
		const pending = this.#pending.get(client) ?? 0;
		const wholeMs = costMs * sidecar.blobCount;
		if (pending > 0 && pending + wholeMs > CLIENT_MS) return { ok: false, rejection: CLIENT_BUSY };
		this.#pending.set(client, pending + wholeMs);
		try {
			return await withDeadline(this.#clock, "blobs", WAIT_MS, (signal) =>
				this.#check(tx, convert, { client, cost: costMs, signal }),
			);
		} catch (thrown) {
			const isBusy = thrown instanceof OverloadedError || thrown instanceof DeadlineError;
			if (isBusy) return { ok: false, rejection: BUSY };
			throw thrown;
		} finally {
			const left = (this.#pending.get(client) ?? 0) - wholeMs;
			if (left > 0) this.#pending.set(client, left);
			else this.#pending.delete(client);
		}
	}

	async start(): Promise<void> {
		this.#loading = this.#clock.after(LOAD_MS, () => void this.load().catch(() => {}));
	}

	/**
	 * Loads the library, so that the first blob need not wait for it. Resolves with whether it is
	 * available.
	 */
	async load(): Promise<boolean> {
		return this.#stopped ? false : this.#started().loaded;
	}

	/** Ends the thread and rejects the work that waits for it. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#loading?.cancel();
		await this.#thread?.worker.terminate();
	}

	async #check(
		tx: DecodedTransaction,
		convert: boolean,
		share: { readonly client: string; readonly cost: number; readonly signal: AbortSignal },
	): Promise<BlobVerdict> {
		const { blobs, commitments, proofs } = sidecarOf(tx.raw);
		const proofsOfBlob = proofs.length / blobs.length;
		const cellProofs: Uint8Array[] = [];
		for (const [i, blob] of blobs.entries()) {
			const answer = await this.#queue.run(share, () =>
				this.#ask({
					blob: copyOf(blob),
					commitment: copyOf(commitments[i] as Buffer),
					proofs: proofs.slice(i * proofsOfBlob, (i + 1) * proofsOfBlob).map(copyOf),
					convert,
				}),
			);
			if (answer === null) return convert ? { ok: false, rejection: NO_CELL_PROOFS } : { ok: true, tx };
			if (!answer.valid) return { ok: false, rejection: INVALID };
			cellProofs.push(...(answer.cellProofs ?? []));
		}
		if (!convert) return { ok: true, tx };
		const decoded = decodeTransaction(withCellProofs(tx.raw, cellProofs));
		if (!decoded.ok || decoded.tx.hash !== tx.hash || cellProofs.length !== blobs.length * CELLS_PER_BLOB) {
			throw new Error("cell proofs changed the transaction");
		}
		return decoded;
	}

	/** The thread's answer; null if it has no library. */
	async #ask(job: Job): Promise<Answer | null> {
		const { worker, loaded } = this.#started();
		if (!(await loaded)) return null;
		return new Promise<Answer>((resolve, reject) => {
			// An idle thread does not keep the process alive.
			worker.ref();
			const onEnd = () => reject(new ThreadEnded("the thread that verifies blobs has ended"));
			worker.once("exit", onEnd);
			worker.once("message", (answer: Answer) => {
				worker.off("exit", onEnd);
				worker.unref();
				resolve(answer);
			});
			worker.postMessage(job, [job.blob.buffer as ArrayBuffer]);
		});
	}

	/** The thread, started if there is none. */
	#started(): Thread {
		if (this.#stopped) throw new ThreadEnded("no blobs are verified any more");
		if (this.#thread !== null) return this.#thread;
		// Without the process's options, which load a compiler, and without its environment
		// variables.
		const options = { workerData: this.#library, execArgv: [], env: {} };
		const worker = new Worker(new URL("./blobProofsThread.mjs", import.meta.url), options);
		const loaded = new Promise<boolean>((resolve, reject) => {
			worker.once("message", ({ loaded }: { loaded: boolean }) => resolve(loaded));
			worker.once("error", reject);
			worker.once("exit", () => reject(new ThreadEnded("the thread that verifies blobs has ended")));
		});
		const thread = { worker, loaded };
		this.#thread = thread;
		// A thread without the library reports that and ends. Any other one is restarted.
		loaded.then(
			(has) => {
				worker.unref();
				if (has) worker.once("exit", () => this.#forget(thread));
			},
			() => this.#forget(thread),
		);
		return thread;
	}

	#forget(thread: Thread): void {
		if (this.#thread === thread) this.#thread = null;
	}
}

/** A copy with memory of its own, since only that memory moves to the thread. */
function copyOf(bytes: Buffer): Uint8Array {
	return new Uint8Array(bytes);
}
