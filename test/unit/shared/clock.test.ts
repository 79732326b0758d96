// Time as a dependency: deadlines and pauses under a clock moved by hand, and what the real clock promises.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { DeadlineError, DeadlineQueue, pause, systemClock, withDeadline } from "../../../shared/clock.ts";
import { ManualClock } from "../../support/manualClock.ts";

const never = () => new Promise<never>(() => {});

test("a pending timer does not keep the process alive", () => {
	const module = new URL("../../../shared/clock.ts", import.meta.url).href;
	const code = `import { systemClock } from ${JSON.stringify(module)}; systemClock.after(60_000, () => {});`;
	const args = [...process.execArgv, "--input-type=module", "--eval", code];
	const { status, signal } = spawnSync(process.execPath, args, { timeout: 20_000 });
	assert.deepEqual([status, signal], [0, null]);
});

test("work within its deadline is as if there was none, and leaves no timer behind", async () => {
	const clock = new ManualClock();
	assert.equal(await withDeadline(clock, "work", 100, () => Promise.resolve("done")), "done");
	await assert.rejects(
		withDeadline(clock, "work", 100, () => Promise.reject(new TypeError("its own"))),
		{ name: "TypeError", message: "its own" },
	);
	await clock.advance(0);
	assert.equal(clock.timers, 0);
});

test("when the time is up it is told, even if the work ignores its signal", async () => {
	const clock = new ManualClock();
	let signal: AbortSignal | undefined;
	const outcome = withDeadline(clock, "the node", 100, (given) => {
		signal = given;
		return never();
	}).catch((thrown: unknown) => thrown);
	await clock.advance(99);
	assert.equal(signal?.aborted, false);
	await clock.advance(1);
	const thrown = await outcome;
	assert.ok(thrown instanceof DeadlineError);
	assert.deepEqual([thrown.code, thrown.message], ["DEADLINE", "the node: no answer within 100 ms"]);
	assert.equal(signal?.aborted, true);
	assert.equal(signal?.reason, thrown);
});

test("what came while the event loop stood still comes before the deadline that it met", async (t) => {
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

test("work that throws before it gives a promise is a rejection, and leaves no timer behind", async () => {
	const clock = new ManualClock();
	const thrower = (): Promise<never> => {
		throw new RangeError("at once");
	};
	await assert.rejects(withDeadline(clock, "work", 100, thrower), { name: "RangeError" });
	await clock.advance(0);
	assert.equal(clock.timers, 0);
});

test("a pause lasts as long as it says", async () => {
	const clock = new ManualClock();
	let over = false;
	const pausing = pause(clock, 50).then(() => {
		over = true;
	});
	await clock.advance(49);
	assert.equal(over, false);
	await clock.advance(1);
	await pausing;
	assert.deepEqual([over, clock.timers], [true, 0]);
});

test("a pause ends at once when its signal is aborted, and never rejects", async () => {
	const clock = new ManualClock();
	const controller = new AbortController();
	const pausing = pause(clock, 50, controller.signal);
	controller.abort(new Error("why"));
	await pausing;
	await pause(clock, 50, controller.signal);
	assert.equal(clock.timers, 0);
});

test("each task runs out in its own time, those called off never, and there is one timer", async () => {
	const clock = new ManualClock();
	const queue = new DeadlineQueue({ ms: 100 }, { clock });
	const expired: string[] = [];
	queue.add(() => expired.push("a"));
	await clock.advance(40);
	const b = queue.add(() => expired.push("b"));
	queue.add(() => expired.push("c"));
	assert.equal(clock.timers, 1);
	queue.cancel(b);
	queue.cancel(b);
	await clock.advance(59);
	assert.deepEqual(expired, []);
	await clock.advance(1);
	assert.deepEqual(expired, ["a"]);
	await clock.advance(39);
	assert.deepEqual(expired, ["a"]);
	await clock.advance(1);
	assert.deepEqual(expired, ["a", "c"]);
	assert.equal(clock.timers, 0);
});
