// A relay on a machine whose clock is five hours ahead: heads that come are fresh all the same, and
// the difference is reported in /readyz, in the log, once, and as a metric.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { silentLogger } from "../../../shared/log.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const AHEAD_MS = 5 * 3600 * 1000;

let system: TestSystem;
const logged: string[] = [];
before(async () => {
	const note = (message: string) => logged.push(message);
	const log = { ...silentLogger, warn: note, child: () => log };
	const clock = { ...systemClock, now: () => systemClock.now() + AHEAD_MS };
	// The first head may be an old one, so the relay would wait for a second.
	system = await startSystem({ clock, log, chain: { slotSeconds: 1 }, env: { MAX_HEAD_AGE_S: "86400" } });
});
after(() => system?.stop());

const gauge = async (name: string) =>
	Number(new RegExp(`^${name} (\\S+)$`, "m").exec(await metricsOf(system.client.url))?.[1]);

test("heads that keep coming are fresh, and the difference is reported", async () => {
	const first = await gauge("relay_head_age_seconds");
	assert.ok(first > 3600, `it may have stopped long ago: ${first}`);
	for (let i = 0; i < 4; i += 1) {
		await system.chain.rpc("evm_mine", [{ timestamp: Math.floor(Date.now() / 1000) + i }]);
		const number = Number(await system.chain.rpc("eth_blockNumber"));
		await until("the relay sees it", async () => (await gauge("relay_head_number")) === number);
	}
	const age = await gauge("relay_head_age_seconds");
	assert.ok(age < 60, `${age}`);
	const difference = await gauge("relay_clock_difference_seconds");
	assert.ok(Math.abs(difference - AHEAD_MS / 1000) < 30, `${difference}`);
	const readyz = (await (await fetch(`${system.client.url}/readyz`)).json()) as {
		ready: boolean;
		checks: { head: { ok: boolean; note: string } };
	};
	assert.equal(readyz.ready, true);
	assert.match(readyz.checks.head.note, /^this machine's clock is \d+ s ahead of the chain's$/);
	assert.equal(logged.filter((line) => line === "this machine's clock is ahead of the chain's").length, 1);
});
