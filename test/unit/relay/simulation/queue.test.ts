// Requests of all priorities come in, while the simulations end when the test says so; the order, the answers and the
// counts are checked. No time passes but by hand.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SimulationOutcome, SimulationPriority } from "../../../../relay/domain/simulation.ts";
import { SimulationQueue, type SimulationQueueOptions } from "../../../../relay/simulation/queue.ts";
import { BLOCK, fakeRequest, HandClock, HeldSimulator, PASSED } from "../../../support/simulationFakes.ts";

const REVERTED: SimulationOutcome = {
	ok: false,
	error: { code: "EXECUTION_REVERTED", message: "execution reverted" },
};
const DOWN: SimulationOutcome = {
	ok: false,
	error: { code: "NODE_UNAVAILABLE", message: "the node gave no verdict" },
};

function setUp(options: SimulationQueueOptions = {}) {
	const clock = new HandClock();
	const simulator = new HeldSimulator();
	const counts: Record<string, number> = {};
	const seconds: string[] = [];
	const metrics = {
		jobs: ({ priority, outcome }: Record<"priority" | "outcome", string>) => {
			const key = `${priority} ${outcome}`;
			counts[key] = (counts[key] ?? 0) + 1;
		},
		waited: ({ priority }: { priority: string }, s: number) => seconds.push(`${priority} waited ${s}`),
		ran: ({ priority }: { priority: string }, s: number) => seconds.push(`${priority} ran ${s}`),
	};
	const queue = new SimulationQueue({ concurrency: 1, ...options }, { simulator, clock, metrics });
	const answers: string[] = [];
	/** Asks under a name; what it is answered appears in `answers`. */
	const ask = (name: string, priority: SimulationPriority, number = BLOCK.number): Promise<void> =>
		queue.simulate(fakeRequest({ sender: name, block: { ...BLOCK, number } }), priority).then(
			([outcome]) => {
				answers.push(`${name}: ${outcome?.ok ? "ok" : outcome?.error.message}`);
			},
			(thrown: unknown) => {
				answers.push(`${name}: threw ${thrown instanceof Error ? thrown.message : thrown}`);
			},
		);
	const begun = () => simulator.running.map(({ request }) => request.sender);
	/** Ends the i-th simulation that was begun, and lets what follows of it happen. */
	const end = async (i: number, ...outcomes: SimulationOutcome[]) => {
		simulator.running[i]?.end(outcomes.length === 0 ? [PASSED] : outcomes);
		await settled();
	};
	return { clock, simulator, queue, counts, seconds, answers, ask, begun, end };
}

/** All promises that can go on have done so. */
function settled(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

describe("the order", () => {
	it("is by priority, and among equals the order in which they came", async () => {
		const { ask, begun, end, queue } = setUp();
		void ask("first", "held");
		void ask("held 1", "held");
		void ask("bid 1", "bid");
		void ask("again 1", "again");
		void ask("new 1", "new");
		void ask("again 2", "again");
		void ask("bid 2", "bid");
		void ask("new 2", "new");
		void ask("held 2", "held");
		assert.equal(queue.waiting, 8);
		for (let i = 0; i < 9; i++) await end(i);
		const order = ["first", "new 1", "new 2", "again 1", "again 2", "bid 1", "bid 2", "held 1", "held 2"];
		assert.deepEqual(begun(), order);
		assert.equal(queue.waiting + queue.running, 0);
	});

	it("lets so many run at once and no more", async () => {
		const { ask, begun, end, queue } = setUp({ concurrency: 3 });
		for (let i = 0; i < 5; i++) void ask(`${i}`, "new");
		assert.deepEqual(begun(), ["0", "1", "2"]);
		assert.deepEqual([queue.running, queue.waiting], [3, 2]);
		await end(1);
		assert.deepEqual(begun(), ["0", "1", "2", "3"]);
		assert.deepEqual([queue.running, queue.waiting], [3, 1]);
	});
});

describe("a full queue", () => {
	const FULL = "not simulated: too many simulations wait";

	it("answers the newest of the lowest priority that it won't be simulated", async () => {
		const { ask, answers, counts, queue } = setUp({ capacity: 3 });
		void ask("running", "new");
		void ask("held 1", "held");
		void ask("held 2", "held");
		void ask("again 1", "again");
		void ask("new 1", "new");
		await settled();
		assert.deepEqual(answers, [`held 2: ${FULL}`]);
		void ask("new 2", "new");
		void ask("new 3", "new");
		await settled();
		assert.deepEqual(answers, [`held 2: ${FULL}`, `held 1: ${FULL}`, `again 1: ${FULL}`]);
		assert.equal(queue.waiting, 3);
		assert.deepEqual(counts, { "held overloaded": 2, "again overloaded": 1 });
	});

	it("refuses a newcomer that matters least, or no more than the others", async () => {
		const { ask, answers } = setUp({ capacity: 2 });
		void ask("running", "new");
		void ask("new 1", "new");
		void ask("new 2", "new");
		void ask("held", "held");
		void ask("new 3", "new");
		await settled();
		assert.deepEqual(answers, [`held: ${FULL}`, `new 3: ${FULL}`]);
	});

	it("says it as NODE_UNAVAILABLE, so that it is tried again", async () => {
		const { queue } = setUp({ capacity: 0 });
		void queue.simulate(fakeRequest(), "new");
		const outcomes = await queue.simulate(fakeRequest(), "new");
		assert.deepEqual(outcomes, [{ ok: false, error: { code: "NODE_UNAVAILABLE", message: FULL } }]);
	});
});

describe("a new head", () => {
	const STALE = "not simulated: its block has come";

	it("drops what waits for that block or an older one, and lets run what runs", async () => {
		const { ask, answers, begun, counts, end, queue } = setUp();
		void ask("running", "new", 100);
		void ask("new 100", "new", 100);
		void ask("held 100", "held", 100);
		void ask("new 101", "new", 101);
		queue.setHead(100);
		await settled();
		assert.deepEqual(answers, [`new 100: ${STALE}`, `held 100: ${STALE}`]);
		await end(0);
		await end(1);
		assert.deepEqual(begun(), ["running", "new 101"]);
		assert.deepEqual(counts, { "new stale": 1, "held stale": 1, "new passed": 2 });
	});

	it("refuses what comes too late, until the head goes back", async () => {
		const { ask, answers, begun, queue } = setUp();
		queue.setHead(100);
		await ask("late", "new", 100);
		assert.deepEqual(answers, [`late: ${STALE}`]);
		queue.setHead(99);
		void ask("in time", "new", 100);
		assert.deepEqual(begun(), ["in time"]);
	});
});

describe("the time of waiting", () => {
	it("is limited, also where no head comes and nothing ends", async () => {
		const { ask, answers, clock, counts, queue } = setUp({ maxWaitMs: 8_000 });
		void ask("running", "new");
		void ask("early", "held");
		clock.advance(5_000);
		void ask("later", "new");
		clock.advance(2_999);
		await settled();
		assert.deepEqual(answers, []);
		clock.advance(1_000);
		await settled();
		assert.deepEqual(answers, ["early: not simulated: it has waited too long"]);
		clock.advance(60_000);
		await settled();
		assert.equal(queue.waiting, 0);
		assert.equal(clock.pending, 0, "no timer is left when nothing waits");
		assert.deepEqual(counts, { "held late": 1, "new late": 1 });
		void ask("after", "new");
		clock.advance(9_000);
		await settled();
		assert.equal(answers.length, 3);
	});
});

describe("a stop", () => {
	it("answers what waits, joins what runs, and takes no more", async () => {
		const { ask, answers, clock, end, queue } = setUp();
		void ask("running", "new");
		void ask("waiting", "new");
		let stopped = false;
		const stopping = queue.stop().then(() => {
			stopped = true;
		});
		await settled();
		assert.deepEqual([answers, stopped], [["waiting: not simulated: the relay is stopping"], false]);
		await end(0);
		await stopping;
		await ask("late", "new");
		assert.deepEqual(answers.slice(1), ["running: ok", "late: not simulated: the relay is stopping"]);
		assert.equal(clock.pending, 0);
	});
});

describe("what is counted", () => {
	it("tells passed, failed and unavailable apart", async () => {
		const { ask, counts, end } = setUp();
		void ask("a", "new");
		void ask("b", "again");
		void ask("c", "held");
		void ask("d", "held");
		await end(0, PASSED, PASSED);
		await end(1, PASSED, REVERTED);
		await end(2, DOWN);
		await end(3, PASSED, DOWN);
		assert.deepEqual(counts, { "new passed": 1, "again failed": 1, "held unavailable": 2 });
	});

	it("has the seconds of waiting and of running", async () => {
		const { ask, clock, end, seconds } = setUp();
		void ask("a", "new");
		void ask("b", "held");
		clock.advance(250);
		await end(0);
		clock.advance(500);
		await end(1);
		assert.deepEqual(seconds, ["new waited 0", "new ran 0.25", "held waited 0.25", "held ran 0.5"]);
	});
});

it("hands a defect to who asked, and goes on", async () => {
	const { ask, answers, end, simulator } = setUp();
	void ask("a", "new");
	void ask("b", "new");
	simulator.running[0]?.fail(new Error("a defect"));
	await settled();
	await end(1);
	assert.deepEqual(answers, ["a: threw a defect", "b: ok"]);
});
