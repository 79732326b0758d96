// A process: its parts start and stop in order, whatever fails or hangs on the way, work that nobody awaits is joined, and
// whether the native packages are loaded is told truthfully.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { Background } from "../../../shared/background.ts";
import { type Component, STOP_LIMIT_MS, sequence, stopOnSignals } from "../../../shared/lifecycle.ts";
import { type Logger, silentLogger } from "../../../shared/log.ts";
import { nativeBindings } from "../../../shared/process.ts";
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

/** Runs `stopOnSignals` on this process, and takes its listeners away again. */
async function withSignals(
	stop: () => Promise<void>,
	run: (exits: readonly number[], clock: ManualClock) => Promise<void>,
): Promise<void> {
	const { clock, log, part } = fixture();
	const exits: number[] = [];
	const signals = ["SIGTERM", "SIGINT"] as const;
	const before = signals.flatMap((name) => process.listeners(name));
	stopOnSignals(part("relay", { stop }), { log, clock, exit: (code) => exits.push(code) });
	try {
		await run(exits, clock);
	} finally {
		for (const name of signals) {
			for (const listener of process.listeners(name)) {
				if (!before.includes(listener)) process.off(name, listener);
			}
		}
	}
}

test("a stop that takes too long ends with 1, before the host's patience does", async () => {
	assert.ok(STOP_LIMIT_MS < 30_000);
	await withSignals(never, async (exits, clock) => {
		process.emit("SIGINT", "SIGINT");
		await clock.advance(STOP_LIMIT_MS - 1);
		assert.deepEqual(exits, []);
		await clock.advance(1);
		assert.deepEqual(exits, [1]);
	});
});

test("a stop that fails ends with 1", async () => {
	await withSignals(
		() => Promise.reject(new Error("no")),
		async (exits, clock) => {
			process.emit("SIGTERM", "SIGTERM");
			await clock.advance(0);
			assert.deepEqual(exits, [1]);
		},
	);
});

test("a task begins at once, is counted while it runs, and is joined", async () => {
	const { background } = fixture();
	let finish = () => {};
	let begun = false;
	background.run("task", () => {
		begun = true;
		return new Promise((resolve) => {
			finish = resolve;
		});
	});
	assert.deepEqual([begun, background.size], [true, 1]);
	let joined = false;
	const joining = background.join().then(() => {
		joined = true;
	});
	await Promise.resolve();
	assert.equal(joined, false);
	finish();
	await joining;
	assert.deepEqual([joined, background.size], [true, 0]);
});

test("what a task starts is joined too", async () => {
	const { background } = fixture();
	const ran: string[] = [];
	background.run("first", async () => {
		await Promise.resolve();
		background.run("second", async () => {
			await Promise.resolve();
			ran.push("second");
		});
		ran.push("first");
	});
	await background.join();
	assert.deepEqual(ran, ["first", "second"]);
});

test("a task that rejects or throws is logged without its message, counted, and stops nobody", async () => {
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

const run = promisify(execFile);
const source = new URL("../../../shared/process.ts", import.meta.url).href;

/** Where both packages bring a binary; elsewhere they are built at the install, if there is a compiler. */
const shipped = ["linux-x64", "win32-x64"].includes(`${process.platform}-${process.arch}`);

test("both packages are native where they bring binaries", { skip: !shipped }, () => {
	assert.deepEqual(nativeBindings(), { secp256k1: true, keccak: true });
});

test("tells of the JavaScript fallbacks where add-ons cannot be loaded", async () => {
	const script = `const { nativeBindings } = await import(${JSON.stringify(source)});
		process.stdout.write(JSON.stringify(nativeBindings()));`;
	const flags = ["--no-addons", ...process.execArgv, "--input-type=module", "--eval", script];
	const { stdout } = await run(process.execPath, flags, { timeout: 20_000 });
	assert.deepEqual(JSON.parse(stdout), { secp256k1: false, keccak: false });
});
