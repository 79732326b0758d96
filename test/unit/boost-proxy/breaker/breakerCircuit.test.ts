// opossum without a will of its own: it never half-opens, never closes or opens on what is fired, and gives charged
// faults back as what they are.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChargedFault, Circuit } from "../../../../boost-proxy/breaker/breakerCircuit.ts";
import type { Attempted } from "../../../../boost-proxy/domain/breakerPorts.ts";

const ANSWERED: Attempted = { outcome: "answered" };
const CHARGED: Attempted = { outcome: "reset" };

test("a thousand charged faults do not open it, and each one is given back", async () => {
	const circuit = new Circuit("relay");
	for (let i = 0; i < 1_000; i++) {
		const got = await circuit.fire(async () => {
			throw new ChargedFault(CHARGED);
		});
		assert.equal(got, CHARGED);
	}
	assert.equal(circuit.isOpen, false);
	circuit.shutdown();
	assert.equal(circuit.isOpen, true);
});

test("what else is thrown is thrown on", async () => {
	const circuit = new Circuit("relay");
	const fault = new Error("ours");
	await assert.rejects(
		circuit.fire(() => Promise.reject(fault)),
		fault,
	);
	circuit.shutdown();
});

test("it stays open for ever until it is closed, whatever succeeds meanwhile", async (t) => {
	t.mock.timers.enable({ apis: ["setTimeout"] });
	const circuit = new Circuit("relay");
	let answer = (_: Attempted) => {};
	const late = circuit.fire(
		() =>
			new Promise<Attempted>((resolve) => {
				answer = resolve;
			}),
	);
	circuit.open();
	answer(ANSWERED);
	assert.equal(await late, ANSWERED);
	assert.equal(circuit.isOpen, true);
	// Twice the longest delay that a timer takes: that of opossum's own way to half-open.
	for (const _ of [1, 2]) {
		t.mock.timers.tick(2 ** 31 - 1);
		assert.equal(circuit.isOpen, true);
	}
	circuit.close();
	assert.equal(circuit.isOpen, false);
	circuit.shutdown();
});

test("an attempt that has no deadline of its own is given up in the end", async (t) => {
	t.mock.timers.enable({ apis: ["setTimeout"] });
	const circuit = new Circuit("relay");
	const hanging = circuit.fire(() => new Promise<Attempted>(() => {}));
	t.mock.timers.tick(600_000);
	await assert.rejects(hanging, { code: "ETIMEDOUT" });
	assert.equal(circuit.isOpen, false);
	circuit.shutdown();
});
