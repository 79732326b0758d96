// Three relays are restarted one after another under 3,000 searchers and a steady stream of submissions. 10,000 and a drain of the
// usual length: `npm run test:long -- --only rolling`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeRolling } from "./rollingJudge.ts";
import { rollingRestart } from "./rollingRestart.ts";

test("a rolling restart loses no submission, and brings all searchers back without a storm", async () => {
	assert.deepEqual(judgeRolling(await rollingRestart({ websockets: 3_000, drainSeconds: 6 })), []);
});
