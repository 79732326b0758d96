// The standby of the boost instances' database is promoted when the primary is killed. With
// synchronous replication nothing that was cancelled is sent. With asynchronous replication the
// standby lacks the last cancels, and this shows what clients see then.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type BoostClient, startBoostFixture } from "../../support/boostFixture.ts";
import type { WireAnswer, WireStatus } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";
import { NO_STANDBY, StandbyPair } from "../../support/standbyPair.ts";
import { until } from "../../support/until.ts";

const COUNT = 5;

for (const how of ["synchronous", "asynchronous"] as const) {
	test(`the ${how} standby of two boost instances is promoted after cancels`, {
		skip: NO_STANDBY,
	}, async (t) => {
		const pair = await StandbyPair.start(t, how === "synchronous");
		const fixture = await startBoostFixture({
			system: { env: { CANCEL_POLICY: "origin" } },
			boost: { DATABASE_URL: pair.url, BREAKER_HOLD_MAX_MS: "100" },
		});
		t.after(() => fixture.stop());
		const one = fixture.boost;
		const other = await fixture.startBoost();
		const all = await Promise.all(Array.from({ length: 2 * COUNT }, () => fixture.users.actor()));
		await fixture.users.passBlock();
		// Only the fallback gets them, so only it and the boost instances can know of their ends.
		await fixture.wires.relay.set({ kind: "refuse" });
		for (const boost of [one, other])
			await boost.reaches("the relay is down", ({ relay }) => relay.state !== "closed");
		const txs = all.map((by) => by.sign());
		for (const { raw } of txs) await one.result("eth_sendRawTransaction", [raw]);
		const [kept, ended] = [txs.slice(0, COUNT), txs.slice(COUNT)];
		if (how === "asynchronous") await pair.partStandby();
		for (const tx of ended) assert.equal((await cancel(one, tx)).result, true);
		await pair.promote();
		for (const boost of [one, other])
			await until("it reaches the database", async () => {
				const { json } = await boost.get(`/tx/${kept[0]?.hash}`);
				return (json as WireStatus).hash === kept[0]?.hash;
			});
		const told = await Promise.all([one, other].map((boost) => stagesOf(boost, ended)));
		// The open ones go to the relay when the fallback does not answer.
		await fixture.wires.fallback.set({ kind: "refuse" });
		await fixture.wires.relay.set(null);
		await until("the relay has what is open", () => kept.every((tx) => isAtRelay(tx)));
		// As a restart of both would find it.
		for (const boost of [one, other]) await boost.stop();
		await fixture.wires.fallback.set(null);
		const next = await fixture.startBoost();
		await until("it has taken over what is left", async () => (await next.status()).journal.depth >= COUNT);
		await fixture.wires.fallback.set({ kind: "refuse" });
		await until("the relay has all of that", async () => {
			const { depth, held } = (await next.status()).journal;
			return held.relay >= depth;
		});
		const sent = ended.filter((tx) => isAtRelay(tx));
		t.diagnostic(`clients see ${told.join(" and ")}; ${sent.length} of ${COUNT} cancelled are sent`);
		if (how === "asynchronous") return;
		assert.deepEqual(told, ["CANCELLED", "CANCELLED"]);
		assert.deepEqual(sent, []);

		function isAtRelay({ raw }: Signed): boolean {
			return fixture.wires.relay
				.requests()
				.flatMap(({ calls }) => calls)
				.some(({ method, params }) => method === "eth_sendRawTransaction" && params[0] === raw);
		}
	});
}

async function cancel(boost: BoostClient, { hash }: Signed): Promise<WireAnswer> {
	return (await boost.call("eth_cancelTransaction", [hash])).json as WireAnswer;
}

async function stagesOf(boost: BoostClient, txs: readonly Signed[]): Promise<string> {
	const stages = await Promise.all(
		txs.map(async ({ hash }) => ((await boost.get(`/tx/${hash}`)).json as WireStatus).stage ?? "unknown"),
	);
	return [...new Set(stages)].sort().join();
}
