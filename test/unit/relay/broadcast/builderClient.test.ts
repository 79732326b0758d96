// How a builder's answers are classified, when a request is sent again or not at all, and the
// health of deliveries.

import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, type TestContext, test } from "node:test";
import { BuilderClient } from "../../../../relay/broadcast/builderClient.ts";
import { DeliveryHealth } from "../../../../relay/broadcast/health.ts";
import type { DeliveryAnswer } from "../../../../relay/domain/events.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { startFakeBuilder } from "./fanoutFixture.ts";

const PAGE = "<html><body>502 Bad Gateway</body></html>";
const RPC_ERROR = '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}';

const TABLE: readonly (readonly [number, string, DeliveryAnswer])[] = [
	// The usual.
	[200, '{"jsonrpc":"2.0","id":1,"result":{"bundleHash":"0x1"}}', "accepted"],
	[200, RPC_ERROR, "rejected"],
	// Odd, and real.
	[200, '{"result":200,"error":null}', "accepted"],
	[200, '{"jsonrpc":"2.0","id":1,"result":null,"error":null}', "accepted"],
	[200, "ok", "accepted"],
	[200, "", "accepted"],
	[200, '[{"result":1}]', "accepted"],
	[202, "", "accepted"],
	[200, '{"error":"nonce too low"}', "rejected"],
	// A verdict under any status is a verdict.
	[400, RPC_ERROR, "rejected"],
	[429, RPC_ERROR, "rejected"],
	[503, '{"error":{"code":-32005,"message":"busy"}}', "rejected"],
	// A broken transport.
	[200, PAGE, "failed"],
	[200, '{"jsonrpc":"2.0","id":1,"resu', "failed"],
	[200, '[{"jsonrpc"', "failed"],
	[404, "not found", "failed"],
	[429, "slow down", "failed"],
	[500, '{"result":1}', "failed"],
	[502, PAGE, "failed"],
	[302, '{"result":1}', "failed"],
];

const BODY = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"eth_sendBundle","params":[]}');
const SIGNED = { body: BODY, signature: "0xaddress:0xsignature" };
const ALWAYS = { requestId: null, onSent() {}, shouldSend: () => true };

const builder = await startFakeBuilder();
after(() => builder.close());

/** A client of a server that answers by `listener`; both end with the test. */
async function clientOf(t: TestContext, listener: RequestListener): Promise<BuilderClient> {
	const server = createServer(listener);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	const row = builder.row("b", { url: `http://127.0.0.1:${port}` });
	const client = new BuilderClient(row, { clock: systemClock, log: silentLogger });
	t.after(async () => {
		await client.close();
		server.closeAllConnections();
		await new Promise<void>((resolve) => server.close(() => resolve()));
	});
	return client;
}

test("a body is sent unchanged with its signature, and answers are classified by the table", async () => {
	const client = new BuilderClient(builder.row("b"), { clock: systemClock, log: silentLogger });
	for (const [status, text, expected] of TABLE) {
		builder.answerWith({ status, text });
		assert.equal(await client.send(SIGNED, ALWAYS), expected, `${status} ${text}`);
	}
	for (const request of builder.seen) {
		assert.ok(request.body.equals(BODY));
		assert.equal(request.signature, SIGNED.signature);
		assert.equal(request.contentType, "application/json");
	}
	assert.equal(builder.seen.length, TABLE.length);
	await client.close();
});

test("a connection that the builder closed while it was idle costs no delivery, unless it was withdrawn", async (t) => {
	let requests = 0;
	const client = await clientOf(t, (request, response) => {
		requests += 1;
		// The second request on a connection finds it closed, as behind a balancer that has had enough
		// of it.
		if (requests === 2 || requests === 4) {
			request.socket.destroy();
			return;
		}
		request.resume();
		response.end('{"result":1}');
	});
	assert.equal(await client.send(SIGNED, ALWAYS), "accepted");
	assert.equal(await client.send(SIGNED, ALWAYS), "accepted");
	assert.equal(requests, 3);
	// Withdrawn while the first one was under way.
	let checks = 0;
	assert.equal(await client.send(SIGNED, { ...ALWAYS, shouldSend: () => checks++ === 0 }), "failed");
	assert.equal(requests, 4);
});

test("a request that may no longer be sent when its connection is open is not written", async (t) => {
	let requests = 0;
	const client = await clientOf(t, (_, response) => {
		requests += 1;
		response.end('{"result":1}');
	});
	let may = true;
	const rights = { ...ALWAYS, shouldSend: () => may };
	const sending = client.send(SIGNED, rights);
	may = false;
	assert.equal(await sending, "unsent");
	assert.equal(await client.send(SIGNED, rights), "unsent");
	assert.equal(requests, 0);
	may = true;
	assert.equal(await client.send(SIGNED, rights), "accepted");
	assert.equal(requests, 1);
});

describe("whether deliveries are answered at all", () => {
	/** Seconds to wait, the answer that comes, and the health after it. Two slots are 24 s. */
	type Step = readonly [waitSeconds: number, answer: DeliveryAnswer | null, healthy: boolean];

	const TABLE: Readonly<Record<string, readonly Step[]>> = {
		"nothing tried is nothing wrong": [[1_000, null, true]],
		"an answer is one, a rejection too, and quiet afterwards is nothing wrong": [
			[0, "accepted", true],
			[24.001, null, true],
			[0, "rejected", true],
			[24.001, null, true],
		],
		"two slots without an answer are not healthy, until one comes": [
			[0, "accepted", true],
			[12, "failed", true],
			[12, "timeout", true],
			[0.001, null, false],
			[0, "failed", false],
			[0, "rejected", true],
		],
		"what failed is forgotten when nothing was tried for two slots": [
			[0, "timeout", false],
			[24, null, false],
			[0.001, null, true],
		],
		"what was never sent says nothing about the builders": [
			[0, "unsent", true],
			[10, "unsent", true],
		],
	};

	for (const [name, steps] of Object.entries(TABLE)) {
		test(name, async () => {
			const clock = new ManualClock();
			const health = new DeliveryHealth({ slot: { ms: 12_000 } }, { clock });
			for (const [i, [waitSeconds, answer, healthy]] of steps.entries()) {
				await clock.advance(waitSeconds * 1_000);
				if (answer !== null) health.note("a", answer, 7);
				assert.equal(health.healthy, healthy, `step ${i + 1}`);
			}
		});
	}

	test("each builder's last answer is reported with its age; a request that was never sent has none", async () => {
		const clock = new ManualClock();
		const health = new DeliveryHealth({ slot: { ms: 12_000 } }, { clock });
		health.note("a", "unsent", 0);
		assert.equal(health.lastOf("a"), null);
		health.note("a", "accepted", 12);
		health.note("b", "timeout", 4_000);
		await clock.advance(3_000);
		health.note("b", "rejected", 30);
		health.note("b", "unsent", 0);
		await clock.advance(1_000);
		assert.deepEqual(health.lastOf("a"), { answer: "accepted", secondsAgo: 4, ms: 12 });
		assert.deepEqual(health.lastOf("b"), { answer: "rejected", secondsAgo: 1, ms: 30 });
	});
});
