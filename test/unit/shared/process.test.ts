// A process: its parts start and stop in order even if one fails or hangs, background tasks are
// awaited, and answers that arrive in time are read before their deadline.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { Background } from "../../../shared/background.ts";
import { systemClock } from "../../../shared/clock.ts";
import { SERVER_ROWS } from "../../../shared/config.ts";
import { type Component, sequence, stopLimitMs, stopOnSignals } from "../../../shared/lifecycle.ts";
import { type Logger, silentLogger } from "../../../shared/log.ts";
import { ManualClock } from "../../support/manualClock.ts";

const never = () => new Promise<never>(() => {});

function fixture() {
	const calls: string[] = [];
	const logged: string[] = [];
	const clock = new ManualClock();
	const log: Logger = {
		...silentLogger,
		info: (message) => logged.push(message),
		error: (message, fields) => logged.push(`${message} ${JSON.stringify(fields)}`),
	};
	const part = (name: string, overrides: Partial<Component> = {}): Component => ({
		name,
		start: async () => {
			calls.push(`start ${name}`);
			await overrides.start?.();
		},
		stop: async () => {
			calls.push(`stop ${name}`);
			await overrides.stop?.();
		},
	});
	const faults: string[] = [];
	const background = new Background({ onFault: (task) => faults.push(task) }, { log });
	return { calls, logged, clock, log, part, background, faults };
}

test("if a start fails, the parts already started are stopped in reverse, and the error is thrown", async () => {
	const { calls, clock, log, part } = fixture();
	const broken = part("broken", { start: () => Promise.reject(new Error("no port")) });
	const all = sequence("all", [part("a"), part("b"), broken, part("c")], { log, clock });
	await assert.rejects(all.start(), { message: "no port" });
	assert.deepEqual(calls, ["start a", "start b", "start broken", "stop b", "stop a"]);
	await all.stop();
	assert.equal(calls.length, 5);
});

test("a part that fails or hangs at its stop does not keep others from stopping", async () => {
	const { calls, logged, clock, log, part } = fixture();
	const parts = [
		part("a"),
		part("hangs", { stop: never }),
		part("throws", { stop: () => Promise.reject(new Error("0xsecret")) }),
		part("b"),
	];
	const all = sequence("all", parts, { log, clock });
	await all.start();
	let stopped = false;
	const stopping = all.stop().then(() => {
		stopped = true;
	});
	await clock.advance(7_999);
	assert.deepEqual([stopped, calls.at(-1)], [false, "stop hangs"]);
	await clock.advance(1);
	await stopping;
	assert.deepEqual(calls.slice(-4), ["stop b", "stop throws", "stop hangs", "stop a"]);
	assert.equal(logged.length, 2);
	assert.ok(!logged.join().includes("secret"));
});

test("a part that needs longer for its stop gets it", async () => {
	const { calls, clock, log, part } = fixture();
	const drains = { ...part("drains", { stop: never }), stopMs: 28_000 };
	const all = sequence("all", [part("a"), drains], { log, clock });
	await all.start();
	const stopping = all.stop();
	await clock.advance(27_999);
	assert.equal(calls.at(-1), "stop drains");
	await clock.advance(1);
	await stopping;
	assert.equal(calls.at(-1), "stop a");
});

test("the whole stop has eight seconds behind the drain, and 28 at least: a host kills 30 s after its SIGTERM", () => {
	for (const [drainSeconds, limitMs] of [
		[0, 28_000],
		[Number(SERVER_ROWS.DRAIN_SECONDS.default), 28_000],
		[21, 29_000],
		[300, 308_000],
	] as const)
		assert.equal(stopLimitMs(drainSeconds), limitMs);
});

test("a stop that takes too long exits with 1 before the host kills the process", async (t) => {
	const { clock, log, part } = fixture();
	const exits: number[] = [];
	const before = process.listeners("SIGINT");
	const exit = (code: number) => exits.push(code);
	stopOnSignals(part("relay", { stop: never }), { log, clock, limitMs: 28_000, exit });
	t.after(() => {
		for (const name of ["SIGTERM", "SIGINT"] as const) {
			for (const one of process.listeners(name)) if (!before.includes(one)) process.off(name, one);
		}
	});
	process.emit("SIGINT", "SIGINT");
	await clock.advance(27_999);
	assert.deepEqual(exits, []);
	await clock.advance(1);
	assert.deepEqual(exits, [1]);
});

test("a task that rejects or throws is logged without its message and counted", async () => {
	const fault = new TypeError("0xsecret");
	const throwing = (): Promise<void> => {
		throw fault;
	};
	for (const task of [() => Promise.reject(fault), throwing]) {
		const { background, logged, faults } = fixture();
		background.run("broken", task);
		background.run("well", () => Promise.resolve());
		await background.join();
		assert.deepEqual([faults, background.size, logged.length], [["broken"], 0, 1]);
		assert.match(logged[0] ?? "", /^background task failed .*"task":"broken","fault":\{"name":"TypeError"/);
		assert.ok(!logged.join().includes("secret"));
	}
});

test("an answer that arrived while the event loop was blocked comes before its deadline", async (t) => {
	const server = createServer().listen(0, "127.0.0.1");
	await once(server, "listening");
	const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
	const [accepted] = (await once(server, "connection")) as [Socket];
	t.after(() => {
		client.destroy();
		accepted.destroy();
		server.close();
	});
	const seen: string[] = [];
	client.on("data", () => seen.push("answer"));
	const due = new Promise<void>((resolve) => {
		systemClock.after(5, () => {
			seen.push("deadline");
			resolve();
		});
	});
	accepted.write("x");
	const until = systemClock.monotonic() + 50;
	while (systemClock.monotonic() < until);
	await due;
	assert.deepEqual(seen, ["answer", "deadline"]);
});
