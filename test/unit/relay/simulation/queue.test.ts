// Tests whose simulation is next, and what is not run and how that is reported, on simulations and
// a clock under the test's control.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SimulationOutcome, SimulationPriority } from "../../../../relay/domain/simulation.ts";
import { SimulationQueue, type SimulationQueueOptions } from "../../../../relay/simulation/queue.ts";
import {
	BLOCK,
	FakeClock,
	fakeRequest,
	fakeTransaction,
	HeldSimulator,
	PASSED,
} from "../../../support/simulationFakes.ts";

interface Asked {
	readonly client?: string;
	readonly number?: number;
	readonly gas?: bigint;
	readonly signal?: AbortSignal;
}

function setUp(options: SimulationQueueOptions = {}) {
	const clock = new FakeClock();
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
	/**
	 * Asks under a name; what it is answered appears in `answers`. All are one client's unless it is
	 * said.
	 */
	const ask = (name: string, priority: SimulationPriority, asked: Asked = {}): Promise<void> => {
		const { client = "a", number = BLOCK.number, gas = 100_000n, signal } = asked;
		const request = fakeRequest({
			...{ client, priority, block: { ...BLOCK, number } },
			...(signal === undefined ? {} : { signal }),
			transactions: [fakeTransaction({ hash: name, gasLimit: gas })],
		});
		return queue.simulate(request).then(
			([outcome]) => {
				answers.push(`${name}: ${outcome?.ok ? "ok" : outcome?.error.message}`);
			},
			(thrown: unknown) => {
				answers.push(`${name}: threw ${thrown instanceof Error ? thrown.message : thrown}`);
			},
		);
	};
	const begun = () => simulator.running.map(({ request }) => request.transactions[0]?.hash);
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
	it("of one client is by priority, and among equals that in which they came", async () => {
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

	it("is fair between clients: 700 expensive bids of one do not delay another's", async () => {
		const { ask, begun, end } = setUp({ concurrency: 16 });
		for (let i = 0; i < 700; i++) void ask(`costly ${i}`, "bid", { client: "attacker", gas: 16_000_000n });
		assert.equal(begun().length, 8);
		void ask("honest", "bid", { client: "honest", gas: 200_000n });
		assert.equal(begun().at(-1), "honest");
		await end(8);
		void ask("again", "held", { client: "honest" });
		assert.equal(begun().at(-1), "again");
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
});

it("does not run what was withdrawn while it waited, or before", async () => {
	const { ask, answers, begun, counts, end } = setUp();
	const abort = new AbortController();
	void ask("running", "bid", { signal: abort.signal });
	void ask("replaced", "bid", { signal: abort.signal });
	void ask("stays", "bid");
	abort.abort();
	void ask("late", "bid", { signal: abort.signal });
	await end(0);
	assert.deepEqual(begun(), ["running", "stays"]);
	const withdrawn = "not simulated: it was withdrawn";
	assert.deepEqual(answers.sort(), [`late: ${withdrawn}`, `replaced: ${withdrawn}`, "running: ok"]);
	assert.deepEqual(counts, { "bid withdrawn": 2, "bid passed": 1 });
});

describe("a new head", () => {
	const STALE = "not simulated: its block has arrived";

	it("drops what waits for that block or an older one, and lets run what runs", async () => {
		const { ask, answers, begun, counts, end, queue } = setUp();
		void ask("running", "new", { number: 100 });
		void ask("new 100", "new", { number: 100 });
		void ask("held 100", "held", { number: 100 });
		void ask("new 101", "new", { number: 101 });
		queue.setHead(100);
		await settled();
		assert.deepEqual(answers, [`new 100: ${STALE}`, `held 100: ${STALE}`]);
		await end(0);
		await end(1);
		assert.deepEqual(begun(), ["running", "new 101"]);
		assert.deepEqual(counts, { "new stale": 1, "held stale": 1, "new passed": 2 });
	});
});

describe("the time of waiting", () => {
	it("is a slot at least, as long as that is known to be", async () => {
		const slot = { ms: 12_000 };
		const { ask, answers, clock } = setUp({ maxWaitMs: 8_000, slot });
		void ask("running", "new");
		void ask("waiting", "held");
		clock.advance(11_000);
		await settled();
		assert.deepEqual(answers, []);
		slot.ms = 30_000;
		clock.advance(10_000);
		await settled();
		assert.deepEqual(answers, []);
		clock.advance(14_000);
		await settled();
		assert.deepEqual(answers, ["waiting: not simulated: it has waited too long"]);
	});

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
