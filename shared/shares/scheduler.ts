// Weighted fair queueing by client: whoever has asked for little is served next, whatever stands in the queue of others
// (start-time fair queueing: Goyal, Vin and Cheng, 1996). By it, work that comes all at once is spread over turns of the event
// loop.

import TinyQueue from "tinyqueue";
import type { Clock } from "../clock.ts";

/** Thrown to whoever waits where there is no room: it was not run. */
export class OverloadedError extends Error {
	readonly code = "OVERLOADED";
	constructor() {
		super("not run: too much is waiting");
		this.name = "OverloadedError";
	}
}

interface SchedulerOptions {
	/** Maximum number of running jobs. A client may hold half of them, so that a newcomer finds a free one. */
	readonly concurrency: number;
	/** Jobs that wait at most; beyond, the last job of the client that has the most of them is refused. */
	readonly maxWaiting: number;
	/** Asked before each job begins. False holds all of them back until {@link FairScheduler.resume} is called. */
	readonly shouldSend?: () => boolean;
}

export interface JobOptions {
	/** Who asks: see clientOf in shared/http/callContext.ts. */
	readonly client: string;
	/** What it costs, in any unit above 0 that is the same for all jobs of a scheduler: calls, gas. */
	readonly cost: number;
	/** Goes before all that is not urgent, other clients' too; fair among what is urgent. */
	readonly urgent?: boolean;
	/** Goes after all other jobs, other clients' too, and never takes more than half of the places. */
	readonly last?: boolean;
	/** Among the jobs of its client, lower goes first; 0 unless said. */
	readonly rank?: number;
	/** Takes it out of the queue when aborted; one that runs goes on. */
	readonly signal?: AbortSignal | undefined;
}

/** A job in the queue, for {@link FairScheduler.withdraw}. */
export interface WaitingJob {
	readonly options: JobOptions;
}

interface Job extends WaitingJob {
	readonly start: () => Promise<void>;
	readonly refuse: (reason: unknown) => void;
	/** False once it has begun, was refused or taken out; its entry in the queue is passed over then. */
	isWaiting: boolean;
}

/** One client's jobs of one urgency. */
interface Queue {
	readonly client: string;
	jobs: Job[];
	/** How many of them wait. */
	waiting: number;
	/** The virtual time at which the next of them begins. */
	tag: number;
	/** Of equal times the one that came first goes first. */
	seq: number;
	/** Whether it stands in the order of turns. */
	isOrdered: boolean;
}

/** How many idle clients are remembered with what they have used. */
const MAX_IDLE = 4_096;

/** Runs jobs, some at a time, each client in its turn. */
export class FairScheduler {
	readonly #options: SchedulerOptions;
	/** Urgent ones, the usual ones, and the last ones. */
	readonly #turns = [new Turns(), new Turns(), new Turns()] as const;
	/** Jobs that run, by client. */
	readonly #runningOf = new Map<string, number>();
	#running = 0;
	#lastRunning = 0;

	constructor(options: SchedulerOptions) {
		this.#options = options;
	}

	/** Jobs that wait. */
	get waiting(): number {
		const [urgent, usual, last] = this.#turns;
		return urgent.waiting + usual.waiting + last.waiting;
	}

	/** Jobs that run. */
	get running(): number {
		return this.#running;
	}

	/**
	 * What `work` answers, when it was its turn. Rejects with {@link OverloadedError} where it was not run for want of
	 * room, with the signal's reason where it was taken out, else with what `work` rejects with.
	 */
	run<T>(options: JobOptions, work: () => Promise<T>): Promise<T> {
		const { signal } = options;
		if (signal?.aborted) return Promise.reject(signal.reason);
		return new Promise<T>((resolve, reject) => {
			const start = () => {
				signal?.removeEventListener("abort", onAbort);
				return new Promise<T>((settle) => settle(work())).then(resolve, reject);
			};
			const job: Job = { options, start, refuse: reject, isWaiting: true };
			const onAbort = () => {
				if (this.withdraw(job)) reject(signal?.reason);
			};
			signal?.addEventListener("abort", onAbort, { once: true });
			this.#enqueue(job);
		});
	}

	/** Begins what was held back and may begin now. */
	resume(): void {
		this.#startNext();
	}

	/**
	 * As {@link run} for work that never rejects and whose end nobody waits for; nobody is told where it is refused. Takes
	 * less memory, for queues of many. Returns what waits, to be taken out by {@link withdraw}; null where it has begun.
	 */
	enqueue(options: Omit<JobOptions, "signal">, work: () => Promise<void>): WaitingJob | null {
		const job: Job = { options, start: work, refuse: NOTHING, isWaiting: true };
		this.#enqueue(job);
		return job.isWaiting ? job : null;
	}

	/** Takes it out of the queue; false where it is not there any more. */
	withdraw(job: WaitingJob): boolean {
		return this.#turnsOf(job.options).remove(job as Job);
	}

	#enqueue(job: Job): void {
		this.#turnsOf(job.options).add(job);
		this.#startNext();
		if (this.waiting > this.#options.maxWaiting) this.#refuseOne();
	}

	#refuseOne(): void {
		const turns = this.#turns.findLast(({ waiting }) => waiting > 0);
		turns?.removeLastOfFullest()?.refuse(new OverloadedError());
	}

	#startNext(): void {
		const { concurrency, shouldSend } = this.#options;
		while (this.#running < concurrency && shouldSend?.() !== false) {
			const [urgent, usual, last] = this.#turns;
			const mayBeLast = this.#lastRunning < Math.max(1, concurrency / 2);
			const job =
				urgent.next(this.#mayRun) ?? usual.next(this.#mayRun) ?? (mayBeLast ? last.next(this.#mayRun) : null);
			if (job === null) return;
			const { client } = job.options;
			this.#running += 1;
			if (job.options.last === true) this.#lastRunning += 1;
			this.#runningOf.set(client, (this.#runningOf.get(client) ?? 0) + 1);
			void job.start().then(() => this.#ended(job.options));
		}
	}

	#ended({ client, last }: JobOptions): void {
		this.#running -= 1;
		if (last === true) this.#lastRunning -= 1;
		const left = (this.#runningOf.get(client) ?? 1) - 1;
		if (left === 0) this.#runningOf.delete(client);
		else this.#runningOf.set(client, left);
		this.#startNext();
		if (this.#running > 0 || this.waiting > 0) return;
		for (const turns of this.#turns) turns.clear();
	}

	#turnsOf({ urgent, last }: JobOptions): Turns {
		return this.#turns[urgent === true ? 0 : last === true ? 2 : 1];
	}

	/** A client may start a job if as many places are left free as it then holds. */
	readonly #mayRun = (client: string): boolean => {
		const own = this.#runningOf.get(client) ?? 0;
		return own === 0 || own + 1 <= this.#options.concurrency - this.#running - 1;
	};
}

/** The queues of all clients, in the order of their virtual times. */
class Turns {
	readonly #queues = new Map<string, Queue>();
	/** Those that have jobs, and some whose jobs were all taken out. */
	#order = new TinyQueue<Queue>([], earlier);
	/** The virtual time: that of the last job that was begun. */
	#now = 0;
	#seq = 0;
	waiting = 0;

	add(job: Job): void {
		const { client, rank = 0 } = job.options;
		const queue = this.#queues.get(client) ?? this.#open(client);
		queue.jobs.splice(placeFor(queue.jobs, rank), 0, job);
		queue.waiting += 1;
		this.waiting += 1;
		if (queue.isOrdered) return;
		// A client that was idle has saved up nothing.
		queue.tag = Math.max(queue.tag, this.#now);
		this.#push(queue);
	}

	/** Takes out the next job of those clients that may run one. */
	next(mayRun: (client: string) => boolean): Job | null {
		const passed: Queue[] = [];
		let job: Job | undefined;
		for (let queue = this.#order.pop(); queue !== undefined; queue = this.#order.pop()) {
			queue.isOrdered = false;
			if (queue.waiting === 0) continue;
			while (queue.jobs[0]?.isWaiting === false) queue.jobs.shift();
			if (!mayRun(queue.client)) {
				passed.push(queue);
				continue;
			}
			job = queue.jobs.shift();
			if (job !== undefined) this.#leave(queue, job);
			this.#now = Math.max(this.#now, queue.tag);
			queue.tag += job?.options.cost ?? 0;
			if (queue.waiting > 0) this.#push(queue);
			break;
		}
		for (const queue of passed) this.#push(queue);
		return job ?? null;
	}

	/** Its entry stays until it is passed over, so that the last of many is taken out as quickly as the first. */
	remove(job: Job): boolean {
		const queue = this.#queues.get(job.options.client);
		if (queue === undefined || !job.isWaiting) return false;
		this.#leave(queue, job);
		if (queue.jobs.length > 2 * queue.waiting + 16)
			queue.jobs = queue.jobs.filter(({ isWaiting }) => isWaiting);
		return true;
	}

	removeLastOfFullest(): Job | undefined {
		let fullest: Queue | null = null;
		for (const queue of this.#queues.values()) {
			if (fullest === null || queue.waiting > fullest.waiting) fullest = queue;
		}
		const job = fullest?.jobs.findLast(({ isWaiting }) => isWaiting);
		if (job !== undefined) this.remove(job);
		return job;
	}

	#leave(queue: Queue, job: Job): void {
		job.isWaiting = false;
		queue.waiting -= 1;
		this.waiting -= 1;
	}

	/** Nothing waits and nothing runs: what clients have used is forgotten. */
	clear(): void {
		this.#queues.clear();
		this.#order = new TinyQueue<Queue>([], earlier);
		this.#now = 0;
	}

	#open(client: string): Queue {
		if (this.#queues.size >= MAX_IDLE) {
			for (const [key, { waiting, isOrdered }] of this.#queues) {
				if (waiting === 0 && !isOrdered) this.#queues.delete(key);
			}
		}
		const queue: Queue = { client, jobs: [], waiting: 0, tag: this.#now, seq: 0, isOrdered: false };
		this.#queues.set(client, queue);
		return queue;
	}

	#push(queue: Queue): void {
		this.#seq += 1;
		queue.seq = this.#seq;
		queue.isOrdered = true;
		this.#order.push(queue);
	}
}

/** Behind the last one of `jobs`, which stand by rank, that has this rank or a lower one. */
function placeFor(jobs: readonly Job[], rank: number): number {
	let [low, high] = [0, jobs.length];
	while (low < high) {
		const middle = (low + high) >>> 1;
		if ((jobs[middle]?.options.rank ?? 0) <= rank) low = middle + 1;
		else high = middle;
	}
	return low;
}

function earlier(a: Queue, b: Queue): number {
	return a.tag - b.tag || a.seq - b.seq;
}

/** Work of one turn of the event loop, in ms; what is left waits for the next one. */
const TURN_MS = 10;

/** A piece of work that may still wait. */
export interface Piece {
	/** Runs it now if it is still waiting. */
	readonly hurry: () => void;
	/** It is of no use any more: it is not done, where it waits. */
	readonly drop: () => void;
}

const NOTHING = (): void => {};
const DONE: Piece = { hurry: NOTHING, drop: NOTHING };

/** Runs pieces of work; those of one client in the order in which they come. */
export class EventLoopTurns {
	readonly #clock: Pick<Clock, "monotonic">;
	readonly #waiting: FairScheduler;
	/** When the first piece of this turn began; null: nothing was run in it. */
	#began: number | null = null;

	constructor(dependencies: { readonly clock: Pick<Clock, "monotonic"> }) {
		this.#clock = dependencies.clock;
		this.#waiting = new FairScheduler({
			concurrency: Number.POSITIVE_INFINITY,
			maxWaiting: Number.POSITIVE_INFINITY,
			shouldSend: () => this.#isTimeLeft(),
		});
	}

	/** Runs `work` at once, or in a turn to come where this one has had enough. */
	run(client: string, work: () => void): Piece {
		if (this.#began === null) {
			this.#began = this.#clock.monotonic();
			setImmediate(() => this.#next());
		}
		if (this.#waiting.waiting === 0 && this.#isTimeLeft()) {
			work();
			return DONE;
		}
		const job = this.#waiting.enqueue({ client, cost: 1 }, async () => work());
		if (job === null) return DONE;
		return {
			hurry: () => {
				if (this.#waiting.withdraw(job)) work();
			},
			drop: () => void this.#waiting.withdraw(job),
		};
	}

	#isTimeLeft(): boolean {
		return this.#began !== null && this.#clock.monotonic() - this.#began < TURN_MS;
	}

	#next(): void {
		if (this.#waiting.waiting === 0) {
			this.#began = null;
			return;
		}
		this.#began = this.#clock.monotonic();
		setImmediate(() => this.#next());
		this.#waiting.resume();
	}
}
