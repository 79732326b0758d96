// Tests that a request that waits for its result keeps neither its body nor its parameters: many
// clients may wait with large ones.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { z } from "zod";
import { addressReader } from "../../../../shared/client.ts";
import { systemClock as clock, nextTurn } from "../../../../shared/clock.ts";
import type { CallContext } from "../../../../shared/http/callContext.ts";
import { RateLimiter } from "../../../../shared/http/rateLimit.ts";
import { rpcOverHttp } from "../../../../shared/http/routes.ts";
import { createHttpServer } from "../../../../shared/http/server.ts";
import { createDispatcher } from "../../../../shared/jsonrpc/dispatch.ts";
import { defineMethod, methodTable, rawBytes } from "../../../../shared/jsonrpc/method.ts";
import { silentLogger as log } from "../../../../shared/log.ts";
import { postText, RawConnection } from "../../../support/clients.ts";
import { until } from "../../../support/until.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const REQUESTS = 3;
const BYTES = 100_000;

test("a request that waits for its result keeps neither its body nor its parameters", async () => {
	const kept: WeakRef<object>[] = [];
	const endings: ((result: string) => void)[] = [];
	const wait = defineMethod<null, CallContext>()({
		name: "wait",
		summary: "Waits.",
		params: [{ name: "raw", schema: rawBytes("bytes") }],
		maxParamsSize: 3 * BYTES,
		result: z.string(),
		handle: () => new Promise<string>((resolve) => endings.push(resolve)),
	});
	const [table] = methodTable([wait], null).values();
	assert.ok(table !== undefined);
	const methods = new Map([
		[
			"wait",
			{
				...table,
				call(params: readonly unknown[], context: CallContext) {
					kept.push(new WeakRef(params));
					return table.call(params, context);
				},
			},
		],
	]);
	const limiter = new RateLimiter({ rps: 0 }, { clock });
	const dispatcher = createDispatcher<CallContext>({ maxBatch: 1 }, { methods, log, clock });
	const handle = rpcOverHttp({ dispatcher, limiter });
	const server = createHttpServer(
		{ name: "test", host: "127.0.0.1", port: 0, rpcPaths: ["/"], routes: [], maxBodyBytes: 10 * BYTES },
		{
			post(request) {
				kept.push(new WeakRef(request.body));
				return handle(request);
			},
			...{ readAddress: addressReader({ trustProxy: 0 }), limiter, log, clock },
		},
	);
	await server.start();
	const body = JSON.stringify({ id: 1, method: "wait", params: [`0x${"5a".repeat(BYTES)}`] });
	const connections: RawConnection[] = [];
	for (let i = 0; i < REQUESTS; i += 1) {
		const connection = await RawConnection.open(server.port);
		connection.write(postText("/", body));
		connections.push(connection);
	}
	await until("all wait", () => endings.length === REQUESTS);
	await nextTurn();
	collect();
	assert.equal(kept.length, 2 * REQUESTS);
	assert.deepEqual(
		kept.filter((one) => one.deref() !== undefined),
		[],
	);
	for (const end of endings) end("over");
	for (const connection of connections)
		assert.equal((await connection.answer()).body, '{"jsonrpc":"2.0","id":1,"result":"over"}');
	await server.stop();
});
