// Half a minute of what `npm run test:long -- --only scale` does for ten: three relays and two boosts under load, and each kind of
// fault once, in an order that is drawn.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runChaos } from "./chaos.ts";

/** Until each kind has come up once it takes some more. */
const SECONDS = 24;
const SEEDS = 2 ** 31;

test("whatever happens to relays, boosts and their database, every promise is kept", async (t) => {
	const seed = Math.floor(Math.random() * SEEDS);
	t.diagnostic(`npm run test:long -- --only scale --minutes ${SECONDS / 60} --seed ${seed}`);
	const { violations } = await runChaos({ seed, seconds: SECONDS, say: (line) => t.diagnostic(line) });
	assert.deepEqual(violations, []);
});
