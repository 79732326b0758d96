// A builder that refuses connections is sent nothing. A transaction for this builder alone stays
// PENDING, and becomes BROADCAST when the relay can write a request. A builder that listens is the
// control.

import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, it } from "node:test";
import { RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

let system: TestSystem;
let fixture: RelayFixture;
let deaf: Server;
let port: number;
const bodies: string[] = [];

before(async () => {
	deaf = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => {
			bodies.push(Buffer.concat(chunks).toString());
			response.end('{"jsonrpc":"2.0","id":1,"result":null}');
		});
	});
	await new Promise<void>((resolve) => deaf.listen(0, "127.0.0.1", resolve));
	({ port } = deaf.address() as AddressInfo);
	await new Promise((resolve) => deaf.close(resolve));
	system = await startSystem({
		builders: [{ name: "dev" }, { name: "deaf", url: `http://127.0.0.1:${port}`, fullPrivacy: true }],
	});
	fixture = new RelayFixture(system);
});
after(async () => {
	deaf.closeAllConnections();
	await new Promise((resolve) => deaf.close(resolve));
	await system.stop();
});

it("is BROADCAST only when its builder listens", async () => {
	const [tx, control] = [(await fixture.actor()).sign(), (await fixture.actor()).sign()];
	await fixture.submit("/fullprivacy", tx);
	await fixture.submit("/fast", control);
	for (const one of [tx, control])
		await fixture.event(one, "delivered", ({ builder, answer }) => builder === "deaf" && answer === "failed");
	await fixture.reaches(control, "BROADCAST");
	assert.equal((await fixture.status(tx)).stage, "PENDING");
	assert.ok(!(await fixture.life(tx)).some((event) => event.startsWith("broadcast")));

	await new Promise<void>((resolve) => deaf.listen(port, "127.0.0.1", resolve));
	await fixture.passBlock();
	await until("it has it", () => bodies.some((body) => body.includes(tx.raw.slice(2))));
	await fixture.reaches(tx, "BROADCAST");
	assert.equal((await fixture.life(tx)).filter((event) => event.startsWith("broadcast")).length, 1);
});

it("sends no cancel if no builder was sent the transaction", async () => {
	await new Promise((resolve) => {
		deaf.close(resolve);
		deaf.closeAllConnections();
	});
	const tx = (await fixture.actor()).sign();
	await fixture.submit("/fullprivacy", tx);
	await fixture.event(tx, "delivered", ({ answer }) => answer === "failed");
	assert.equal(await system.client.call("eth_cancelTransaction", [tx.hash]), true);
	const cancelled = await fixture.event(tx, "cancelled");
	assert.deepEqual(cancelled.builders, []);
});
