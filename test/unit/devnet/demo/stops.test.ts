// Stopping what was started: the last one first, once, and nothing that is started afterwards is left running.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AlreadyStopping, Stops } from "../../../devnet/demo/stops.ts";

test("the last one first, once; one that fails keeps nothing from it", async () => {
	const stops = new Stops();
	const stopped: string[] = [];
	for (const name of ["chain", "relay", "bot"]) {
		stops.add(async () => {
			stopped.push(name);
			if (name === "relay") throw new Error("it does not stop");
		});
	}
	assert.equal(stops.begun, false);
	await Promise.all([stops.all(), stops.all()]);
	assert.equal(stops.begun, true);
	assert.deepEqual(stopped, ["bot", "relay", "chain"]);
});

test("what is started after that is stopped at once, and its starter is told", async () => {
	const stops = new Stops();
	await stops.all();
	let stopped = 0;
	const stop = async (): Promise<void> => {
		stopped += 1;
	};
	assert.throws(() => stops.add(stop), AlreadyStopping);
	assert.equal(stopped, 1);
});
