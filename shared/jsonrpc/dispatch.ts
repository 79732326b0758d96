// Answers the body of a request by calling methods. Limits, deadlines, batches and errors work the
// same for every method and every transport.

import { type Clock, DeadlineError, nextTurn, within } from "../clock.ts";
import { type Logger, safeError } from "../log.ts";
import {
	batchAnswer,
	type CallOutcome,
	errorAnswer,
	INTERNAL,
	JsonPieces,
	LATE,
	longBatchAnswer,
	okAnswer,
	piecedAnswer,
	rateLimited,
	readError,
	type WrittenAnswer,
} from "./answers.ts";
import { type ReceivedCall, type RpcBody, readBody } from "./envelope.ts";
import { RpcError } from "./errors.ts";
import { AnswerLater, type MethodTable } from "./method.ts";
import { unknownMethod } from "./methodNotFound.ts";
import { READS } from "./reads.ts";

/** Serves methods that are not in the table: reads that are forwarded. */
export interface Fallback<Context> {
	/** The cost of a call of `method` in the rate limit. Undefined if it is not served. */
	weigh(method: string): number | undefined;
	/** Maximum characters of the parameters as JSON; only called if `weigh` knows the method. */
	maxParamsSize(method: string): number;
	/** Only called if `weigh` knows the method. Returns and throws like a method's `handle`. */
	call(method: string, params: readonly unknown[], context: Context): Promise<unknown>;
}

export interface CallLimiter<Context> {
	/**
	 * Charges `weight` for `call` (null: an unreadable body). Returns 0 if the call may be made,
	 * else ms until it may.
	 */
	take(context: Context, call: ReceivedCall | null, weight: number): number;
}

interface DispatcherOptions {
	/** Maximum entries of a batch. */
	readonly maxBatch: number;
	/**
	 * After this time a call gets `internal error`, in ms. Default 28 s, since hosts like Heroku
	 * end a request after 30 s. Methods have shorter deadlines. This one ends those that overrun.
	 */
	readonly callLimitMs?: number;
}

interface DispatcherDependencies<Context> {
	readonly methods: MethodTable<Context>;
	readonly fallback?: Fallback<Context>;
	readonly limiter?: CallLimiter<Context>;
	readonly log: Logger;
	/** The id of the request, for the log; see requestId.ts. */
	readonly requestOf?: (context: Context) => string | null;
	readonly clock: Clock;
	/**
	 * Called for each finished call. `method` is a served name or "unknown", so that labels are a
	 * closed set.
	 */
	readonly onCall?: (method: string, outcome: CallOutcome, seconds: number) => void;
}

export type Dispatcher<Context> = Pick<CallDispatcher<Context>, "read" | "answersWithoutId" | "dispatch">;

const CALL_LIMIT_MS = 28_000;
/** Maximum calls of one batch that run at the same time. */
const BATCH_CONCURRENCY = 16;
/** How long the calls of a batch may block the event loop before other requests are served. */
const TURN_MS = 2;
/** Maximum characters of a batch's answers, as in go-ethereum. Short answers are always sent. */
const MAX_BATCH_CHARS = 25 * 1000 * 1000;
const SHORT_CHARS = 4_096;
/** If the answers of a batch are longer together, they are joined in turns of the event loop. */
const LONG_CHARS = 1024 * 1024;
const UNKNOWN = "unknown";
const TOO_MUCH = new RpcError(
	"limit",
	"limit exceeded: the answers of the batch are too large, ask for less at once",
);
/** For calls of a batch that did not start in time. */
const TOO_LATE = new RpcError("internal", "internal error: the batch took too long, this call was not made");
const NO_OP = (): void => {};
const NO_ARRAY = new RpcError("invalidParams", "invalid params: params: expected an array");

export function createDispatcher<Context>(
	options: DispatcherOptions,
	dependencies: DispatcherDependencies<Context>,
): Dispatcher<Context> {
	return new CallDispatcher(options, dependencies);
}

/** The error if the parameters of `call` have more than `max` characters as JSON, else null. */
export function oversized({ paramsSize }: ReceivedCall, max: number): RpcError | null {
	if (paramsSize <= max) return null;
	return new RpcError("invalidParams", `invalid params: expected at most ${max} characters in all`);
}

type AskedCall = Pick<ReceivedCall, "id">;

/** The position of a call in its request. */
interface CallTiming {
	/** Time by which the request should be answered: monotonic, in ms. */
	readonly until: number;
	/** Lets the next call of the batch begin; may be called repeatedly. */
	readonly startNext: () => void;
	/** The id of the request, for the log. */
	readonly request: string | undefined;
}

class CallDispatcher<Context> {
	readonly #maxBatch: number;
	readonly #dependencies: DispatcherDependencies<Context>;
	readonly #limitMs: number;
	/** Names of all served methods. */
	readonly #names: readonly string[];
	/** Total time for which calls have blocked the event loop so far. */
	#workedMs = 0;

	constructor(options: DispatcherOptions, dependencies: DispatcherDependencies<Context>) {
		this.#maxBatch = options.maxBatch;
		this.#limitMs = options.callLimitMs ?? CALL_LIMIT_MS;
		this.#dependencies = dependencies;
		const { methods, fallback } = dependencies;
		const reads = [...READS.keys()].filter((method) => fallback?.weigh(method) !== undefined);
		this.#names = [...methods.keys(), ...reads];
	}

	/** Reads a body for {@link dispatch}, see {@link readBody}. */
	read(body: Uint8Array | string): ReturnType<typeof readBody> {
		return readBody(body, this.#maxBatch);
	}

	/** See {@link MethodSpec.answeredWithoutId}. */
	answersWithoutId(method: string): boolean {
		return this.#dependencies.methods.get(method)?.definition.answeredWithoutId === true;
	}

	/**
	 * Answers a body; never rejects. The first call's handler is started before this returns, so
	 * bodies start in the order in which they are given. With `errorForAll` no call is made, and
	 * each gets that error.
	 */
	dispatch(
		read: RpcBody | RpcError,
		context: Context,
		errorForAll: RpcError | null = null,
	): Promise<WrittenAnswer> {
		if (read instanceof RpcError) {
			const limited = this.#limit(null, context);
			return Promise.resolve(limited ?? this.#fail(null, UNKNOWN, this.#now(), errorForAll ?? read));
		}
		if (read.batch) return this.#runBatch(read.calls, context, errorForAll);
		const call = read.calls[0] as ReceivedCall;
		const limited = this.#limit(call, context);
		if (limited !== null) return Promise.resolve(limited);
		const request = this.#dependencies.requestOf?.(context) ?? undefined;
		const until = this.#now() + this.#limitMs;
		return this.#run(call, context, errorForAll, { until, startNext: NO_OP, request });
	}

	/**
	 * Calls of ordered methods run one after another. The next call begins when the previous one
	 * has ended or only waits for its result. All other calls run concurrently. A call that only
	 * waits for its result does not count towards the limit, so a hundred waits take no longer than
	 * one. After {@link TURN_MS} of work other requests are served.
	 */
	async #runBatch(
		calls: readonly ReceivedCall[],
		context: Context,
		errorForAll: RpcError | null,
	): Promise<WrittenAnswer> {
		const answers: (WrittenAnswer | null)[] = calls.map((call) => this.#limit(call, context));
		const running = new Set<Promise<void>>();
		const ordered: Promise<void>[] = [];
		const begun = this.#now();
		const until = begun + this.#limitMs;
		const request = this.#dependencies.requestOf?.(context) ?? undefined;
		let mark = this.#workedMs;
		let chars = 0;
		const take = (i: number, answer: WrittenAnswer): void => {
			const { length } = answer.text ?? "";
			// A submission that was accepted must be acknowledged, so short answers always fit.
			const fits = length <= SHORT_CHARS || chars + length <= MAX_BATCH_CHARS;
			if (fits) chars += length;
			answers[i] = fits ? answer : errorAnswer(calls[i]?.id, readError(TOO_MUCH) ?? INTERNAL);
		};
		for (const [i, call] of calls.entries()) {
			if (answers[i] !== null) continue;
			if (this.#workedMs - mark > TURN_MS) {
				await nextTurn();
				mark = this.#workedMs;
			}
			const error = errorForAll ?? (this.#now() >= until ? TOO_LATE : null);
			const isOrdered = this.#dependencies.methods.get(call.method)?.definition.ordered === true;
			await new Promise<void>((startNext) => {
				const timing = { until, startNext: isOrdered ? startNext : NO_OP, request };
				const answering = this.#run(call, context, error, timing);
				const done: Promise<void> = answering.then((answer) => {
					take(i, answer);
					running.delete(done);
					startNext();
				});
				if (isOrdered) ordered.push(done);
				else {
					running.add(done);
					startNext();
				}
			});
			if (running.size >= BATCH_CONCURRENCY) await Promise.race(running);
		}
		await Promise.all([...running, ...ordered]);
		const made = answers.filter((answer) => answer !== null);
		return chars > LONG_CHARS ? longBatchAnswer(made) : batchAnswer(made);
	}

	/** Starts the call at once; the promise never rejects. */
	#run(
		call: ReceivedCall,
		context: Context,
		error: RpcError | null,
		timing: CallTiming,
	): Promise<WrittenAnswer> {
		const begun = this.#now();
		const { methods, fallback } = this.#dependencies;
		const { id, method, params, fault } = call;
		// Not the call, whose parameters may be long and are needed no more while it runs.
		const asked: AskedCall = { id };
		const row = methods.get(method);
		const name = this.#knownName(method);
		let running: unknown;
		try {
			if (error !== null) throw error;
			if (fault !== null) throw fault;
			if (name === UNKNOWN) throw unknownMethod(method, this.#names);
			if (params === null) throw NO_ARRAY;
			const tooLong = oversized(call, row?.definition.maxParamsSize ?? fallback?.maxParamsSize(method) ?? 0);
			if (tooLong !== null) throw tooLong;
			running = row === undefined ? fallback?.call(method, params, context) : row.call(params, context);
		} catch (thrown) {
			return Promise.resolve(this.#fail(asked, name, begun, thrown, timing.request));
		} finally {
			this.#workedMs += this.#now() - begun;
		}
		if (running instanceof Promise || running instanceof AnswerLater) {
			return this.#answered(asked, name, begun, Promise.resolve(running), timing);
		}
		return Promise.resolve(this.#succeed(asked, name, begun, running, timing));
	}

	/** The answer when `running` has ended, or when its time is up. */
	#answered(
		call: AskedCall,
		name: string,
		begun: number,
		running: Promise<unknown>,
		timing: CallTiming,
	): Promise<WrittenAnswer> {
		let isLate = false;
		const finished = running.then((result) => {
			if (!(result instanceof AnswerLater)) return result;
			timing.startNext();
			if (isLate || call.id === undefined) return null;
			return result.finish(Math.max(0, timing.until - this.#now()));
		});
		const { clock } = this.#dependencies;
		return within(clock, name, this.#limitMs, finished, () => {
			isLate = true;
		}).then(
			(result) => {
				if (!(result instanceof JsonPieces)) return this.#succeed(call, name, begun, result, timing);
				return this.#succeedInPieces(call, name, begun, result);
			},
			(thrown: unknown) => this.#fail(call, name, begun, thrown, timing.request),
		);
	}

	#succeed(call: AskedCall, name: string, begun: number, result: unknown, timing: CallTiming): WrittenAnswer {
		let answer: WrittenAnswer;
		const from = this.#now();
		try {
			answer = okAnswer(call.id, result);
		} catch (thrown) {
			return this.#fail(call, name, begun, thrown, timing.request);
		}
		const now = this.#now();
		this.#workedMs += now - from;
		this.#dependencies.onCall?.(name, "ok", (now - begun) / 1000);
		return answer;
	}

	async #succeedInPieces(
		{ id }: AskedCall,
		name: string,
		begun: number,
		result: JsonPieces,
	): Promise<WrittenAnswer> {
		const answer = await piecedAnswer(id, result);
		this.#dependencies.onCall?.(name, "ok", (this.#now() - begun) / 1000);
		return answer;
	}

	/** `call` is null for an unreadable body, whose answer has the id null. */
	#fail(
		call: AskedCall | null,
		name: string,
		begun: number,
		thrown: unknown,
		request?: string,
		retryMs = 0,
	): WrittenAnswer {
		const { log, onCall } = this.#dependencies;
		const id = call === null ? null : call.id;
		let error = readError(thrown);
		let answer: WrittenAnswer | undefined;
		try {
			if (error !== null) answer = errorAnswer(id, error, retryMs);
		} catch {
			// The error's data is not JSON, which is a bug of the method that threw it.
			error = null;
		}
		if (error === null) log.error("call failed", { method: name, request, fault: safeError(thrown) });
		onCall?.(name, error?.outcome ?? "internal", (this.#now() - begun) / 1000);
		return answer ?? errorAnswer(id, thrown instanceof DeadlineError ? LATE : INTERNAL);
	}

	/**
	 * Charges the call's cost to the client's rate limit. Returns the error if the limit is used
	 * up, else null.
	 */
	#limit(call: ReceivedCall | null, context: Context): WrittenAnswer | null {
		const { methods, fallback, limiter } = this.#dependencies;
		if (limiter === undefined) return null;
		const method = call?.method ?? "";
		const weight = methods.get(method)?.definition.weight ?? fallback?.weigh(method) ?? 1;
		const waitMs = limiter.take(context, call, weight);
		if (waitMs === 0) return null;
		return this.#fail(call, this.#knownName(method), this.#now(), rateLimited(waitMs), undefined, waitMs);
	}

	#knownName(method: string): string {
		const { methods, fallback } = this.#dependencies;
		return methods.has(method) || fallback?.weigh(method) !== undefined ? method : UNKNOWN;
	}

	#now(): number {
		return this.#dependencies.clock.monotonic();
	}
}
