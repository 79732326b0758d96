// Nodes that serve this and not that come in; the engines in use and what the log says of them go out.

import assert from "node:assert/strict";
import { it } from "node:test";
import { chooseEngines } from "../../../../relay/simulation/chooseEngines.ts";
import { type RpcAnswer, UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import type { LogFields, Logger } from "../../../../shared/log.ts";

const TIME = `0x${"fffffffe".padStart(64, "0")}`;
const GOOD: Readonly<Record<string, unknown>> = {
	eth_simulateV1: [{ calls: [{ status: "0x1", gasUsed: "0x5300", returnData: TIME, logs: [] }] }],
	debug_traceCall: { output: TIME, gasUsed: "0x5300" },
	eth_call: TIME,
};
const ALL = Object.keys(GOOD);

type Answers = Readonly<Record<string, RpcAnswer | UpstreamError>>;
const good = (method: string): RpcAnswer => ({ ok: true, result: GOOD[method] });
const bad = (code: number, message: string): RpcAnswer => ({ ok: false, error: { code, message } });

async function choose(answers: Answers): Promise<{ engines: string[]; said: string[] }> {
	const said: string[] = [];
	const say = (level: string) => (message: string, fields?: LogFields) => {
		said.push([level, message, fields?.engine ?? "-", fields?.code ?? "-"].join(" | "));
	};
	const log: Logger = {
		trace: say("trace"),
		debug: say("debug"),
		info: say("info"),
		warn: say("warn"),
		error: say("error"),
		child: () => log,
	};
	const node = {
		async call({ method }: { method: string }): Promise<RpcAnswer> {
			const answer = answers[method] ?? good(method);
			if (answer instanceof Error) throw answer;
			return answer;
		},
	};
	return { engines: (await chooseEngines(node, log)).map((engine) => engine.name), said };
}

const inUse = (engine: string) => `info | simulation engine in use | ${engine} | -`;
const notServed = (engine: string, code: number | string) =>
	`warn | the node does not serve a simulation engine | ${engine} | ${code}`;
const notProbed = (engine: string) => `warn | a simulation engine could not be probed | ${engine} | -`;

it("takes all that the node serves, the best one first", async () => {
	assert.deepEqual(await choose({}), { engines: ALL, said: ALL.map(inUse) });
});

it("leaves out what the node does not know", async () => {
	const { engines, said } = await choose({ debug_traceCall: bad(-32601, "the method debug_traceCall …") });
	assert.deepEqual(engines, ["eth_simulateV1", "eth_call"]);
	assert.deepEqual(said, [notServed("debug_traceCall", -32601), inUse("eth_simulateV1"), inUse("eth_call")]);
});

it("leaves out what takes no overrides, or does not heed them", async () => {
	const { engines, said } = await choose({
		eth_simulateV1: {
			ok: true,
			result: [{ calls: [{ status: "0x0", gasUsed: "0x1", returnData: "0x", logs: [] }] }],
		},
		eth_call: { ok: true, result: "0x" },
		debug_traceCall: bad(-32602, "too many arguments, want at most 3"),
	});
	assert.deepEqual(engines, []);
	assert.deepEqual(said.sort(), [
		"error | the node serves no way to simulate | - | -",
		notServed("debug_traceCall", -32602),
		notServed("eth_call", "-"),
		notServed("eth_simulateV1", "-"),
	]);
});

it("keeps what it could not ask for", async () => {
	const answers: Answers = {
		eth_simulateV1: new UpstreamError("timeout"),
		debug_traceCall: bad(-32603, "internal error"),
		eth_call: bad(-32005, "limit exceeded"),
	};
	const { engines, said } = await choose(answers);
	assert.deepEqual(engines, ALL);
	assert.deepEqual(said.slice(0, 3).sort(), ALL.map(notProbed).sort());
});

it("warns where no engine runs chains", async () => {
	const none = bad(-32601, "no");
	const { engines, said } = await choose({ eth_simulateV1: none, debug_traceCall: none });
	assert.deepEqual(engines, ["eth_call"]);
	assert.match(said.at(-1) ?? "", /^warn \| the node simulates single transactions alone/);
});
