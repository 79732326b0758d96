// How long a slot is, learnt from heads on a clock that the test moves: chains of all lengths, with
// missed slots, pauses, bursts and reorganisations, changes while it runs, and the timestamp of the
// next block.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { type SlotHead, Slots } from "../../../../shared/ethereum/slots.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { SeededRandom } from "../../../support/seededRandom.ts";

/** How timestamps follow from the true time, in seconds. */
const KINDS = {
	/** Whole seconds of the true time: they repeat where slots are short. */
	floor: (timeMs: number) => Math.floor(timeMs / 1_000),
	/** The same, but later than the parent's, as Ethereum demands. */
	rising: (timeMs: number, parent: number) => Math.max(parent + 1, Math.floor(timeMs / 1_000)),
} as const;
type Kind = keyof typeof KINDS;

/** Numbers from 0 to 1. */
function seededRandom(seed: number): () => number {
	const random = new SeededRandom(seed);
	return () => random.below(1_000_000) / 1_000_000;
}

const START_MS = 1_790_000_000_300;

let clock: ManualClock;
let slots: Slots;
let told: number[];
let head: SlotHead;
/** The true time of the head, in ms. */
let timeMs: number;
beforeEach(() => {
	clock = new ManualClock();
	told = [];
	slots = new Slots({ setMs: undefined }, { clock, onLearnt: (ms) => told.push(ms) });
	timeMs = START_MS;
	head = { number: 1_000, timestamp: Math.floor(timeMs / 1_000) };
});

/** The next block, `ms` later. */
function grow(ms: number, kind: Kind = "floor"): SlotHead {
	timeMs += ms;
	head = { number: head.number + 1, timestamp: KINDS[kind](timeMs, head.timestamp) };
	return head;
}

/** `count` blocks, one a slot, each arriving `late()` ms after its time. */
async function follow(count: number, ms: number, kind: Kind = "floor", late = () => 0): Promise<void> {
	for (let i = 0; i < count; i += 1) {
		const before = clock.monotonic();
		await clock.advance(Math.max(0, ms + late() - (clock.monotonic() - before)));
		slots.came([grow(ms, kind)]);
	}
}

/** The chain as a relay finds it at its start: the head, and the 31 blocks before it. */
function find(ms: number, kind: Kind = "floor", next = () => ms): void {
	const all = Array.from({ length: 32 }, () => grow(next(), kind));
	const last = all.at(-1) as SlotHead;
	assert.deepEqual(
		slots.missingBefore(last),
		all.slice(0, -1).map(({ number }) => number),
	);
	slots.came(all);
}

const near = (ms: number, expected: number, part = 0.05) =>
	assert.ok(Math.abs(ms - expected) <= part * expected, `${ms}, expected ${expected}`);

const LENGTHS = [250, 400, 450, 500, 750, 1_000, 1_200, 1_500, 2_000, 2_500, 3_000, 5_000, 12_000, 30_000];
/** Those that timestamps show exactly. */
const WHOLE = LENGTHS.filter((ms) => ms >= 2_000 && ms % 1_000 === 0);

describe("a slot's length", () => {
	for (const ms of LENGTHS) {
		test(`${ms} ms is known from the blocks before the first head`, () => {
			assert.equal(slots.ms, 12_000, "before any head");
			find(ms);
			if (WHOLE.includes(ms)) assert.equal(slots.ms, ms);
			else near(slots.ms, ms, 0.1);
			assert.equal(told.length, 1);
		});

		test(`${ms} ms is known from 32 heads that arrive, and stays`, async () => {
			const random = seededRandom(ms);
			const late = () => (random() - 0.5) * 0.4 * ms;
			await follow(31, ms, "floor", late);
			assert.equal(slots.ms, 12_000, "before 32 heads");
			await follow(1, ms, "floor", late);
			near(slots.ms, ms);
			const first = slots.ms;
			for (let i = 0; i < 300; i += 1) {
				await follow(1, ms, "floor", late);
				near(slots.ms, ms);
			}
			if (WHOLE.includes(ms)) assert.deepEqual([first, told.length], [ms, 1]);
		});
	}

	test("450 ms where each timestamp must be later than the parent's is known by when they arrive", async () => {
		find(450, "rising");
		assert.equal(slots.ms, 1_000, "timestamps alone say a second at most");
		await follow(64, 450, "rising");
		near(slots.ms, 450);
	});

	test("450 ms is known by polling each second, too", async () => {
		find(450);
		for (let i = 0; i < 100; i += 1) {
			await clock.advance(1_000);
			const heads: SlotHead[] = [];
			while (timeMs + 450 <= START_MS + 32 * 450 + clock.monotonic()) heads.push(grow(450));
			slots.came(heads);
			near(slots.ms, 450, 0.1);
		}
	});

	test("of fewer than 32 blocks it is Ethereum's", () => {
		const all = Array.from({ length: 31 }, () => grow(2_000));
		slots.came(all);
		assert.equal(slots.ms, 12_000);
	});

	test("that is set is not learnt", async () => {
		slots = new Slots({ setMs: 450 }, { clock, onLearnt: (ms) => told.push(ms) });
		assert.deepEqual(slots.missingBefore(head), []);
		await follow(100, 2_000);
		assert.deepEqual([slots.ms, told], [450, []]);
	});

	for (const [ms, part] of [
		[12_000, 0.01],
		[12_000, 0.2],
		[12_000, 0.4],
		[2_000, 0.3],
		[450, 0.2],
	] as const) {
		test(`${ms} ms with ${part * 100} % of the slots missed`, async () => {
			const random = seededRandom(ms + part * 100);
			const gap = () => {
				let slotsPassed = 1;
				while (random() < part) slotsPassed += 1;
				return slotsPassed * ms;
			};
			find(ms, "floor", gap);
			if (ms >= 2_000) assert.equal(slots.ms, ms);
			for (let i = 0; i < 300; i += 1) {
				await follow(1, gap());
				if (i >= 64 || ms >= 2_000) near(slots.ms, ms, 0.1);
			}
		});
	}

	test("of a new chain: its first block is as old as its genesis file", async () => {
		head = { number: 0, timestamp: 0 };
		await follow(40, 2_000);
		assert.equal(slots.ms, 2_000);
	});
});

describe("a change of the length", () => {
	for (const [from, to, kind] of [
		[12_000, 2_000, "floor"],
		[2_000, 12_000, "floor"],
		[12_000, 450, "floor"],
		[450, 12_000, "floor"],
		[2_000, 450, "floor"],
		[450, 2_000, "floor"],
		[12_000, 8_000, "floor"],
		[12_000, 10_000, "floor"],
		[8_000, 12_000, "floor"],
		[6_000, 12_000, "floor"],
		[12_000, 6_000, "floor"],
		[12_000, 30_000, "floor"],
		[1_000, 450, "floor"],
		[450, 1_000, "floor"],
		[12_000, 450, "rising"],
		[450, 12_000, "rising"],
		[30_000, 250, "floor"],
	] as const) {
		test(`from ${from} to ${to} ms, ${kind}, is followed within 64 blocks`, async () => {
			find(from, kind);
			await follow(70, from, kind);
			near(slots.ms, from);
			await follow(64, to, kind);
			near(slots.ms, to);
			assert.ok(told.length <= 3, `${told}`);
		});
	}

	test("is followed where blocks come faster than they are dated, many at a time", () => {
		find(12_000);
		for (let i = 0; i < 4; i += 1) slots.came(Array.from({ length: 16 }, () => grow(2_000)));
		assert.equal(slots.ms, 2_000);
	});

	test("while the relay saw nothing is known at once", () => {
		find(12_000);
		for (let i = 0; i < 200; i += 1) grow(2_000);
		find(2_000);
		assert.equal(slots.ms, 2_000);
	});
});

describe("nothing else changes it", () => {
	for (const ms of [450, 1_000, 2_000, 12_000]) {
		/** Events on a known chain. */
		const events: Readonly<Record<string, () => Promise<void>>> = {
			"a pause of an hour": async () => {
				await clock.advance(3_600_000);
				timeMs += 3_600_000;
			},
			"three pauses": async () => {
				for (let i = 0; i < 3; i += 1) {
					await follow(5, ms);
					await clock.advance(90_000);
					timeMs += 90_000;
				}
			},
			"31 blocks at once, of one second": async () => slots.came(Array.from({ length: 31 }, () => grow(0))),
			"31 blocks one after another, of one second": async () => {
				for (let i = 0; i < 31; i += 1) slots.came([grow(0)]);
			},
			"64 blocks at once, of one second": async () => slots.came(Array.from({ length: 64 }, () => grow(0))),
			"31 blocks at once, a second each": async () =>
				slots.came(Array.from({ length: 31 }, () => grow(1_000, "rising"))),
			"blocks that the node had missed": async () => {
				await clock.advance(60 * ms);
				slots.came(Array.from({ length: 60 }, () => grow(ms)));
			},
			"blocks that the node had missed, one by one": async () => {
				await clock.advance(60 * ms);
				for (let i = 0; i < 60; i += 1) slots.came([grow(ms)]);
			},
			"reorganisations of three blocks, again and again": async () => {
				for (let i = 0; i < 20; i += 1) {
					await follow(4, ms);
					head = { number: head.number - 3, timestamp: head.timestamp };
					timeMs -= 3 * ms;
					head = { ...head, timestamp: Math.floor(timeMs / 1_000) };
					await clock.advance(ms);
					slots.came([grow(ms), grow(ms), grow(ms), grow(ms)]);
				}
			},
			"a rollback": async () => {
				head = { number: head.number - 20, timestamp: head.timestamp };
			},
		};
		for (const [name, happens] of Object.entries(events)) {
			test(`${ms} ms: ${name}`, async () => {
				find(ms);
				await follow(100, ms);
				near(slots.ms, ms);
				await happens();
				near(slots.ms, ms, 0.1);
				for (let i = 0; i < 100; i += 1) {
					await follow(1, ms);
					near(slots.ms, ms, 0.1);
				}
			});
		}
	}
});

describe("the timestamp of the next block", () => {
	/** How many of the next `count` timestamps are foreseen, of a chain that is known. */
	async function foreseen(count: number, ms: number, kind: Kind, gap = () => ms): Promise<number> {
		let right = 0;
		for (let i = 0; i < count; i += 1) {
			const expected = slots.timestampAfter(head);
			await follow(1, gap(), kind);
			if (expected === head.timestamp) right += 1;
		}
		return right;
	}

	for (const ms of LENGTHS) {
		test(`${ms} ms: where timestamps are the seconds of the true time`, async () => {
			find(ms);
			await follow(100, ms);
			const right = await foreseen(100, ms, "floor");
			assert.ok(right >= (ms % 1_000 === 0 ? 100 : 90), `${right} of 100`);
		});

		test(`${ms} ms: where each must be later than the parent's`, async () => {
			find(ms, "rising");
			await follow(100, ms, "rising");
			const right = await foreseen(100, ms, "rising");
			assert.ok(right >= (ms % 1_000 === 0 || ms < 1_000 ? 100 : 90), `${right} of 100`);
		});
	}

	test("450 ms that are set, from the first head on", async () => {
		slots = new Slots({ setMs: 450 }, { clock });
		assert.equal(slots.timestampAfter(head), head.timestamp + 1, "a later one is taken everywhere");
		await follow(32, 450);
		const right = await foreseen(100, 450, "floor");
		assert.ok(right >= 95, `${right} of 100`);
	});

	test("12 s: of each block behind missed slots it is twelve seconds later", async () => {
		const random = seededRandom(7);
		find(12_000);
		for (let i = 0; i < 100; i += 1) {
			await follow(1, random() < 0.3 ? 24_000 : 12_000);
			assert.equal(slots.timestampAfter(head), head.timestamp + 12);
		}
	});

	test("of a block that is not the head, and of none that is known", () => {
		find(12_000);
		assert.equal(slots.timestampAfter({ number: 3, timestamp: 500 }), 512);
	});
});
