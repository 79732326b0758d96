// Caches between a client and us may keep nothing of the answers to GET, since each is of one
// moment or of one client alone. They ask for scripts and styles anew.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture?.stop());

const HASH = `0x${"ab".repeat(32)}`;
const ADDRESS = `0x${"ab".repeat(20)}`;
const BOTH = ["/", "/livez", "/readyz", "/metrics", "/operator", "/admin/state", `/tx/${HASH}`, "/tx/0x1"];
/** Boost has these of the relay. */
const RELAYS = [`/tx/${HASH}/events`, `/bundle/${HASH}`, `/refunds/${ADDRESS}`, "/totals", "/info"];
const BOOSTS = ["/status", "/fast", "/noreverts", `/tx/${HASH}/journal`];

test("none keeps a status, a page or an error", async () => {
	const servers = {
		relay: [fixture.system.client.url, [...BOTH, ...RELAYS, "/nowhere"]],
		boost: [fixture.boost.url, [...BOTH, ...RELAYS, ...BOOSTS]],
	} as const;
	for (const [name, [url, paths]] of Object.entries(servers)) {
		for (const path of paths) {
			for (const accept of ["application/json", "text/html"]) {
				for (const method of ["GET", "HEAD"]) {
					const answer = await fetch(url + path, { method, headers: { accept } });
					await answer.text();
					const kept = answer.headers.get("cache-control");
					assert.equal(kept, "no-store", `${name}: ${method} ${path} as ${accept}: ${answer.status}`);
				}
			}
		}
	}
});

test("scripts and styles are asked for anew", async () => {
	for (const url of [fixture.system.client.url, fixture.boost.url]) {
		const answer = await fetch(`${url}/pages/style.css`);
		await answer.text();
		assert.equal(answer.headers.get("cache-control"), "no-cache");
	}
});
