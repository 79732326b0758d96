// A port that one process was given is given to no other one that looks for a free port, whether
// anything listens there or not.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { freePort } from "../../devnet/freePort.ts";

test("a port that another process has claimed is left out", async (t) => {
	const next = (await freePort()) + 1;
	const other = createSocket({ type: "udp4" });
	t.after(() => other.close());
	other.bind({ port: next, address: "127.0.0.1", exclusive: true });
	await once(other, "listening");
	assert.notEqual(await freePort(), next);
});

test("what was given is claimed as others claim it", async (t) => {
	const other = createSocket({ type: "udp4" });
	t.after(() => other.close());
	other.bind({ port: await freePort(), address: "127.0.0.1", exclusive: true });
	const [thrown] = await once(other, "error");
	assert.equal(thrown.code, "EADDRINUSE");
});
