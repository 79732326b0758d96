// Bad HTTP against a running relay: each row gets its exact answer, and the relay is well behind them all.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { postText, RawConnection } from "../../support/rawHttp.ts";
import { BROKEN_HTTP_ROWS } from "./badInput/brokenHttp.ts";
import { type BadInputFixture, startFixture } from "./badInput/fixture.ts";
import { GOOD, GOOD_ANSWER, HTTP_ROWS } from "./badInput/httpRows.ts";
import { testBytesRows, testHttpRows } from "./badInput/rows.ts";
import { sendBytes } from "./badInput/wire.ts";

let fixture: BadInputFixture;
before(async () => {
	fixture = await startFixture();
});
after(() => fixture.stop());

testHttpRows(HTTP_ROWS, () => fixture);
testBytesRows(BROKEN_HTTP_ROWS, () => fixture);

test("hundreds of requests in one go, good and bad in turn, are answered in their order", async () => {
	const connection = await RawConnection.open(fixture.system.relay.port);
	const bodies = [GOOD, "{", "[]", '{"id":1}', "", `[${GOOD}]`, "null", '{"method":"nope"}'];
	const statuses = [200, 400, 200, 200, 400, 200, 200, 204];
	const rounds = 50;
	connection.write(
		Buffer.concat(
			Array(rounds)
				.fill(bodies.map((body) => postText("/fast", body)))
				.flat(),
		),
	);
	for (let i = 0; i < rounds * bodies.length; i++) {
		assert.equal((await connection.answer()).status, statuses[i % bodies.length], `answer ${i}`);
	}
	connection.destroy();
	fixture.log.check();
});

test("bodies that are broken off give back the room they took", async () => {
	const { port } = fixture.system.relay;
	const megabytes = 2 * 1024 * 1024 - 1;
	const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${megabytes + 1}\r\n\r\n`;
	const brokenOff = Buffer.concat([Buffer.from(head), Buffer.alloc(megabytes, 0x20)]);
	// More in all than the relay holds at a time, which is 256 MiB.
	for (let sent = 0; sent < 140; sent += 4) {
		const answers = await Promise.all(Array.from({ length: 4 }, () => sendBytes(port, brokenOff, true)));
		assert.deepEqual(
			answers.map((answer) => answer?.status),
			[400, 400, 400, 400],
		);
	}
	const { status, body } = await fixture.wire.send({ body: GOOD.padEnd(megabytes, " ") });
	assert.deepEqual([status, JSON.parse(body)], [200, GOOD_ANSWER]);
	fixture.log.check();
});

test("the relay is well after all of it", () => fixture.stillWell());
