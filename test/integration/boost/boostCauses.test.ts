// Tests the reason that boost reports to its operator while the relay is down: a frozen node of the
// relay is reported as such. Boost's own questions are no user's submissions in the relay's log and
// counts. Also tests the output of `npm run why` against boost.

import assert from "node:assert/strict";
import { after, afterEach, before, it } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { createLogger } from "../../../shared/log.ts";
import { factsOf } from "../../../shared/why/asking.ts";
import { story } from "../../../shared/why/story.ts";
import { type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import { ADMIN_TOKEN, metricsOf } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";

const texts: string[] = [];
let fixture: BoostFixture;
let node: NodeProxy;
before(async () => {
	const log = createLogger("info", "relay", { write: (text: string) => void texts.push(text) });
	fixture = await startBoostFixture({
		system: { env: { ...QUIET.system.env, ADMIN_TOKEN }, proxied: true, log },
		boost: { PROBE_TIMEOUT_MS: "1000" },
	});
	node = fixture.system.node as NodeProxy;
});
after(() => fixture?.stop());
afterEach(async () => {
	node.setFault(null);
	await fixture.recovers();
});

it("reports a hanging node of the relay, and in the relay's own words as soon as it has some", async () => {
	const { boost } = fixture;
	node.setFault({ kind: "hang" });
	await boost.reaches("the relay is down by its node", ({ relay }) => relay.reason === "node");
	await boost.reaches(
		"the hint has the relay's own words",
		({ relay }) => relay.hint === "its /readyz reports node: the node does not answer",
	);
	const page = await boost.get("/readyz");
	assert.equal(page.status, 200, "the fallback serves");
	assert.equal((await boost.get("/totals")).status, 503);
	const operators = { verb: "GET", path: "/relay/operator", headers: { accept: "text/html" } };
	assert.equal((await boost.raw(operators)).status, 200);
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	const state = { verb: "GET", path: "/relay/admin/state", headers };
	assert.equal((await boost.send(state)).status, 200);
	assert.equal((await boost.send({ ...state, headers: {} })).status, 401);
	node.setFault(null);
	await boost.isWell();
	const { relay } = await boost.status();
	assert.deepEqual([relay.reason, relay.hint], [null, null]);
});

it("boost's questions to a relay that comes back are no refusals in its log, nor counted as submissions", async () => {
	const counted = async () => submissionsOf(await metricsOf(fixture.system.core.url));
	const [before, { length }] = [await counted(), texts];
	await fixture.fails();
	await fixture.recovers();
	assert.deepEqual(await counted(), before);
	const lines = texts.slice(length).map((text) => JSON.parse(text) as { readonly msg: string });
	assert.deepEqual(
		lines.filter(({ msg }) => msg === "transaction refused"),
		[],
	);
});

it("boost, too, says why a transaction did not land, while the relay is up and while it is down", async () => {
	const { boost, users } = fixture;
	const [actor, other] = [await users.actor(), await users.actor()];
	await users.passBlock();
	const [sent, held] = [actor.sign(), other.sign()];
	assert.equal(await boost.result("eth_sendRawTransaction", [sent.raw]), sent.hash);
	await users.waitUntilSent(sent);
	const asked = async ({ hash }: Signed) => story(await factsOf(hash, boost.url, systemClock));
	assert.match(
		await asked(sent),
		/^It has not landed yet: it is sent to builders\. It was received at .* It was sent to 1 builder: dev /,
	);
	await fixture.fails();
	assert.equal(await boost.result("eth_sendRawTransaction", [held.raw]), held.hash);
	assert.match(
		await asked(held),
		/^It has not landed yet: it is held: the relay is down: boost keeps it, and another relay may have it\. No server reports its history now\. .*What to do: restart the relay; boost then sends it there by itself\.$/,
	);
});

function submissionsOf(metrics: string): readonly string[] {
	return metrics.split("\n").filter((line) => line.startsWith("relay_submissions_total"));
}
