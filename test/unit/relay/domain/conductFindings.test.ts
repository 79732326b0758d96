// Tests what is found about a builder: the statistics of canaries by seeded simulations, and the
// other findings as a table.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Conduct, noConduct } from "../../../../relay/domain/conduct.ts";
import { atLeast, CANARY_NOISE, findingsOf } from "../../../../relay/domain/conductFindings.ts";
import { SeededRandom } from "../../../support/seededRandom.ts";

/** The canaries within which a builder that leaks one in ten must be named. */
const CANARIES = 60;
const RUNS = 20_000;

const conduct = (counts: Partial<Conduct>): Conduct => ({ ...noConduct(1, "a"), ...counts });

/** The part of builders that are named at any time within 60 canaries, each leaked with `rate`. */
function namedAt(rate: number, seed: number): number {
	const random = new SeededRandom(seed);
	let named = 0;
	for (let run = 0; run < RUNS; run++) {
		let leakedCanaries = 0;
		for (let canaries = 1; canaries <= CANARIES; canaries++) {
			if (random.below(1e6) >= rate * 1e6) continue;
			leakedCanaries += 1;
			// Between two sightings a finding can only end.
			if (findingsOf(conduct({ canaries, leakedCanaries })).length === 0) continue;
			named += 1;
			break;
		}
	}
	return named / RUNS;
}

test("a builder that leaks one in ten is named within 60 canaries, in 98 of 100 runs", () => {
	const named = namedAt(0.1, 1);
	assert.ok(named > 0.98, `${named}`);
});

test("less than one honest run in 1,000 ends with an accusation, even with five times the noise", () => {
	const usual = namedAt(CANARY_NOISE, 2);
	const noisy = namedAt(5 * CANARY_NOISE, 3);
	assert.ok(usual < 1e-4 && noisy < 1e-3, `${usual}, ${noisy}`);
});

test("one sighting accuses nobody, and with many canaries more are needed", () => {
	const least = (canaries: number) =>
		[1, 2, 3, 4, 5].find((leakedCanaries) => findingsOf(conduct({ canaries, leakedCanaries })).length > 0);
	assert.deepEqual([2, 60, 200, 720].map(least), [2, 2, 2, 3]);
});

test("the binomial tail is exact", () => {
	for (const [k, n, p, expected] of [
		[0, 5, 0.3, 1],
		[5, 5, 0.5, 1 / 32],
		[2, 3, 0.5, 0.5],
		[1, 60, 0.1, 1 - 0.9 ** 60],
	] as const)
		assert.ok(Math.abs(atLeast(k, n, p) - expected) < 1e-12, `${k} of ${n}`);
});

const FOUND: readonly (readonly [Partial<Conduct>, string])[] = [
	[{}, ""],
	[{ backrun: 0, noBackrun: 9 }, ""],
	[{ backrun: 0, noBackrun: 10 }, "strips"],
	[{ backrun: 4, noBackrun: 3, otherBackrun: 3 }, "strips"],
	[{ backrun: 5, noBackrun: 3, otherBackrun: 2 }, ""],
	[{ owed: 10n, paid: 9n, shortRefunds: 1 }, ""],
	[{ owed: 10n, paid: 9n, shortRefunds: 2 }, "underpays"],
	[{ minedAfterCancel: 1 }, ""],
	[{ minedAfterCancel: 2 }, "ignoresCancels"],
	[{ seenAlone: 50 }, ""],
];

test("each finding needs its facts", () => {
	for (const [counts, expected] of FOUND) assert.equal(findingsOf(conduct(counts)).join(), expected);
});
