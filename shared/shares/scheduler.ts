// Weighted fair queueing: the client with the least usage is served next, however long the queues
// of others are (start-time fair queueing: Goyal, Vin and Cheng, 1996). Also spreads bursts of work
// over turns of the event loop.

import TinyQueue from "tinyqueue";
import { type Clock, SLICE_MS, settled } from "../clock.ts";

/** Rejects a job that was dropped because the queue is full. */
export class OverloadedError extends Error {
	readonly code = "OVERLOADED";
	constructor() {
		super("not run: too much is waiting");
		this.name = "OverloadedError";
	}
}

interface SchedulerOptions {
	/**
	 * Maximum number of running jobs. A client only gets one more if as many slots then stay free
	 * as it uses. So it has at most half of them, and a newcomer finds a free one.
	 */
	readonly concurrency: number;
	/**
	 * Maximum queued jobs. Above it, the lowest priority that has any jobs sheds the last job of
	 * the client with the most.
	 */
	readonly maxWaiting: number;
	/**
	 * Checked before each job; if false, no job starts until {@link FairScheduler.resume} is called.
	 */
	readonly mayStart?: () => boolean;
	/** The same, for jobs in the background. */
	readonly mayStartBackground?: () => boolean;
}

export interface JobOptions {
	/**
	 * The client whose quota the job counts towards: an IPv4 address or a /56 network, from
	 * clientOf in shared/client.ts.
	 */
	readonly client: string;
	/** Above 0, in the same unit for all jobs of a scheduler: calls, gas. */
	readonly cost: number;
	/** Runs before all jobs that are not urgent, also those of other clients. */
	readonly urgent?: boolean;
	/** Runs after all other jobs, also those of other clients, in at most half of the slots. */
	readonly background?: boolean;
	/** Among the jobs of its client, lower runs first; default 0. */
	readonly rank?: number;
}

/** A queued job, for {@link FairScheduler.withdraw}. */
export interface WaitingJob {
	readonly options: JobOptions;
}

/** A job and its result. */
export interface QueuedJob<T> {
	/** As of {@link FairScheduler.run}. */
	readonly result: Promise<T>;
	/**
	 * Rejects the result with `reason` and removes the job from the queue; a running job continues.
	 */
	readonly withdraw: (reason: unknown) => void;
}

interface Job extends WaitingJob {
	readonly start: () => Promise<void>;
	readonly shed: (reason: unknown) => void;
	/** False once it has started, was shed or withdrawn. Its entry in the queue is then skipped. */
	isWaiting: boolean;
}

/** One client's jobs of one priority. */
interface ClientQueue {
	readonly client: string;
	jobs: Job[];
	/** Number of `jobs` that still wait. */
	waiting: number;
	/** The virtual start time of the next job. */
	tag: number;
	/** Order among equal tags. */
	seq: number;
	/** Whether it is in `#order`, the heap. */
	isInOrder: boolean;
}

/**
 * If this many clients are idle when a new one comes, the usage of all of them is forgotten. The
 * others don't count: to search them in vain for each new client would block the event loop.
 */
const MAX_IDLE = 4_096;

export class FairScheduler {
	readonly #options: SchedulerOptions;
	/** Urgent, normal and background jobs. */
	readonly #byPriority = [new ClientQueues(), new ClientQueues(), new ClientQueues()] as const;
	/** Running jobs by client. */
	readonly #runningOf = new Map<string, number>();
	#running = 0;
	#backgroundRunning = 0;

	constructor(options: SchedulerOptions) {
		this.#options = options;
	}

	/** Queued jobs. */
	get waiting(): number {
		const [urgent, normal, background] = this.#byPriority;
		return urgent.waiting + normal.waiting + background.waiting;
	}

	/** Running jobs. */
	get running(): number {
		return this.#running;
	}

	/**
	 * Queues `work` and resolves with its result. Rejects with {@link OverloadedError} if it was
	 * shed, else with the error of `work`.
	 */
	run<T>(options: JobOptions, work: () => Promise<T>): Promise<T> {
		return this.queue(options, work).result;
	}

	/** Like {@link run}, for a job that may be withdrawn. */
	queue<T>(options: JobOptions, work: () => Promise<T>): QueuedJob<T> {
		let withdraw: QueuedJob<T>["withdraw"] = NOTHING;
		const result = new Promise<T>((resolve, reject) => {
			const job: Job = {
				options,
				// Called in an executor, so that an error that `work` throws synchronously rejects
				// the job too.
				start: () => new Promise<T>((settle) => settle(work())).then(resolve, reject),
				shed: reject,
				isWaiting: true,
			};
			withdraw = (reason) => {
				if (this.withdraw(job)) reject(reason);
			};
			this.#enqueue(job);
		});
		return { result, withdraw };
	}

	/** Starts jobs again after `mayStart` or `mayStartBackground` was false. */
	resume(): void {
		this.#startNext();
	}

	/**
	 * Like {@link run} but without a result, for work that never rejects. Uses less memory, for
	 * long queues. Shedding is not reported. Returns the queued job for {@link withdraw}, or null
	 * if it has started.
	 */
	enqueue(options: JobOptions, work: () => Promise<void>): WaitingJob | null {
		const job: Job = { options, start: work, shed: NOTHING, isWaiting: true };
		this.#enqueue(job);
		return job.isWaiting ? job : null;
	}

	/** Removes a job from the queue; false if it is not queued any more. */
	withdraw(job: WaitingJob): boolean {
		return this.#queuesOf(job.options).remove(job as Job);
	}

	#enqueue(job: Job): void {
		this.#queuesOf(job.options).add(job);
		this.#startNext();
		if (this.waiting > this.#options.maxWaiting) this.#shedOne();
	}

	#shedOne(): void {
		const lowest = this.#byPriority.findLast(({ waiting }) => waiting > 0);
		lowest?.removeLastOfFullest()?.shed(new OverloadedError());
	}

	#startNext(): void {
		const { concurrency, mayStart, mayStartBackground } = this.#options;
		while (this.#running < concurrency && mayStart?.() !== false) {
			const [urgent, normal, background] = this.#byPriority;
			const hasSlot = background.waiting > 0 && this.#backgroundRunning < Math.max(1, concurrency / 2);
			const job =
				urgent.next(this.#mayRun) ??
				normal.next(this.#mayRun) ??
				(hasSlot && mayStartBackground?.() !== false ? background.next(this.#mayRun) : null);
			if (job === null) return;
			const { client } = job.options;
			this.#running += 1;
			if (job.options.background === true) this.#backgroundRunning += 1;
			this.#runningOf.set(client, (this.#runningOf.get(client) ?? 0) + 1);
			void job.start().then(() => this.#ended(job.options));
		}
	}

	#ended({ client, background }: JobOptions): void {
		this.#running -= 1;
		if (background === true) this.#backgroundRunning -= 1;
		const left = (this.#runningOf.get(client) ?? 1) - 1;
		if (left === 0) this.#runningOf.delete(client);
		else this.#runningOf.set(client, left);
		this.#startNext();
		if (this.#running > 0 || this.waiting > 0) return;
		for (const queues of this.#byPriority) queues.clear();
	}

	#queuesOf({ urgent, background }: JobOptions): ClientQueues {
		return this.#byPriority[urgent === true ? 0 : background === true ? 2 : 1];
	}

	/** A client may start a job if as many slots then stay free as it uses. */
	readonly #mayRun = (client: string): boolean => {
		const own = this.#runningOf.get(client) ?? 0;
		return own === 0 || own + 1 <= this.#options.concurrency - this.#running - 1;
	};
}

/** The queues of all clients for one priority, ordered by virtual time. */
class ClientQueues {
	readonly #byClient = new Map<string, ClientQueue>();
	/** A heap of the queues with jobs, and some whose jobs were all withdrawn. */
	#order = new TinyQueue<ClientQueue>([], earlier);
	/** The virtual time: the tag of the last started job. */
	#now = 0;
	#seq = 0;
	waiting = 0;

	add(job: Job): void {
		const { client, rank = 0 } = job.options;
		const queue = this.#byClient.get(client) ?? this.#open(client);
		queue.jobs.splice(indexFor(queue.jobs, rank), 0, job);
		queue.waiting += 1;
		this.waiting += 1;
		if (queue.isInOrder) return;
		// An idle client accumulates no credit.
		queue.tag = Math.max(queue.tag, this.#now);
		this.#push(queue);
	}

	/** Removes and returns the next job of a client that may run one. */
	next(mayRun: (client: string) => boolean): Job | null {
		const skipped: ClientQueue[] = [];
		let job: Job | undefined;
		for (let queue = this.#order.pop(); queue !== undefined; queue = this.#order.pop()) {
			queue.isInOrder = false;
			if (queue.waiting === 0) continue;
			while (queue.jobs[0]?.isWaiting === false) queue.jobs.shift();
			if (!mayRun(queue.client)) {
				skipped.push(queue);
				continue;
			}
			job = queue.jobs.shift();
			if (job !== undefined) this.#leave(queue, job);
			this.#now = Math.max(this.#now, queue.tag);
			queue.tag += job?.options.cost ?? 0;
			if (queue.waiting > 0) this.#push(queue);
			break;
		}
		for (const queue of skipped) this.#push(queue);
		return job ?? null;
	}

	/** Only marks the entry, which is skipped later, so that removal is quick at any position. */
	remove(job: Job): boolean {
		const queue = this.#byClient.get(job.options.client);
		if (queue === undefined || !job.isWaiting) return false;
		this.#leave(queue, job);
		if (queue.jobs.length > 2 * queue.waiting + 16)
			queue.jobs = queue.jobs.filter(({ isWaiting }) => isWaiting);
		return true;
	}

	removeLastOfFullest(): Job | undefined {
		let fullest: ClientQueue | null = null;
		for (const queue of this.#byClient.values()) {
			if (fullest === null || queue.waiting > fullest.waiting) fullest = queue;
		}
		const job = fullest?.jobs.findLast(({ isWaiting }) => isWaiting);
		if (job !== undefined) this.remove(job);
		return job;
	}

	#leave(queue: ClientQueue, job: Job): void {
		job.isWaiting = false;
		queue.waiting -= 1;
		this.waiting -= 1;
	}

	/** Forgets the usage of clients when nothing waits or runs. */
	clear(): void {
		this.#byClient.clear();
		this.#order = new TinyQueue<ClientQueue>([], earlier);
		this.#now = 0;
	}

	#open(client: string): ClientQueue {
		if (this.#byClient.size - this.#order.length >= MAX_IDLE) {
			for (const [key, { isInOrder }] of this.#byClient) if (!isInOrder) this.#byClient.delete(key);
		}
		const queue: ClientQueue = { client, jobs: [], waiting: 0, tag: this.#now, seq: 0, isInOrder: false };
		this.#byClient.set(client, queue);
		return queue;
	}

	#push(queue: ClientQueue): void {
		this.#seq += 1;
		queue.seq = this.#seq;
		queue.isInOrder = true;
		this.#order.push(queue);
	}
}

/** The index after all jobs of this rank or a lower one; `jobs` are sorted by rank. */
function indexFor(jobs: readonly Job[], rank: number): number {
	let [low, high] = [0, jobs.length];
	while (low < high) {
		const middle = (low + high) >>> 1;
		if ((jobs[middle]?.options.rank ?? 0) <= rank) low = middle + 1;
		else high = middle;
	}
	return low;
}

function earlier(a: ClientQueue, b: ClientQueue): number {
	return a.tag - b.tag || a.seq - b.seq;
}

/** Work that may still be queued. */
export interface QueuedWork {
	/** Removes it from the queue. */
	readonly drop: () => void;
}

const NOTHING = (): void => {};
const DONE: QueuedWork = { drop: NOTHING };

/**
 * Limits the work in one turn of the event loop. The rest waits for the next turn. Work of one
 * client runs in order.
 */
export class EventLoopQueue {
	readonly #clock: Pick<Clock, "monotonic">;
	readonly #scheduler: FairScheduler;
	/** When the first work of this turn began; null if none was run. */
	#began: number | null = null;

	constructor(dependencies: { readonly clock: Pick<Clock, "monotonic"> }) {
		this.#clock = dependencies.clock;
		this.#scheduler = new FairScheduler({
			concurrency: 1,
			maxWaiting: Number.POSITIVE_INFINITY,
			mayStart: () => this.#isTimeLeft(),
		});
	}

	/** Runs `work` at once, or in a later turn if this one is used up. */
	run(client: string, work: () => void): QueuedWork {
		if (this.#began === null) {
			this.#began = this.#clock.monotonic();
			// The first immediate mostly runs in this turn, whose time this work may use up.
			setImmediate(() => setImmediate(() => this.#next()));
		}
		if (this.#scheduler.waiting === 0 && this.#isTimeLeft()) {
			work();
			return DONE;
		}
		const scheduler = this.#scheduler;
		const job = scheduler.enqueue({ client, cost: 1 }, () => {
			work();
			// The time of this turn includes all that follows from it at once.
			return settled();
		});
		if (job === null) return DONE;
		return {
			drop() {
				scheduler.withdraw(job);
			},
		};
	}

	/** As {@link run}; resolves with what `work` returns, and rejects with what it throws. */
	result<T>(client: string, work: () => T): Promise<T> {
		return new Promise<T>((resolve, reject) => {
			this.run(client, () => {
				try {
					resolve(work());
				} catch (thrown) {
					reject(thrown);
				}
			});
		});
	}

	#isTimeLeft(): boolean {
		return this.#began !== null && this.#clock.monotonic() - this.#began < SLICE_MS;
	}

	#next(): void {
		if (this.#scheduler.waiting === 0) {
			this.#began = null;
			return;
		}
		this.#began = this.#clock.monotonic();
		setImmediate(() => this.#next());
		this.#scheduler.resume();
	}
}
