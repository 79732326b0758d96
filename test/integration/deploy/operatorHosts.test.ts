// A page of a name that points at our address (DNS rebinding) reads nothing that is for operators.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { request } from "undici";
import { freePort } from "../../devnet/freePort.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { ADMIN_TOKEN } from "../../support/relayClient.ts";

const OPERATORS = { authorization: `Bearer ${ADMIN_TOKEN}` };
const STRANGER = "page.example";

let fixture: BoostFixture;
let ports: Readonly<Record<"relay" | "boost" | "relay's METRICS_PORT" | "boost's METRICS_PORT", number>>;
before(async () => {
	const [ofRelay, ofFallback, ofBoost] = [await freePort(), await freePort(), await freePort()];
	fixture = await startBoostFixture({
		system: { env: { METRICS_PORT: String(ofRelay) } },
		fallback: { METRICS_PORT: String(ofFallback) },
		boost: { METRICS_PORT: String(ofBoost) },
	});
	const relay = Number(new URL(fixture.system.client.url).port);
	const { port: boost } = fixture.boost;
	ports = { relay, boost, "relay's METRICS_PORT": ofRelay, "boost's METRICS_PORT": ofBoost };
});
after(() => fixture?.stop());

for (const at of ["relay's METRICS_PORT", "boost's METRICS_PORT"] as const) {
	test(`${at} answers addresses and private names, and no stranger's name`, async () => {
		const path = "/metrics";
		for (const host of ["127.0.0.1:1", "[::1]", "localhost", "relay:9090", "relay.internal"]) {
			assert.equal((await answerOf(ports[at], { path, headers: { host } })).status, 200, host);
		}
		const { status, text } = await answerOf(ports[at], { path, headers: { host: STRANGER } });
		assert.equal(status, 421);
		assert.match(text, /METRICS_PORT answers addresses and private names/);
	});
}

for (const [at, path, method] of [
	["relay", "/admin/state", "GET"],
	["relay", "/relay/admin/state", "GET"],
	["relay", "/operator/refunds.csv", "GET"],
	["boost", "/relay/operator/refunds.csv", "GET"],
	["boost", "/admin/state", "GET"],
	["boost", "/relay/admin/state", "GET"],
	["relay", "/operator/builders.csv", "GET"],
	["relay", "/operator/builders.json", "GET"],
	["boost", "/relay/operator/builders.csv", "GET"],
	["boost", "/admin/auto", "POST"],
] as const) {
	test(`${method} ${path} at ${at} needs the token, whatever the name and the cookies`, async () => {
		const page = { host: STRANGER, origin: `http://${STRANGER}`, cookie: `token=${ADMIN_TOKEN}` };
		assert.equal((await answerOf(ports[at], { path, method, headers: page })).status, 401);
		assert.equal((await answerOf(ports[at], { path, method, headers: OPERATORS })).status, 200);
	});
}

/** By undici, since fetch sets Host by itself. */
async function answerOf(
	port: number,
	{
		path,
		...options
	}: {
		readonly path: string;
		readonly method?: "POST" | "GET";
		readonly headers: Readonly<Record<string, string>>;
	},
): Promise<{ readonly status: number; readonly text: string }> {
	const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`, options);
	return { status: statusCode, text: await body.text() };
}
