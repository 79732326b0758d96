// Why the relay is out, as boost's operator is told: a frozen node of the relay under that name. And boost's own questions are
// no user's submissions in the relay's log and counts.

import assert from "node:assert/strict";
import { after, afterEach, before, it } from "node:test";
import { createLogger } from "../../../shared/log.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import { metricsOf } from "../../support/relayClient.ts";

const texts: string[] = [];
let fixture: BoostFixture;
let node: NodeProxy;
before(async () => {
	const log = createLogger("info", "relay", { write: (text: string) => void texts.push(text) });
	fixture = await startBoostFixture({ system: { proxied: true, log }, boost: { PROBE_TIMEOUT_MS: "1000" } });
	node = fixture.system.node as NodeProxy;
});
after(() => fixture?.stop());
afterEach(async () => {
	node.setFault(null);
	await fixture.recovers();
});

it("a node of the relay that hangs is told under that name, and by the relay's own words as soon as it has some", async () => {
	const { boost } = fixture;
	node.setFault({ kind: "hang" });
	await boost.reaches("the relay is out by its node", ({ relay }) => relay.reason === "node");
	await boost.reaches(
		"the hint has the relay's own words",
		({ relay }) => relay.hint === "its /readyz says of node: the node does not answer",
	);
	const page = await boost.get("/readyz");
	assert.equal(page.status, 200, "the fallback serves");
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

function submissionsOf(metrics: string): readonly string[] {
	return metrics.split("\n").filter((line) => line.startsWith("relay_submissions_total"));
}
