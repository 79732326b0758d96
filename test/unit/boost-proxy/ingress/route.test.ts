// Which bodies boost forwards, to whom, and which it serves call by call or refuses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { routeOf } from "../../../../boost-proxy/ingress/route.ts";
import { readBody } from "../../../../shared/jsonrpc/envelope.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";

type Facts = Parameters<typeof routeOf>[1];

const USUAL: Facts = {
	isWebsocket: false,
	isRelays: false,
	isRelayUnavailable: false,
	fallbackBatches: true,
	isComplete: ({ method }) => !method.startsWith("eth_send"),
};
const READ = { method: "eth_getBalance", params: [`0x${"12".repeat(20)}`, "latest"] };
const BY_HASH = { method: "eth_getTransactionByHash", params: [`0x${"12".repeat(32)}`] };
const RELAYS = { method: "eth_callBundle", params: [] };
const SENT = { method: "eth_sendRawTransaction", params: ["0x12"] };
const FAULTY = { method: 7 };

/** `route`: the expected destination in words, and the number of calls that go there. */
const ROWS: readonly (readonly [name: string, body: unknown, facts: Partial<Facts>, route: string])[] = [
	["a read", READ, {}, "forward 1"],
	["a read while the relay is down", READ, { isRelayUnavailable: true }, "forward 1"],
	["a submission", SENT, {}, "dispatch"],
	["a batch of reads", [READ, READ], {}, "forward 2"],
	[
		"a batch of reads for a fallback without arrays",
		[READ, READ],
		{ fallbackBatches: false },
		"forward 2, else dispatch",
	],
	[
		"the same while the relay is down",
		[READ],
		{ fallbackBatches: false, isRelayUnavailable: true },
		"dispatch",
	],
	["a batch with a submission", [READ, SENT], {}, "dispatch"],
	["a batch with an error", [READ, FAULTY], {}, "forward 1"],
	["a batch of errors", [FAULTY], {}, "dispatch"],
	["an error", FAULTY, {}, "dispatch"],
	["a transaction by its hash", BY_HASH, {}, "forward 1 to the relay, else dispatch"],
	["the same while the relay is down", BY_HASH, { isRelayUnavailable: true }, "dispatch"],
	["the relay's own method", RELAYS, {}, "forward 1 to the relay"],
	["it beside a hash", [RELAYS, BY_HASH], {}, "forward 2 to the relay"],
	[
		"a subscription over a websocket",
		{ method: "eth_subscribe", params: ["newHeads"] },
		{ isWebsocket: true },
		"dispatch",
	],
	["a submission on the relay's own path", SENT, { isRelays: true }, "forward 1 to the relay"],
	["the same while the relay is down", SENT, { isRelays: true, isRelayUnavailable: true }, "refuse"],
	["a notification", { ...READ, id: undefined }, {}, "dispatch"],
];

for (const [name, body, facts, expected] of ROWS) {
	test(`${name}: ${expected}`, async () => {
		const numbered = (one: object, i: number) => ({ jsonrpc: "2.0", id: i, ...one });
		const whole = Array.isArray(body) ? body.map(numbered) : numbered(body as object, 1);
		const read = await readBody(Buffer.from(JSON.stringify(whole)), 10);
		assert.ok(!(read instanceof RpcError));
		const route = routeOf(read, { ...USUAL, ...facts });
		const told =
			route.kind === "forward"
				? `forward ${route.wanted.length}${route.relayOnly ? " to the relay" : ""}${route.mayDispatch ? ", else dispatch" : ""}`
				: route.kind;
		assert.equal(told, expected);
	});
}
