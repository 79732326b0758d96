// A private transaction that the node's public mempool has before its block, by a subscription and
// by a polled filter: its owner, the operator and `npm run why` learn of it, and what is public for
// another reason is no sighting.

import assert from "node:assert/strict";
import { after, before, describe, it, test } from "node:test";
import { freePort } from "../../devnet/freePort.ts";
import { FeedClient } from "../../support/feeds.ts";
import { LeapingClock } from "../../support/leapingClock.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/** Longer than a sighting waits for its confirmation, in ms. */
const CONFIRMED_MS = 1_500;
const MESSAGE =
	"it was in the public mempool before any block had it, so anybody may use it: its sender, a wallet, a fallback or a builder may have published it";

for (const way of ["subscription", "filter"] as const) {
	describe(`with a ${way}`, () => {
		const clock = new LeapingClock();
		let fixture: RelayFixture;
		before(async () => {
			const port = await freePort();
			const env = way === "subscription" ? { ETH_WS_URL: `ws://127.0.0.1:${port}` } : {};
			fixture = new RelayFixture(await startSystem({ clock, chain: { port }, env, proxied: true }));
			await until("leaks would be seen", async () => (await leaks(fixture)) === "seen");
		});
		after(() => fixture.system.stop());

		/** Submits a transaction that no block has. */
		async function pending(path = "/fast"): Promise<Signed> {
			const tx = (await fixture.actor()).sign();
			await fixture.submit(path, tx);
			await fixture.waitUntilSent(tx);
			return tx;
		}

		/** Publishes it, and lets the time of the confirmation pass once the relay knows. */
		async function leak(tx: Signed): Promise<void> {
			await fixture.publish(tx);
			await confirmed(tx);
		}

		/** Until the relay has asked the node about a sighting of `tx`. */
		async function confirmed(tx: Signed): Promise<void> {
			const isAsked = () =>
				fixture.system.node
					?.calls()
					.some(({ method, params }) => method === "eth_getTransactionByHash" && params[0] === tx.hash);
			await until("the sighting is confirmed", () => {
				clock.leap(CONFIRMED_MS);
				return isAsked();
			});
		}

		it("its life, its status and its subscribers say so, once and without a builder's name", async () => {
			const tx = await pending();
			const feed = await FeedClient.open(`${fixture.system.client.url.replace("http", "ws")}/ws`);
			const id = await feed.subscribe("service_transactionStatus", tx.hash);
			await leak(tx);
			const { at, ...event } = await fixture.event(tx, "seenInPublic");
			assert.deepEqual(event, { type: "seenInPublic", block: await fixture.head() });
			const expected = { at, message: MESSAGE };
			const told = () => feed.received(id).find((one) => one.seenInPublic !== undefined);
			assert.deepEqual((await until("subscribers receive it", told)).seenInPublic, expected);
			assert.deepEqual(Object(await fixture.status(tx)).seenInPublic, expected);
			feed.close();
			await fixture.system.nextBlock();
			const status = await fixture.reaches(tx, "INCLUDED");
			assert.deepEqual(Object(status).seenInPublic, expected, "and it stays so");
			const events = (await fixture.events(tx)).filter(({ type }) => type === "seenInPublic");
			assert.equal(events.length, 1);
		});

		it("one that its user has cancelled says so too", async () => {
			const tx = await pending();
			await fixture.system.client.call("eth_cancelTransaction", [tx.hash]);
			await leak(tx);
			await fixture.event(tx, "seenInPublic");
			assert.equal((await fixture.status(tx)).stage, "CANCELLED");
		});

		it("one that is mined privately, or exposed by a reorganisation, is no sighting", async () => {
			const tx = await pending();
			await fixture.system.nextBlock();
			await fixture.reaches(tx, "INCLUDED");
			clock.leap(CONFIRMED_MS);
			await fixture.system.chain.rpc("anvil_reorg", [1, []]);
			await fixture.event(tx, "exposed");
			// anvil puts it back into its mempool, or we do.
			await fixture.publish(tx).catch(() => {});
			const other = await pending();
			await leak(other);
			await fixture.event(other, "seenInPublic");
			assert.ok(!(await fixture.life(tx)).some((one) => one.startsWith("seenInPublic")));
			assert.ok(!("seenInPublic" in (await fixture.status(tx))));
		});

		it("each is counted, and it is still known after a restart", async () => {
			const tx = await pending();
			await leak(tx);
			await fixture.event(tx, "seenInPublic");
			const count = /^relay_seen_in_public_total\{of="transaction"\} (\d+)$/m;
			const [, counted] = count.exec(await metricsOf(fixture.system.core.url)) ?? [];
			assert.ok(Number(counted) >= 1);
			await fixture.system.restart();
			assert.equal(Object(await fixture.status(tx)).seenInPublic?.message, MESSAGE);
		});
	});
}

test("with a node that offers neither, /info says that leaks are not seen", async (t) => {
	const system = await startSystem({ proxied: true });
	t.after(() => system.stop());
	const fixture = new RelayFixture(system);
	await until("leaks would be seen", async () => (await leaks(fixture)) === "seen");
	system.node?.setRule({
		refuse: (method) => (/Filter/.test(method) ? { code: -32601, message: "method not found" } : null),
	});
	await until("leaks are not seen", async () => (await leaks(fixture)) === "unseen");
});

async function leaks({ system }: RelayFixture): Promise<unknown> {
	return ((await (await fetch(`${system.client.url}/info`)).json()) as { leaks: unknown }).leaks;
}
