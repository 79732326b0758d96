// Tests which builder is sent which transaction, and when, where builders are marked otherwise or in trouble, and
// where simulations are slow.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeProxy } from "../../support/nodeProxy.ts";
import { RelayFixture } from "../../support/relayFixture.ts";
import { type SystemOptions, startSystem } from "../../support/startSystem.ts";
import { until } from "../../support/until.ts";

/** Methods that engines simulate by. */
const ENGINE_METHODS = ["eth_simulateV1", "debug_traceCall", "eth_call"];

async function withFixture(
	options: SystemOptions,
	run: (fixture: RelayFixture) => Promise<void>,
): Promise<void> {
	const system = await startSystem(options);
	try {
		await run(new RelayFixture(system));
	} finally {
		await system.stop();
	}
}

function proxyOf(fixture: RelayFixture): NodeProxy {
	const { node } = fixture.system;
	if (node === null) throw new Error("the system has no proxy");
	return node;
}

describe("/fullprivacy", () => {
	it("goes to the first row alone where none is marked, and is mined by it", async () => {
		const builders = [
			{ name: "first" },
			{ name: "second" },
			{ name: "third", dialect: "mev-share" as const },
		];
		await withFixture({ builders }, async (fixture) => {
			const hidden = (await fixture.actor()).sign();
			await fixture.submit("/fullprivacy", hidden);
			await fixture.sent(hidden, { builders: ["first"] });
			await fixture.passBlock();
			await fixture.sent(hidden, { builders: ["first"] });
			const open = (await fixture.actor()).sign();
			await fixture.submit("/noreverts", open);
			await fixture.sent(open);
			await fixture.system.nextBlock();
			await fixture.reaches(hidden, "INCLUDED");
			for (const name of ["second", "third"]) {
				const everything = JSON.stringify(fixture.builder(name).requests());
				assert.equal(everything.includes(hidden.raw.slice(2)), false);
				assert.equal(everything.includes(hidden.hash.slice(2)), false);
			}
		});
	});

	it("goes to every marked row, whatever its place and dialect", async () => {
		const builders = [
			{ name: "open" },
			{ name: "quiet", fullPrivacy: true },
			{ name: "share", fullPrivacy: true, dialect: "mev-share" as const },
		];
		await withFixture({ builders }, async (fixture) => {
			const hidden = (await fixture.actor()).sign();
			await fixture.submit("/fullprivacy", hidden);
			await fixture.sent(hidden, { builders: ["quiet", "share"] });
			const open = (await fixture.actor()).sign();
			await fixture.submit("/fast", open);
			await fixture.sent(open);
			assert.deepEqual(fixture.deliveries(fixture.builder("open"), hidden), []);
			// The only builder that builds may not have it: so it stays out of the block, and goes out for the next.
			await fixture.system.nextBlock();
			assert.deepEqual([await fixture.receipt(hidden), (await fixture.receipt(open))?.ok], [null, true]);
			await fixture.sent(hidden, { builders: ["quiet", "share"] });
			assert.deepEqual(fixture.deliveries(fixture.builder("open"), hidden), []);
		});
	});
});

describe("simulation comes before broadcast, and behind the answer", () => {
	it("nothing simulated goes out while the node simulates nothing; /nochecks does", async () => {
		await withFixture({ proxied: true }, async (fixture) => {
			const proxy = proxyOf(fixture);
			proxy.setFault({ kind: "error", code: -32603, message: "out of order" }, { methods: ENGINE_METHODS });
			const paths = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns"];
			const waiting = [];
			for (const path of paths) {
				const tx = (await fixture.actor()).sign();
				await fixture.submit(path, tx);
				waiting.push(tx);
			}
			for (const tx of waiting) {
				const { status, simulationError } = await fixture.reaches(tx, "SIMULATION_FAILED");
				assert.deepEqual([status, simulationError?.code], ["FAILED", "NODE_UNAVAILABLE"]);
			}
			const unchecked = (await fixture.actor()).sign();
			await fixture.submit("/nochecks", unchecked);
			await fixture.sent(unchecked);
			for (const tx of waiting) assert.deepEqual(fixture.deliveries(fixture.system.builder, tx), []);
			proxy.setFault(null);
			// Without a new block: the relay asks again by itself.
			for (const tx of waiting) await fixture.sent(tx);
			await fixture.system.nextBlock();
			for (const tx of [...waiting, unchecked]) await fixture.reaches(tx, "INCLUDED");
		});
	});

	it("the answer does not wait for a simulation that hangs", async () => {
		await withFixture({ proxied: true }, async (fixture) => {
			const proxy = proxyOf(fixture);
			proxy.setFault({ kind: "hang" }, { methods: ENGINE_METHODS });
			const tx = (await fixture.actor()).sign();
			await fixture.submit("/fast", tx);
			await until("the simulation has begun", () => ENGINE_METHODS.some((name) => proxy.calls(name).length));
			assert.deepEqual(fixture.deliveries(fixture.system.builder, tx), []);
			proxy.setFault(null);
			await fixture.sent(tx);
		});
	});

	it("what has passed on /fast goes out for the next block though the node simulates nothing any more", async () => {
		await withFixture({ proxied: true }, async (fixture) => {
			const fast = (await fixture.actor()).sign();
			const noReverts = (await fixture.actor()).sign();
			await fixture.submit("/fast", fast);
			await fixture.submit("/noreverts", noReverts);
			for (const tx of [fast, noReverts]) await fixture.sent(tx);
			const fault = { kind: "error", code: -32603, message: "out of order" } as const;
			proxyOf(fixture).setFault(fault, { methods: ENGINE_METHODS });
			const head = await fixture.passBlock();
			await fixture.sent(fast);
			await fixture.reaches(noReverts, "SIMULATION_FAILED");
			assert.deepEqual(fixture.blocks(fixture.system.builder, noReverts), [head]);
			assert.equal((await fixture.status(fast)).stage, "BROADCAST");
		});
	});
});

describe("a builder in trouble", () => {
	it("that hangs, is down or refuses delays nobody, and has its part told truthfully", async () => {
		const names = ["good", "hangs", "down", "refuses", "broken"];
		await withFixture({ builders: names.map((name) => ({ name })) }, async (fixture) => {
			fixture.builder("hangs").setFaults({ hang: true });
			fixture.builder("down").setFaults({ down: true });
			fixture.builder("refuses").setFaults({ reject: { code: -32000, message: "secret words" } });
			fixture.builder("broken").setFaults({ nonsense: "html" });
			const tx = (await fixture.actor()).sign();
			await fixture.submit("/fast", tx);
			await fixture.sent(tx, { builders: ["good"] });
			const answers = { good: "accepted", refuses: "rejected", broken: "failed", down: "failed" };
			for (const [name, answer] of Object.entries(answers)) {
				const told = await fixture.event(tx, "delivered", ({ builder }) => builder === name);
				assert.equal(told.answer, answer, name);
			}
			assert.equal(JSON.stringify(await fixture.events(tx)).includes("secret words"), false);
			// Whoever hangs for good has its connections closed in the end: only then, or at its deadline, it is told.
			await fixture.builder("hangs").stop();
			await fixture.event(
				tx,
				"delivered",
				({ builder, answer }) => builder === "hangs" && answer !== "accepted",
			);
			for (const name of names) fixture.builder(name).setFaults({});
			await fixture.passBlock();
			await fixture.sent(tx, { builders: names.filter((name) => name !== "hangs") });
			await fixture.system.nextBlock();
			await fixture.reaches(tx, "INCLUDED");
		});
	});
});
