// The tests of all orders of events, up to a number of unusual ones.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { exploreAll } from "./explore.ts";
import { WAYS, World, type WorldOptions } from "./world.ts";

const SHOWN = 3;
/** Unusual events with which a relay that does not remember is found out. */
const CONTROL = 1;

/** All kinds of worlds. */
const WORLDS: readonly WorldOptions[] = WAYS.flatMap((way) =>
	[false, true].flatMap((relayOut) => [false, true].map((takesOver) => ({ way, relayOut, takesOver }))),
);

function explore(deviations: number, options: WorldOptions) {
	return exploreAll(deviations, (choose) => new World(options).run(choose));
}

/** Defines the tests of all orders with at most `deviations` unusual events. */
export function describeOrders(deviations: number): void {
	describe(`nothing is sent that the user has ended, in each order with ${deviations} unusual events`, () => {
		for (const options of WORLDS) {
			const { way, relayOut, takesOver } = options;
			const place = `${relayOut ? "the relay out at first, " : ""}${takesOver ? "two boost instances" : "one"}`;
			it(`ended ${way}; ${place}`, async (t) => {
				const { runs, broken } = await explore(deviations, options);
				t.diagnostic(`${runs} orders`);
				const shown = broken.slice(0, SHOWN).map(({ fault, events }) => `${fault}: ${events.join("; ")}`);
				assert.deepEqual(shown, [], `${broken.length} of ${runs}`);
			});
		}

		for (const way of WAYS) {
			it(`ended ${way}: a relay that does not remember it would send it`, async () => {
				const options = { way, relayOut: false, takesOver: true, isFenced: false };
				const { runs, broken } = await explore(Math.min(deviations, CONTROL), options);
				assert.ok(broken.length > 0, `none of ${runs}`);
			});
		}
	});
}
