// The public statistics through boost: the relay's figures, and the state of the service as boost
// saw it, also while the relay is down and after a restart.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { DAY_MS, dayOf } from "../../../shared/days.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { LeapingClock } from "../../support/leapingClock.ts";

interface Day {
	readonly day: string;
	readonly quarters: string;
}

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture?.stop());

const get = (url: string, path: string) =>
	fetch(`${url}${path}`, { headers: { accept: "application/json" } });

async function service(url: string): Promise<readonly Day[]> {
	return (await (await get(url, "/stats/service.json")).json()) as readonly Day[];
}

it("have the quarters that the fallback carried and those of an end, the next days and not before", async () => {
	const env = { DATA_DIR: join(fixture.folder, "stats") };
	const clock = new LeapingClock();
	// At noon, so that no midnight comes.
	clock.leap((dayOf(systemClock.now()) + 1.5) * DAY_MS - systemClock.now());
	const first = await fixture.startBoost({ env, clock });
	const today = dayOf(clock.now());
	await fixture.goesOut("relay", first);
	clock.leap(60_000);
	assert.doesNotMatch(JSON.stringify(await service(first.url)), /f/);
	await first.stop();
	await fixture.wires.relay.set(null);
	clock.leap(2 * DAY_MS);
	const next = await fixture.startBoost({ env, clock });
	const days = await service(next.url);
	assert.deepEqual([days.length, dayOf(Date.parse(days.at(-1)?.day ?? ""))], [90, today]);
	assert.equal(days.at(-1)?.quarters, `${"-".repeat(48)}f${"d".repeat(47)}`);
	assert.doesNotMatch(JSON.stringify(days.slice(0, -1)), /[fd]{2}/, "what is not known is neither");
	await next.stop();
});

it("are the relay's, and while it is down 503, but for the page and the service", async () => {
	const [relay, boost] = [fixture.system.client.url, fixture.boost.url];
	const told = await (await get(boost, "/stats.json")).text();
	assert.equal(told, await (await get(relay, "/stats.json")).text());
	assert.equal(told, await (await get(boost, "/stats")).text());
	assert.equal((await service(relay)).length, 90);
	await fixture.fails();
	for (const path of ["/stats", "/stats.json"]) assert.equal((await get(boost, path)).status, 503, path);
	const page = await fetch(`${boost}/stats`, { headers: { accept: "text/html" } });
	assert.deepEqual([page.status, page.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
	assert.equal((await service(boost)).length, 90);
});

it("with PUBLIC_STATS=false are unknown paths, whatever the relay serves, and also while it is down", async () => {
	await fixture.recovers();
	const boost = await fixture.startBoost({
		env: { DATA_DIR: join(fixture.folder, "off"), PUBLIC_STATS: "false" },
	});
	for (const isOut of [false, true]) {
		if (isOut) await fixture.goesOut("relay", boost);
		for (const path of ["/stats", "/stats.json", "/stats/builders.json", "/stats/service.json"]) {
			for (const accept of ["application/json", "text/html"]) {
				const { status } = await fetch(`${boost.url}${path}`, { headers: { accept } });
				assert.equal(status, 404, `${path} as ${accept}, ${isOut ? "out" : "healthy"}`);
			}
		}
	}
	await boost.stop();
});
