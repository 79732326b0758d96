// The chain height that is reported to clients: no upstream can be further ahead of the relay's
// last head than the slots that have passed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ReportedChain } from "../../../../boost-proxy/ingress/reportedChain.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const SLOT_MS = 12_000;
const FALSE = 1_000_000;

function told() {
	const clock = new ManualClock();
	const chain = new ReportedChain({ slot: { ms: SLOT_MS } }, { clock });
	return { clock, chain };
}

test("a height that a fallback makes up is bounded by the relay's last and the slots since, and ends with the outage", async () => {
	const { clock, chain } = told();
	chain.sawHead(100, "relay");
	await clock.advance(5_000);
	for (const [slots, claimed, expected] of [
		[0, FALSE, 101],
		[1, FALSE, 102],
		[2, 103, 103],
		[3, FALSE, 104],
		[10, FALSE, 111],
	] as const) {
		await clock.advance(5_000 + slots * SLOT_MS - clock.monotonic());
		chain.sawHead(claimed, "fallback");
		assert.equal(chain.height, expected, `after ${slots} slots`);
	}
	// The relay has as many by then.
	await clock.advance(SLOT_MS);
	chain.sawHead(111, "relay");
	assert.equal(chain.height, 111);
});

test("a height that a fallback makes up before the relay has answered ends with the relay's first word", () => {
	const { chain } = told();
	chain.sawHead(FALSE, "fallback");
	assert.equal(chain.height, FALSE, "nothing else is known");
	chain.sawHead(100, "relay");
	assert.equal(chain.height, 100);
	chain.sawHead(FALSE, "fallback");
	assert.equal(chain.height, 101);
});

test("an impossible height of the relay is believed only if it lasts, and a moment of less from it moves no bound", async () => {
	const { clock, chain } = told();
	chain.sawHead(100, "relay");
	await clock.advance(SLOT_MS);
	chain.sawHead(99, "relay");
	chain.sawHead(103, "fallback");
	assert.equal(chain.height, 102);
	chain.sawHead(105, "relay");
	assert.equal(chain.height, 105, "as on a chain that makes blocks on request");
	chain.sawHead(FALSE, "relay");
	assert.equal(chain.height, 105, "by one node of several");
	await clock.advance(4_000);
	chain.sawHead(105, "relay");
	for (const [afterMs, expected] of [
		[0, 105],
		[4_999, 105],
		[5_000, 500],
	] as const) {
		if (afterMs > 0) await clock.advance(afterMs === 5_000 ? 1 : afterMs);
		chain.sawHead(500, "relay");
		assert.equal(chain.height, expected, `after ${afterMs} ms, as when its node catches up, or boost slept`);
	}
	chain.sawHead(501, "relay");
	assert.equal(chain.height, 501);
});
