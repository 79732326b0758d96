// Start and stop in order, whatever fails or hangs on the way, and signals that come more than once.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	assembled,
	type Component,
	STOP_LIMIT_MS,
	sequence,
	stopOnParent,
	stopOnSignals,
} from "../../../shared/lifecycle.ts";
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
	return { calls, logged, clock, log, part };
}

test("parts start in order, one after another, and stop in reverse", async () => {
	const { calls, clock, log, part } = fixture();
	let finish = () => {};
	const slow = part("store", {
		start: () =>
			new Promise((resolve) => {
				finish = resolve;
			}),
	});
	const all = sequence("all", [slow, part("pool"), part("ingress")], { log, clock });
	const starting = all.start();
	await clock.advance(0);
	assert.deepEqual(calls, ["start store"]);
	finish();
	await starting;
	await all.stop();
	await all.stop();
	assert.deepEqual(calls, [
		...["start store", "start pool", "start ingress"],
		...["stop ingress", "stop pool", "stop store"],
	]);
	assert.equal(all.name, "all");
});

test("when a start fails, what was started is stopped, and the failure is told", async () => {
	const { calls, clock, log, part } = fixture();
	const broken = part("broken", { start: () => Promise.reject(new Error("no port")) });
	const all = sequence("all", [part("a"), part("b"), broken, part("c")], { log, clock });
	await assert.rejects(all.start(), { message: "no port" });
	assert.deepEqual(calls, ["start a", "start b", "start broken", "stop b", "stop a"]);
	await all.stop();
	assert.equal(calls.length, 5);
});

test("a part that fails or hangs at its stop holds up nobody", async () => {
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

test("stopped while it starts: nothing more is started, and all that was is stopped", async () => {
	const { calls, clock, log, part } = fixture();
	let finish = () => {};
	const slow = part("slow", {
		start: () =>
			new Promise((resolve) => {
				finish = resolve;
			}),
	});
	const all = sequence("all", [part("a"), slow, part("b")], { log, clock });
	const starting = all.start().catch(() => {});
	await clock.advance(0);
	const stopping = all.stop();
	await clock.advance(0);
	finish();
	await starting;
	await stopping;
	await clock.advance(0);
	const open = new Set<string>();
	for (const call of calls) {
		const [verb, name = ""] = call.split(" ");
		if (verb === "start") open.add(name);
		else open.delete(name);
	}
	assert.deepEqual([...open], [], calls.join(", "));
	assert.ok(!calls.includes("start b"), "it went on starting");
});

const ENDS = ["SIGTERM", "SIGINT", "disconnect"] as const;

/** Runs `stopOnSignals` (or another) on this process, and takes its listeners away again. */
async function withSignals(
	stop: () => Promise<void>,
	run: (fixture: { exits: number[]; clock: ManualClock; stops: () => number }) => Promise<void>,
	listen = stopOnSignals,
): Promise<void> {
	const { clock, log, part } = fixture();
	const exits: number[] = [];
	let stops = 0;
	const before = ENDS.map((name) => [name, process.listeners(name as "SIGTERM")] as const);
	const component = part("relay", {
		stop: () => {
			stops += 1;
			return stop();
		},
	});
	listen(component, { log, clock, exit: (code) => exits.push(code) });
	try {
		await run({ exits, clock, stops: () => stops });
	} finally {
		for (const [name, listeners] of before) {
			for (const listener of process.listeners(name as "SIGTERM")) {
				if (!listeners.includes(listener)) process.off(name, listener);
			}
		}
	}
}

test("the first signal stops it once, and the process ends with 0", async () => {
	await withSignals(
		() => Promise.resolve(),
		async ({ exits, clock, stops }) => {
			process.emit("SIGTERM", "SIGTERM");
			process.emit("SIGINT", "SIGINT");
			process.emit("SIGTERM", "SIGTERM");
			await clock.advance(0);
			assert.deepEqual([exits, stops()], [[0], 1]);
		},
	);
});

test("a stop that takes too long ends with 1, before the host's patience does", async () => {
	assert.ok(STOP_LIMIT_MS < 30_000);
	await withSignals(never, async ({ exits, clock }) => {
		process.emit("SIGINT", "SIGINT");
		await clock.advance(STOP_LIMIT_MS - 1);
		assert.deepEqual(exits, []);
		await clock.advance(1);
		assert.deepEqual(exits, [1]);
	});
});

test("a server is assembled at its start, anew each time, and has a port while it runs", async () => {
	const { calls, part } = fixture();
	let port = 7_000;
	const server = assembled("server", async () => {
		port += 1;
		if (port === 7_002) throw new Error("not now");
		return { component: part(`${port}`), port: () => port };
	});
	await server.stop();
	assert.equal(server.port, 0);
	await server.start();
	assert.equal(server.port, 7_001);
	await server.stop();
	assert.equal(server.port, 0);
	await assert.rejects(server.start(), /not now/);
	assert.equal(server.port, 0);
	await server.start();
	assert.equal(server.port, 7_003);
	assert.deepEqual(calls, ["start 7001", "stop 7001", "start 7003"]);
});

test("a stop that fails ends with 1", async () => {
	await withSignals(
		() => Promise.reject(new Error("no")),
		async ({ exits, clock }) => {
			process.emit("SIGTERM", "SIGTERM");
			await clock.advance(0);
			assert.deepEqual(exits, [1]);
		},
	);
});

test("under a parent it stops when the channel closes, or is closed already, and by no signal", async () => {
	const { connected } = process;
	for (const isThere of [true, false]) {
		await withSignals(
			() => Promise.resolve(),
			async ({ exits, clock, stops }) => {
				process.emit("SIGTERM", "SIGTERM");
				process.emit("SIGINT", "SIGINT");
				await clock.advance(0);
				assert.deepEqual([exits, stops()], isThere ? [[], 0] : [[0], 1]);
				process.emit("disconnect");
				process.emit("disconnect");
				await clock.advance(0);
				assert.deepEqual([exits, stops()], [[0], 1]);
			},
			(...args) => {
				process.connected = isThere;
				stopOnParent(...args);
				process.connected = connected;
			},
		);
	}
});
