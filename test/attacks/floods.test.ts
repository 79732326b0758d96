// Floods of one client at a relay and at the boost before it: each is refused or bounded by count,
// and an honest user's submission, delivery, bid and reads succeed beside it. floods.nightly.ts has
// the full sizes and the times.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AttackFixture, type Door, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { BOOST_SECRET, type BoostBeside, startBoostBeside } from "../support/attacks/boostBeside.ts";
import { FLOODS, FLOODS_OF_BOOST, MAX_CONNECTIONS } from "../support/attacks/floods.ts";
import { emit, follow } from "../support/attacks/logReaders.ts";
import { assertServedBeside } from "../support/attacks/measuring.ts";
import { type Flood, runFlood } from "../support/attacks/runFlood.ts";
import { HONEST, send } from "../support/attacks/wire.ts";
import { FeedClient } from "../support/feeds.ts";

const PENDING = "service_partialPendingTransactions";
const ANSWER_MS = 30_000;
const FEW_EVENTS = 500;
/** Each flood meets a head. More would be work for every transaction that is pending by then. */
const HEAD_EVERY_MS = 4_000;

let fixture: AttackFixture;
let beside: BoostBeside;
before(async () => {
	const connections = { MAX_CONNECTIONS_PER_CLIENT: String(MAX_CONNECTIONS.short) };
	const env = { BOOST_SECRET, ...connections };
	fixture = await startAttackFixture({ env, headEveryMs: HEAD_EVERY_MS, isTimed: false });
	// On a busy machine a healthy upstream may miss a shorter probe.
	beside = await startBoostBeside(fixture, { env: { ...connections, PROBE_TIMEOUT_MS: "30000" } });
});
after(async () => {
	await beside?.stop();
	await fixture?.stop();
});

/** The honest user is served beside the flood, and after it. */
function small(flood: Flood, door: Door): Promise<void> {
	return runFlood(flood, { fixture, door, size: "short" }, (attacking) =>
		fixture.underBlocks(() => assertServedBeside(door.user, attacking)),
	);
}

describe("at the relay", () => {
	for (const flood of FLOODS) it(flood.title, () => small(flood, fixture.door));

	it("a connection has one subscription to pending transactions", async () => {
		const client = await FeedClient.open(`${fixture.relay.url.replace("http", "ws")}/ws`);
		try {
			await client.subscribe(PENDING);
			const second = await client.ask("eth_subscribe", [PENDING]);
			assert.equal(second.error?.code, -32005, JSON.stringify(second));
		} finally {
			client.close();
		}
	});

	it("only the operator can read the metrics", async () => {
		const url = `${fixture.relay.url}/metrics`;
		const statusWith = async (headers: Readonly<Record<string, string>>) =>
			(await send({ url, from: HONEST, headers, deadlineMs: ANSWER_MS })).status;
		assert.equal(await statusWith({}), 404);
		assert.equal(await statusWith({ authorization: "Bearer another" }), 404);
		assert.equal(await statusWith(fixture.operator), 200);
	});
});

describe("at boost", () => {
	for (const flood of FLOODS_OF_BOOST) {
		it(flood.title, async () => {
			await small(flood, beside);
			const { body } = await send({
				url: `${beside.process.url}/status`,
				from: HONEST,
				deadlineMs: ANSWER_MS,
			});
			assert.match(body, /"relay":\{"state":"closed"/, "no breaker opens");
		});
	}

	it("while the relay is down, a client gets all of its logs from boost", async () => {
		const honest = await follow(beside.process.url, FEW_EVENTS);
		await fixture.relay.kill();
		await emit(fixture, FEW_EVENTS);
		await honest.next();
		honest.client.close();
	});
});
