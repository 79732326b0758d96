// Recovers and makes signatures in a separate thread, if the machine has a core for it. That is
// half of the work for a submission and its deliveries. All requests of one turn of the event loop
// go to the thread in one batch. Results come in the order of the requests, so that the first to
// arrive continues first. Without a running thread, everything is done at once here.

import { Worker } from "node:worker_threads";
import type { Clock, Timer } from "../clock.ts";
import type { Component } from "../lifecycle.ts";
import { type Logger, safeError } from "../log.ts";
import { asBuffer } from "./hex.ts";
import { type HashSignature, hex32, recoverAddress, signHash } from "./signatures.ts";

export interface SignatureWorkOptions {
	/** Whether to use a thread. */
	readonly threaded: boolean;
	/** Another thread than the usual one. */
	readonly thread?: URL;
}

export interface SignatureWorkDependencies {
	readonly clock: Clock;
	readonly log: Logger;
}

/** A plain value if there is no thread, else a promise. */
export type Result<T> = T | Promise<T>;

/**
 * A request: whether to sign, or the parity of a recovery; then the hash, r and s. A result: 0 for
 * none, then its bytes.
 */
const LAYOUT = { INPUT_BYTES: 97, OUTPUT_BYTES: 65, SIGN: 2 } as const;
const { INPUT_BYTES, OUTPUT_BYTES, SIGN } = LAYOUT;
/**
 * This many take half a millisecond here. Waking the thread takes as long as two or three, and it
 * may have to wait for a core. A builder's connections request no more at a time, so deliveries for
 * a new head are signed here too. While the thread has a batch, it only gets another one of more
 * than this many.
 */
const FEW = 8;
/**
 * Requests of one batch, which take the thread some 4 ms, and batches that it has at a time. With
 * two it need not wait for the next one.
 */
const BATCH = 64;
const BATCHES = 2;
/**
 * Time after which a thread that does not respond is ended, and pause before another one is
 * started, in ms.
 */
const PATIENCE_MS = 2_000;
const PAUSE_MS = 10_000;

const THREAD = new URL("./signatureThread.mjs", import.meta.url);

/** A request that waits for the thread. */
interface Question {
	/** Writes the request. */
	readonly write: (input: Buffer) => void;
	/** Resolves with the thread's result. */
	readonly read: (output: Buffer) => void;
	/** Computes the result here. */
	readonly answer: () => void;
}

export class SignatureWork implements Component {
	readonly name = "signatures";
	readonly #dependencies: SignatureWorkDependencies;
	#threaded: boolean;
	readonly #thread: URL;
	#worker: Worker | null = null;
	#isReady = false;
	/** Requests for the next batches. */
	#waiting: Question[] = [];
	/** The batches that the thread has, oldest first. */
	readonly #batches: (readonly Question[])[] = [];
	#isFlushDue = false;
	/** Ends the thread on a timeout. Null while the thread has nothing to do. */
	#patience: Timer | null = null;
	/** Starts another thread. */
	#pause: Timer | null = null;

	constructor({ threaded, thread = THREAD }: SignatureWorkOptions, dependencies: SignatureWorkDependencies) {
		this.#dependencies = dependencies;
		this.#threaded = threaded;
		this.#thread = thread;
	}

	async start(): Promise<void> {
		if (this.#threaded) this.#startThread();
	}

	/** Ends the thread. Its unfinished work is done here. */
	async stop(): Promise<void> {
		this.#threaded = false;
		this.#pause?.cancel();
		await this.#worker?.terminate();
	}

	/** As {@link recoverAddress}. */
	readonly recover = (hash: Uint8Array, yParity: 0 | 1, r: bigint, s: bigint): Result<string | null> => {
		if (this.#isHere) return recoverAddress(hash, yParity, r, s);
		return new Promise((resolve) =>
			this.#ask({
				write(input) {
					input[0] = yParity;
					input.set(hash, 1);
					input.write(hex32(r) + hex32(s), 33, "hex");
				},
				read: (output) => resolve(output[0] === 0 ? null : `0x${output.toString("hex", 1, 21)}`),
				answer: () => resolve(recoverAddress(hash, yParity, r, s)),
			}),
		);
	};

	/** As {@link signHash}. */
	sign(hash: Uint8Array, secret: Uint8Array): Result<HashSignature> {
		if (this.#isHere) return signHash(hash, secret);
		return new Promise((resolve) =>
			this.#ask({
				write(input) {
					input[0] = SIGN;
					input.set(hash, 1);
					input.set(secret, 33);
				},
				read: (output) => resolve({ signature: output.subarray(1), recid: (output[0] ?? 1) - 1 }),
				answer: () => resolve(signHash(hash, secret)),
			}),
		);
	}

	/** Whether new requests are computed here at once. Earlier requests must be finished first. */
	get #isHere(): boolean {
		return !this.#isReady && this.#waiting.length === 0;
	}

	#ask(question: Question): void {
		this.#waiting.push(question);
		this.#flushSoon();
	}

	#flushSoon(): void {
		if (this.#isFlushDue) return;
		this.#isFlushDue = true;
		setImmediate(() => {
			this.#isFlushDue = false;
			this.#flush();
		});
	}

	/** Sends waiting requests to the thread, up to its limit of batches. */
	#flush(): void {
		if (!this.#isReady || (this.#batches.length === 0 && this.#waiting.length <= FEW)) {
			for (const { answer } of this.#waiting.splice(0, BATCH)) answer();
			if (this.#waiting.length > 0) this.#flushSoon();
			return;
		}
		// An idle thread does not keep the process alive.
		this.#worker?.ref();
		while (this.#batches.length < BATCHES && this.#waiting.length > (this.#batches.length > 0 ? FEW : 0)) {
			const batch = this.#waiting.splice(0, BATCH);
			const inputs = Buffer.from(new ArrayBuffer(batch.length * INPUT_BYTES));
			for (const [i, { write }] of batch.entries())
				write(inputs.subarray(i * INPUT_BYTES, (i + 1) * INPUT_BYTES));
			this.#batches.push(batch);
			this.#worker?.postMessage(inputs, [inputs.buffer as ArrayBuffer]);
		}
		this.#patience ??= this.#dependencies.clock.after(PATIENCE_MS, () => void this.#worker?.terminate());
	}

	#onOutputs(bytes: Uint8Array): void {
		const outputs = asBuffer(bytes);
		const batch = this.#batches.shift() ?? [];
		this.#patience?.cancel();
		this.#patience = null;
		for (const [i, { read }] of batch.entries())
			read(outputs.subarray(i * OUTPUT_BYTES, (i + 1) * OUTPUT_BYTES));
		if (this.#batches.length === 0) this.#worker?.unref();
		if (this.#batches.length > 0 || this.#waiting.length > 0) this.#flush();
	}

	#startThread(): void {
		this.#pause = null;
		// Without the process's options, which load a compiler, and without its environment
		// variables.
		const options = { workerData: LAYOUT, execArgv: [], env: {} };
		const worker = new Worker(this.#thread, options);
		worker.unref();
		this.#worker = worker;
		worker.on("message", (message: "ready" | Uint8Array) => {
			if (message === "ready") this.#begin();
			else this.#onOutputs(message);
		});
		worker.once("error", (thrown) => {
			this.#dependencies.log.error("signature thread failed", { fault: safeError(thrown) });
		});
		worker.once("exit", () => this.#onExit());
	}

	#begin(): void {
		this.#isReady = true;
		this.#dependencies.log.info("signature thread started");
	}

	/** Computes the thread's unfinished requests here, and for a while all new ones. */
	#onExit(): void {
		this.#worker = null;
		this.#isReady = false;
		this.#patience?.cancel();
		this.#patience = null;
		this.#waiting = [...this.#batches.splice(0).flat(), ...this.#waiting];
		this.#flush();
		if (!this.#threaded) return;
		this.#dependencies.log.warn("signature thread ended: signing without it for now");
		this.#pause = this.#dependencies.clock.after(PAUSE_MS, () => this.#startThread());
	}
}
