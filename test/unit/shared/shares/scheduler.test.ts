// Fairness between clients: the order and refusal of jobs, and work spread over turns of the event
// loop.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EventLoopQueue, FairScheduler, type JobOptions } from "../../../../shared/shares/scheduler.ts";

/** A scheduler whose jobs are ended by the test. */
class Fixture {
	readonly scheduler: FairScheduler;
	/** Names of jobs in the order of their start. */
	readonly begun: string[] = [];
	readonly refused: string[] = [];
	readonly #ends = new Map<string, () => void>();

	constructor(concurrency: number, maxWaiting = 1000, mayStart = () => true) {
		this.scheduler = new FairScheduler({ concurrency, maxWaiting, mayStart });
	}

	add(name: string, options: Partial<JobOptions> & { client: string }): void {
		const work = () => {
			this.begun.push(name);
			return new Promise<void>((resolve) => this.#ends.set(name, resolve));
		};
		this.scheduler.run({ cost: 1, ...options }, work).catch(() => this.refused.push(name));
	}

	/** Ends a running job. */
	async end(name: string): Promise<void> {
		this.#ends.get(name)?.();
		this.#ends.delete(name);
		await settled();
	}

	/** Ends running jobs until none is left; returns all names in the order of their start. */
	async drain(): Promise<readonly string[]> {
		while (this.#ends.size > 0) for (const name of [...this.#ends.keys()]) await this.end(name);
		return this.begun;
	}
}

function settled(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

interface Queue {
	/** Maximum queued jobs. */
	readonly room?: number;
	/**
	 * The first letter of a name is the client. Added while another client's job uses the only slot.
	 */
	readonly jobs: readonly (readonly [name: string, options?: Partial<JobOptions>])[];
	readonly begun: readonly string[];
	readonly refused?: readonly string[];
}

const QUEUES: Readonly<Record<string, Queue>> = {
	"the client that has used least is next, however many jobs another one has queued": {
		jobs: [["a0"], ["a1"], ["a2"], ["a3"], ["b0"], ["c0"]],
		begun: ["a0", "b0", "c0", "a1", "a2", "a3"],
	},
	"urgent jobs run first, and are fair among themselves": {
		jobs: [["a0"], ["b1", { urgent: true }], ["b2", { urgent: true }], ["c1", { urgent: true }]],
		begun: ["b1", "c1", "b2", "a0"],
	},
	"a job counts by its cost": {
		jobs: [["a0", { cost: 3 }], ["a1"], ["b0"], ["b1"], ["b2"], ["b3"]],
		begun: ["a0", "b0", "b1", "b2", "a1", "b3"],
	},
	"rank orders the jobs of one client": {
		jobs: [
			["a late", { rank: 1 }],
			["a early", { rank: 0 }],
		],
		begun: ["a early", "a late"],
	},
	"if the queue is full, the last job of the client with the most is refused": {
		room: 3,
		jobs: [["a0"], ["a1"], ["a2"], ["b0"]],
		begun: ["a0", "b0", "a1"],
		refused: ["a2"],
	},
	"background jobs are refused first": {
		room: 2,
		jobs: [["a1", { background: true }], ["a2", { background: true }], ["b0"]],
		begun: ["b0", "a1"],
		refused: ["a2"],
	},
};

for (const [what, { room, jobs, begun, refused = [] }] of Object.entries(QUEUES)) {
	test(what, async () => {
		const fixture = new Fixture(1, room);
		fixture.add("running", { client: "x" });
		for (const [name, options] of jobs) fixture.add(name, { client: name.slice(0, 1), ...options });
		await settled();
		assert.deepEqual(fixture.refused, refused);
		assert.deepEqual(await fixture.drain(), ["running", ...begun]);
	});
}

test("an idle client saves up nothing", async () => {
	const fixture = new Fixture(1);
	fixture.add("a0", { client: "a" });
	for (let i = 0; i < 7; i++) fixture.add(`b${i}`, { client: "b" });
	for (const name of ["a0", "b0", "b1", "b2", "b3"]) await fixture.end(name);
	for (let i = 1; i < 4; i++) fixture.add(`a${i}`, { client: "a" });
	assert.deepEqual((await fixture.drain()).slice(6), ["a1", "b5", "a2", "b6", "a3"]);
});

test("a client uses at most as many slots as it leaves free, so a newcomer starts at once", () => {
	const fixture = new Fixture(12);
	for (let i = 0; i < 50; i++) fixture.add(`a${i}`, { client: "a" });
	assert.equal(fixture.scheduler.running, 6);
	for (let i = 0; i < 50; i++) fixture.add(`b${i}`, { client: "b" });
	assert.equal(fixture.scheduler.running, 9);
	fixture.add("c", { client: "c" });
	assert.equal(fixture.begun.at(-1), "c");
});

test("background jobs run after all others, in at most half of the slots", async () => {
	const fixture = new Fixture(4);
	for (const client of ["a", "b", "c", "d"]) fixture.add(`last ${client}`, { client, background: true });
	assert.equal(fixture.scheduler.running, 2);
	for (const client of ["e", "f", "g"]) fixture.add(client, { client });
	assert.deepEqual(fixture.begun, ["last a", "last b", "e", "f"]);
	await fixture.end("last a");
	await fixture.end("e");
	assert.deepEqual(fixture.begun.slice(4), ["g", "last c"]);
	fixture.add("urgent", { client: "h", urgent: true });
	await fixture.end("f");
	assert.deepEqual(fixture.begun.slice(6), ["urgent"]);
	await fixture.drain();
	assert.equal(fixture.begun.at(-1), "last d");
});

test("jobs that may not start yet wait until resumed, in fair order", async () => {
	let open = false;
	const fixture = new Fixture(2, 10, () => open);
	fixture.add("a0", { client: "a" });
	fixture.add("a1", { client: "a" });
	fixture.add("b0", { client: "b" });
	assert.deepEqual(fixture.begun, []);
	open = true;
	fixture.scheduler.resume();
	assert.deepEqual(fixture.begun, ["a0", "b0"]);
	assert.deepEqual(await fixture.drain(), ["a0", "b0", "a1"]);
});

/** Jobs of some clients, each with its cost. */
const crowd = fc.array(
	fc.record({ client: fc.constantFrom("a", "b", "c", "d"), cost: fc.integer({ min: 1, max: 20 }) }),
	{
		minLength: 1,
		maxLength: 120,
	},
);

test("of clients with queued jobs, none gets more than another by over two of the most expensive jobs", async () => {
	await fc.assert(
		fc.asyncProperty(crowd, async (jobs) => {
			const fixture = new Fixture(1);
			fixture.add("first", { client: "x" });
			jobs.forEach(({ client, cost }, i) => {
				fixture.add(`${client} ${cost} ${i}`, { client, cost });
			});
			const order = (await fixture.drain()).slice(1);
			assert.equal(order.length, jobs.length);
			const left = new Map<string, number>();
			for (const { client } of jobs) left.set(client, (left.get(client) ?? 0) + 1);
			const had = new Map<string, number>([...left.keys()].map((client) => [client, 0]));
			for (const name of order) {
				const [client = "", cost = "0"] = name.split(" ");
				had.set(client, (had.get(client) ?? 0) + Number(cost));
				left.set(client, (left.get(client) ?? 0) - 1);
				if ([...left.values()].some((jobsLeft) => jobsLeft === 0)) break;
				const amounts = [...had.values()];
				assert.ok(Math.max(...amounts) - Math.min(...amounts) <= 40, order.join(", "));
			}
		}),
	);
});

/** Work takes as long as the test says, by a clock that stands still otherwise. */
function queueFixture() {
	let ms = 0;
	const done: string[] = [];
	const turns = new EventLoopQueue({ clock: { monotonic: () => ms } });
	const run = (name: string, takesMs: number) =>
		turns.run(name.slice(0, 1), () => {
			done.push(name);
			ms += takesMs;
		});
	return { run, done };
}

test("work beyond one turn of the event loop waits for the next, fairly by client", async () => {
	const { run, done } = queueFixture();
	for (let i = 1; i <= 6; i++) run(`a${i}`, 3);
	run("b1", 3);
	await settled();
	assert.deepEqual(done, ["a1", "a2"], "immediates may run in the turn that they are set in");
	await settled();
	assert.deepEqual(done, ["a1", "a2", "a3", "b1"]);
	await settled();
	await settled();
	assert.deepEqual(done.slice(4), ["a4", "a5", "a6"]);
});

test("what follows from queued work at once uses up its turn too", async () => {
	let ms = 0;
	const done: string[] = [];
	const turns = new EventLoopQueue({ clock: { monotonic: () => ms } });
	const run = (name: string) =>
		turns.run("a", async () => {
			done.push(name);
			await null;
			ms += 6;
		});
	turns.run("a", () => (ms += 6));
	for (const name of ["1", "2", "3"]) run(name);
	for (let before = 0; before < 3; before = done.length) {
		await settled();
		assert.ok(done.length <= before + 1, done.join());
	}
});

test("queued work may be dropped", async () => {
	const { run, done } = queueFixture();
	run("a1", 20);
	run("a2", 1);
	const dropped = run("a3", 1);
	run("a4", 1);
	dropped.drop();
	await settled();
	await settled();
	assert.deepEqual(done, ["a1", "a2", "a4"]);
});

/** The CPU time in ms that it takes to queue a job of each of so many clients, three times. */
function queueingMs(clients: number): number {
	const before = process.cpuUsage();
	for (let round = 0; round < 3; round++) {
		const { scheduler } = new Fixture(1, Number.POSITIVE_INFINITY, () => false);
		for (let i = 0; i < clients; i++) scheduler.enqueue({ client: `c${i}`, cost: 1 }, async () => {});
	}
	const { user, system } = process.cpuUsage(before);
	return (user + system) / 1_000;
}

test("a new client is queued quickly, however many others have waiting jobs", () => {
	queueingMs(4_000);
	const [few, many] = [queueingMs(4_000), queueingMs(16_000)];
	// To search them all for each new one would take a thousand times as long.
	assert.ok(many < 100 * few, `${few} ms for 4,000, ${many} ms for 16,000`);
});
