// Answers the body of a request by calling methods: limits, deadlines, batches and errors are the same for
// every method and every transport.

import { type Clock, DeadlineError, nextTurn } from "../clock.ts";
import { type Logger, safeError } from "../log.ts";
import {
	batchAnswer,
	type CallOutcome,
	errorAnswer,
	INTERNAL,
	okAnswer,
	quotable,
	type RpcAnswer,
	type RpcBody,
	type RpcCall,
	rateLimited,
	readBody,
	readError,
} from "./envelope.ts";
import { RpcError } from "./errors.ts";
import { AnswerLater, type MethodTable } from "./method.ts";

/** Serves names that are not in the table: the reads that are passed on. */
export interface Fallback<Context> {
	/** What a call of `method` weighs in the rate limit; undefined for a name that is not served. */
	weigh(method: string): number | undefined;
	/** Characters that the parameters of `method` have as JSON at most; only asked for a name that `weigh` knows. */
	maxParamsSize(method: string): number;
	/** Only called for a name that `weigh` knows. Answers and throws like a method's `handle`. */
	call(method: string, params: readonly unknown[], context: Context): Promise<unknown>;
}

/** Says whether a call may be made now. */
export interface CallLimiter<Context> {
	/** Takes `weight` for `call` (null: what could not be read). 0 when it may go on, else ms until it could. */
	take(context: Context, call: RpcCall | null, weight: number): number;
}

interface DispatcherOptions {
	/** Entries of a batch at most. */
	readonly maxBatch: number;
	/**
	 * A call without an answer by then gets `internal error`, in ms; 28 s unless said, since routers give a request
	 * 30. Methods have shorter deadlines of their own: this one is for their faults.
	 */
	readonly callLimitMs?: number;
}

interface DispatcherDependencies<Context> {
	readonly methods: MethodTable<Context>;
	readonly fallback?: Fallback<Context>;
	readonly limiter?: CallLimiter<Context>;
	readonly log: Logger;
	readonly clock: Clock;
	/** Told of each call that ended. `method` is a name that is served, or "unknown": a closed set for labels. */
	readonly onCall?: (method: string, outcome: CallOutcome, seconds: number) => void;
}

/** Answers bodies. */
export type Dispatcher<Context> = Pick<CallDispatcher<Context>, "dispatch">;

const CALL_LIMIT_MS = 28_000;
/** Calls of one batch that run at the same time. */
const BATCH_CONCURRENCY = 16;
/** How long the calls of a batch may be worked on before the event loop has a turn; one call is not cut in pieces. */
const TURN_MS = 2;
/** Characters of a batch's answers at most, as in go-ethereum; short ones always fit. */
const MAX_BATCH_CHARS = 25 * 1000 * 1000;
const SHORT_CHARS = 4_096;
const UNKNOWN = "unknown";
/** For calls of a batch whose turn did not come in time; who sent them may send them again. */
const TOO_MUCH = new RpcError(
	"limit",
	"limit exceeded: the answers of the batch are too large, ask for less at once",
);
const TOO_LATE = new RpcError("internal", "internal error: the batch took too long, this call was not made");
const NOBODY_WAITS = (): void => {};
const NO_ARRAY = new RpcError("invalidParams", "invalid params: params: expected an array");

/** A dispatcher over a table of methods. */
export function createDispatcher<Context>(
	options: DispatcherOptions,
	dependencies: DispatcherDependencies<Context>,
): Dispatcher<Context> {
	return new CallDispatcher(options, dependencies);
}

/** The error for a name that is not served; `reason` is added where there is one worth telling. */
export function methodNotFound(method: string, reason?: string): RpcError {
	const tail = reason === undefined ? "" : `: ${reason}`;
	const message = `the method ${quotable(method)} does not exist/is not available${tail}`;
	return new RpcError("methodNotFound", message);
}

/** Why `call` is refused whose parameters have more than `max` characters as JSON; null where they have not. */
export function oversized({ paramsSize }: RpcCall, max: number): RpcError | null {
	if (paramsSize <= max) return null;
	return new RpcError("invalidParams", `invalid params: expected at most ${max} characters in all`);
}

/** The place of a call in its request. */
interface Turn {
	/** When the request should be answered, in ms of the clock's monotonic reading. */
	readonly until: number;
	/** Lets what stands behind the call begin; may be called any number of times. */
	readonly goOn: () => void;
}

class CallDispatcher<Context> {
	readonly #maxBatch: number;
	readonly #dependencies: DispatcherDependencies<Context>;
	readonly #limitMs: number;
	/** How long calls have kept the event loop so far, all together. */
	#workedMs = 0;

	constructor(options: DispatcherOptions, dependencies: DispatcherDependencies<Context>) {
		this.#maxBatch = options.maxBatch;
		this.#limitMs = options.callLimitMs ?? CALL_LIMIT_MS;
		this.#dependencies = dependencies;
	}

	/**
	 * Answers a body, as it came or as it was read; never rejects. The first call's handler is started before this
	 * returns, so bodies that are given one after another start in that order. With `refusal` no call is made and each
	 * is answered with it.
	 */
	dispatch(
		body: Uint8Array | string | RpcBody | RpcError,
		context: Context,
		refusal: RpcError | null = null,
	): Promise<RpcAnswer> {
		const asCame = typeof body === "string" || body instanceof Uint8Array;
		const read = asCame ? readBody(body, this.#maxBatch) : body;
		if (read instanceof RpcError) {
			const limited = this.#limit(null, context);
			return Promise.resolve(limited ?? this.#fail(null, UNKNOWN, this.#now(), refusal ?? read));
		}
		if (read.batch) return this.#runBatch(read.calls, context, refusal);
		const call = read.calls[0] as RpcCall;
		const limited = this.#limit(call, context);
		if (limited !== null) return Promise.resolve(limited);
		return this.#run(call, context, refusal, { until: this.#now() + this.#limitMs, goOn: NOBODY_WAITS });
	}

	/**
	 * Calls of ordered methods run one after another, and what follows one begins when it has ended or only waits for its
	 * result. All others run side by side. Calls that only wait for a result do not use a concurrency slot, so that a
	 * hundred waits take no longer than one. After {@link TURN_MS} of work other requests get a turn.
	 */
	async #runBatch(calls: readonly RpcCall[], context: Context, refusal: RpcError | null): Promise<RpcAnswer> {
		const answers: (RpcAnswer | null)[] = calls.map((call) => this.#limit(call, context));
		const running = new Set<Promise<void>>();
		const inTurn: Promise<void>[] = [];
		const begun = this.#now();
		const until = begun + this.#limitMs;
		let mark = this.#workedMs;
		let chars = 0;
		const take = (i: number, answer: RpcAnswer): void => {
			const { length } = answer.text ?? "";
			// Short answers always fit, so that a submission that was made is also answered.
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
			const refused = refusal ?? (this.#now() >= until ? TOO_LATE : null);
			const isOrdered = this.#dependencies.methods.get(call.method)?.definition.ordered === true;
			await new Promise<void>((goOn) => {
				const answering = this.#run(call, context, refused, { until, goOn: isOrdered ? goOn : NOBODY_WAITS });
				const place: Promise<void> = answering.then((answer) => {
					take(i, answer);
					running.delete(place);
					goOn();
				});
				if (isOrdered) inTurn.push(place);
				else {
					running.add(place);
					goOn();
				}
			});
			if (running.size >= BATCH_CONCURRENCY) await Promise.race(running);
		}
		await Promise.all([...running, ...inTurn]);
		return batchAnswer(answers.filter((answer) => answer !== null));
	}

	/** Starts the call at once; the promise never rejects. */
	#run(call: RpcCall, context: Context, refusal: RpcError | null, turn: Turn): Promise<RpcAnswer> {
		const begun = this.#now();
		const { methods, fallback } = this.#dependencies;
		const { method, params, fault } = call;
		const row = methods.get(method);
		const name = this.#knownName(method);
		let running: unknown;
		try {
			if (refusal !== null) throw refusal;
			if (fault !== null) throw fault;
			if (name === UNKNOWN) throw methodNotFound(method);
			if (params === null) throw NO_ARRAY;
			const refused = oversized(call, row?.definition.maxParamsSize ?? fallback?.maxParamsSize(method) ?? 0);
			if (refused !== null) throw refused;
			running = row === undefined ? fallback?.call(method, params, context) : row.call(params, context);
		} catch (thrown) {
			return Promise.resolve(this.#fail(call, name, begun, thrown));
		} finally {
			this.#workedMs += this.#now() - begun;
		}
		if (running instanceof Promise || running instanceof AnswerLater) {
			return this.#answered(call, name, begun, Promise.resolve(running), turn);
		}
		return Promise.resolve(this.#succeed(call, name, begun, running));
	}

	/** The answer when `running` has ended, or when its time is up. */
	#answered(
		call: RpcCall,
		name: string,
		begun: number,
		running: Promise<unknown>,
		turn: Turn,
	): Promise<RpcAnswer> {
		return new Promise((resolve) => {
			let open = true;
			const end = (answer: () => RpcAnswer): void => {
				deadline.cancel();
				if (open) resolve(answer());
				open = false;
			};
			const deadline = this.#dependencies.clock.after(this.#limitMs, () =>
				end(() => this.#fail(call, name, begun, new DeadlineError(name, this.#limitMs))),
			);
			running
				.then((result) => {
					if (!(result instanceof AnswerLater)) return result;
					turn.goOn();
					if (!open || call.id === undefined) return null;
					return result.finish(Math.max(0, turn.until - this.#now()));
				})
				.then(
					(result) => end(() => this.#succeed(call, name, begun, result)),
					(thrown: unknown) => end(() => this.#fail(call, name, begun, thrown)),
				);
		});
	}

	#succeed(call: RpcCall, name: string, begun: number, result: unknown): RpcAnswer {
		let answer: RpcAnswer;
		const from = this.#now();
		try {
			answer = okAnswer(call.id, result);
		} catch (thrown) {
			return this.#fail(call, name, begun, thrown);
		}
		const now = this.#now();
		this.#workedMs += now - from;
		this.#dependencies.onCall?.(name, "ok", (now - begun) / 1000);
		return answer;
	}

	/** `call` is null for a body that could not be read: its answer has the id null. */
	#fail(call: RpcCall | null, name: string, begun: number, thrown: unknown, retryMs = 0): RpcAnswer {
		const { log, onCall } = this.#dependencies;
		const id = call === null ? null : call.id;
		let error = readError(thrown);
		let answer: RpcAnswer | undefined;
		try {
			if (error !== null) answer = errorAnswer(id, error, retryMs);
		} catch {
			// Its data is no JSON: a fault of the method that made it.
			error = null;
		}
		if (error === null) log.error("a call failed", { method: name, fault: safeError(thrown) });
		onCall?.(name, error?.outcome ?? "internal", (this.#now() - begun) / 1000);
		return answer ?? errorAnswer(id, INTERNAL);
	}

	/** Takes the call's weight from the client's allowance: the answer where that was not possible, else null. */
	#limit(call: RpcCall | null, context: Context): RpcAnswer | null {
		const { methods, fallback, limiter } = this.#dependencies;
		if (limiter === undefined) return null;
		const method = call?.method ?? "";
		const weight = methods.get(method)?.definition.weight ?? fallback?.weigh(method) ?? 1;
		const waitMs = limiter.take(context, call, weight);
		if (waitMs === 0) return null;
		return this.#fail(call, this.#knownName(method), this.#now(), rateLimited(waitMs), waitMs);
	}

	#knownName(method: string): string {
		const { methods, fallback } = this.#dependencies;
		return methods.has(method) || fallback?.weigh(method) !== undefined ? method : UNKNOWN;
	}

	#now(): number {
		return this.#dependencies.clock.monotonic();
	}
}
