// The tests of orders of events: all up to a number of unusual ones, and random ones.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { type Choose, type Explored, exploreAll, exploreSome } from "./explore.ts";
import { WAYS, World, type WorldOptions } from "./world.ts";

const SHOWN = 3;
/** Unusual events with which a relay that does not remember is found out. */
const CONTROL = 1;

/** All kinds of worlds. */
function worlds(ways: readonly WorldOptions["way"][]): readonly WorldOptions[] {
	return ways.flatMap((way) =>
		[false, true].flatMap((relayOut) => [false, true].map((takesOver) => ({ way, relayOut, takesOver }))),
	);
}

function placeOf({ way, relayOut, takesOver }: WorldOptions): string {
	return `ended ${way}; ${relayOut ? "the relay out at first, " : ""}${takesOver ? "two boost instances" : "one"}`;
}

const runs = (options: WorldOptions) => (choose: Choose) => new World(options).run(choose);

function assertKept(t: TestContext, { runs, broken }: Explored): void {
	t.diagnostic(`${runs} orders`);
	const shown = broken.slice(0, SHOWN).map(({ fault, events }) => `${fault}: ${events.join("; ")}`);
	assert.deepEqual(shown, [], `${broken.length} of ${runs}`);
}

/** Defines the tests of all orders with at most `deviations` unusual events. */
export function describeOrders(deviations: number): void {
	describe(`nothing is sent that the user has ended, in each order with ${deviations} unusual events`, () => {
		for (const options of worlds(WAYS))
			it(placeOf(options), async (t) => assertKept(t, await exploreAll(deviations, runs(options))));

		for (const way of WAYS) {
			it(`ended ${way}: a relay that does not remember it would send it`, async () => {
				const options = { way, relayOut: false, takesOver: true, isFenced: false };
				const { runs: count, broken } = await exploreAll(Math.min(deviations, CONTROL), runs(options));
				assert.ok(broken.length > 0, `none of ${count}`);
			});
		}
	});
}

/**
 * Defines the tests of `count` random orders in each world, most of them quite unusual. Upstreams
 * go out, too, and in the end nothing that was acknowledged is lost, and each cancel has arrived.
 */
export function describeRandomOrders(count: number): void {
	describe(`answers to users hold, in each of ${count} random orders`, () => {
		for (const options of worlds([...WAYS, "not at all"]))
			it(placeOf(options), async (t) =>
				assertKept(t, await exploreSome(count, runs({ ...options, isThorough: true }))),
			);
	});
}

/** Defines the test of one order, which is given by its first events. */
export function describeOrder(name: string, options: WorldOptions, given: readonly string[]): void {
	it(`nothing is sent that the user has ended: ${name}`, async () => {
		const left = [...given];
		const fault = await new World(options).run((names) => {
			const next = left.shift();
			const choice = next === undefined ? 0 : names.indexOf(next);
			assert.ok(choice >= 0, `"${next}" is not possible, but ${names.join("; ")}`);
			return choice;
		});
		assert.equal(fault, null);
	});
}
