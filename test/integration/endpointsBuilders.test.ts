// Tests which builder is sent which transaction, and when, where builders are marked otherwise or in trouble, and
// where simulations are slow.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeProxy } from "../support/nodeProxy.ts";
import { RelayScene } from "../support/relayScene.ts";
import { type SystemOptions, startSystem } from "../support/startSystem.ts";
import { until } from "../support/until.ts";

/** Methods that engines simulate by. */
const ENGINE_METHODS = ["eth_simulateV1", "debug_traceCall", "eth_call"];

async function withScene(options: SystemOptions, run: (scene: RelayScene) => Promise<void>): Promise<void> {
	const system = await startSystem(options);
	try {
		await run(new RelayScene(system));
	} finally {
		await system.stop();
	}
}

function proxyOf(scene: RelayScene): NodeProxy {
	const { node } = scene.system;
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
		await withScene({ builders }, async (scene) => {
			const hidden = (await scene.actor()).sign();
			await scene.submit("/fullprivacy", hidden);
			await scene.sent(hidden, { builders: ["first"] });
			await scene.passBlock();
			await scene.sent(hidden, { builders: ["first"] });
			const open = (await scene.actor()).sign();
			await scene.submit("/noreverts", open);
			await scene.sent(open);
			await scene.system.nextBlock();
			await scene.reaches(hidden, "INCLUDED");
			for (const name of ["second", "third"]) {
				const everything = JSON.stringify(scene.builder(name).requests());
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
		await withScene({ builders }, async (scene) => {
			const hidden = (await scene.actor()).sign();
			await scene.submit("/fullprivacy", hidden);
			await scene.sent(hidden, { builders: ["quiet", "share"] });
			const open = (await scene.actor()).sign();
			await scene.submit("/fast", open);
			await scene.sent(open);
			assert.deepEqual(scene.deliveries(scene.builder("open"), hidden), []);
			// The only builder that builds may not have it: so it stays out of the block, and goes out for the next.
			await scene.system.nextBlock();
			assert.deepEqual([await scene.receipt(hidden), (await scene.receipt(open))?.ok], [null, true]);
			await scene.sent(hidden, { builders: ["quiet", "share"] });
			assert.deepEqual(scene.deliveries(scene.builder("open"), hidden), []);
		});
	});
});

describe("simulation comes before broadcast, and behind the answer", () => {
	it("nothing simulated goes out while the node simulates nothing; /nochecks does", async () => {
		await withScene({ proxied: true }, async (scene) => {
			const proxy = proxyOf(scene);
			proxy.setFault({ kind: "error", code: -32603, message: "out of order" }, { methods: ENGINE_METHODS });
			const paths = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns"];
			const waiting = [];
			for (const path of paths) {
				const tx = (await scene.actor()).sign();
				await scene.submit(path, tx);
				waiting.push(tx);
			}
			for (const tx of waiting) {
				const { status, simulationError } = await scene.reaches(tx, "SIMULATION_FAILED");
				assert.deepEqual([status, simulationError?.code], ["FAILED", "NODE_UNAVAILABLE"]);
			}
			const unchecked = (await scene.actor()).sign();
			await scene.submit("/nochecks", unchecked);
			await scene.sent(unchecked);
			for (const tx of waiting) assert.deepEqual(scene.deliveries(scene.system.builder, tx), []);
			proxy.setFault(null);
			// Without a new block: the relay asks again by itself.
			for (const tx of waiting) await scene.sent(tx);
			await scene.system.nextBlock();
			for (const tx of [...waiting, unchecked]) await scene.reaches(tx, "INCLUDED");
		});
	});

	it("the answer does not wait for a simulation that hangs", async () => {
		await withScene({ proxied: true }, async (scene) => {
			const proxy = proxyOf(scene);
			proxy.setFault({ kind: "hang" }, { methods: ENGINE_METHODS });
			const tx = (await scene.actor()).sign();
			await scene.submit("/fast", tx);
			await until("the simulation has begun", () => ENGINE_METHODS.some((name) => proxy.calls(name).length));
			assert.deepEqual(scene.deliveries(scene.system.builder, tx), []);
			proxy.setFault(null);
			await scene.sent(tx);
		});
	});

	it("what has passed on /fast goes out for the next block though the node simulates nothing any more", async () => {
		await withScene({ proxied: true }, async (scene) => {
			const fast = (await scene.actor()).sign();
			const noReverts = (await scene.actor()).sign();
			await scene.submit("/fast", fast);
			await scene.submit("/noreverts", noReverts);
			for (const tx of [fast, noReverts]) await scene.sent(tx);
			const fault = { kind: "error", code: -32603, message: "out of order" } as const;
			proxyOf(scene).setFault(fault, { methods: ENGINE_METHODS });
			const head = await scene.passBlock();
			await scene.sent(fast);
			await scene.reaches(noReverts, "SIMULATION_FAILED");
			assert.deepEqual(scene.blocks(scene.system.builder, noReverts), [head]);
			assert.equal((await scene.status(fast)).stage, "BROADCAST");
		});
	});
});

describe("a builder in trouble", () => {
	it("that hangs, is down or refuses delays nobody, and has its part told truthfully", async () => {
		const names = ["good", "hangs", "down", "refuses", "broken"];
		await withScene({ builders: names.map((name) => ({ name })) }, async (scene) => {
			scene.builder("hangs").setFaults({ hang: true });
			scene.builder("down").setFaults({ down: true });
			scene.builder("refuses").setFaults({ reject: { code: -32000, message: "secret words" } });
			scene.builder("broken").setFaults({ nonsense: "html" });
			const tx = (await scene.actor()).sign();
			await scene.submit("/fast", tx);
			await scene.sent(tx, { builders: ["good"] });
			const answers = { good: "accepted", refuses: "rejected", broken: "failed", down: "failed" };
			for (const [name, answer] of Object.entries(answers)) {
				const told = await scene.event(tx, "delivered", ({ builder }) => builder === name);
				assert.equal(told.answer, answer, name);
			}
			assert.equal(JSON.stringify(await scene.events(tx)).includes("secret words"), false);
			// Whoever hangs for good has its connections closed in the end: only then, or at its deadline, it is told.
			await scene.builder("hangs").stop();
			await scene.event(
				tx,
				"delivered",
				({ builder, answer }) => builder === "hangs" && answer !== "accepted",
			);
			for (const name of names) scene.builder(name).setFaults({});
			await scene.passBlock();
			await scene.sent(tx, { builders: names.filter((name) => name !== "hangs") });
			await scene.system.nextBlock();
			await scene.reaches(tx, "INCLUDED");
		});
	});
});
