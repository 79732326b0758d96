// Each row of the table of submission endpoints before builders of three kinds: what each builder's
// own record says it was sent, when and how; also where builders are marked otherwise or in
// trouble, and where the node simulates nothing.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { EMITTER } from "../../support/biddingFixture.ts";
import { EMITS } from "../../support/contracts.ts";
import { sized } from "../../support/length.ts";
import type { NodeFault, NodeProxy } from "../../support/nodes.ts";
import { type Delivery, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { type SystemOptions, startSystem, type TestSystem } from "../../support/systems.ts";
import { accountOf } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import { CancelFixture } from "../../support/userFixtures.ts";

const SIGNING_KEY = `0x${"5e".repeat(32)}`;
const ALL = ["vault", "plain", "share"];
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const LIFE_BLOCKS = 25;

let system: TestSystem;
let fixture: CancelFixture;

before(async () => {
	system = await startSystem({
		builders: [
			{ name: "vault", fullPrivacy: true },
			{ name: "plain", privateMethod: "eth_sendPrivateTransaction" },
			{ name: "share", dialect: "mev-share", privateMethod: "eth_sendRawTransaction" },
		],
		env: { SIGNING_KEY },
	});
	fixture = new CancelFixture(system);
});
after(() => system.stop());

/**
 * The param of a delivery of `tx` to a builder of the name, as the interface and the decisions want
 * it.
 */
function expectedParam(builder: string, tx: Signed, block: number, mayRevert: boolean, uuid: string | null) {
	const number = `0x${block.toString(16)}`;
	if (builder === "share") {
		return {
			version: "v0.1",
			inclusion: { block: number, maxBlock: number },
			body: [{ tx: tx.raw, canRevert: mayRevert }],
			validity: { refund: [], refundConfig: [] },
			privacy: { hints: [] },
			replacementUuid: uuid,
		};
	}
	const revertingTxHashes = mayRevert ? [tx.hash] : [];
	return { txs: [tx.raw], blockNumber: number, revertingTxHashes, replacementUuid: uuid };
}

function paramsOf(deliveries: readonly Delivery[]): readonly unknown[] {
	return deliveries.map(({ request }) => request.params);
}

const BUNDLE_ROWS = [
	{ path: "/", mayRevert: true, again: false, builders: ALL, fastMode: true },
	{ path: "/fast", mayRevert: true, again: false, builders: ALL, fastMode: true },
	{ path: "/noreverts", mayRevert: false, again: true, builders: ALL, fastMode: false },
	{ path: "/fullprivacy", mayRevert: false, again: true, builders: ["vault"], fastMode: false },
	{ path: "/maxbackruns", mayRevert: true, again: false, builders: ALL, fastMode: false },
] as const;

describe("paths that send bundles", () => {
	for (const { path, mayRevert, again, builders, fastMode } of BUNDLE_ROWS) {
		it(`${path}: to ${builders.join(", ")}, on arrival and again for each block, until it is mined`, async () => {
			const tx = (await fixture.actor()).sign();
			const first = (await fixture.head()) + 1;
			await fixture.submit(path, tx);
			await fixture.waitUntilSent(tx, { builders });
			for (let i = 0; i < 2; i += 1) {
				await fixture.passBlock();
				await fixture.waitUntilSent(tx, { builders });
			}
			const pending = await fixture.status(tx);
			assert.deepEqual([pending.status, pending.stage, pending.fastMode], ["UNKNOWN", "BROADCAST", fastMode]);
			await system.nextBlock();
			assert.deepEqual(await fixture.receipt(tx).then((found) => found?.ok), true);
			await fixture.fence();
			for (const name of builders) {
				const deliveries = fixture.deliveries(fixture.builder(name), tx);
				const uuid = deliveries[0]?.uuid ?? null;
				assert.match(String(uuid), UUID_V4);
				const method = name === "share" ? "mev_sendBundle" : "eth_sendBundle";
				assert.deepEqual(
					deliveries.map((one) => one.method),
					[method, method, method],
				);
				const expected = [0, 1, 2].map((i) => [expectedParam(name, tx, first + i, mayRevert, uuid)]);
				assert.deepEqual(paramsOf(deliveries), expected);
			}
			for (const name of ALL.filter((one) => !builders.some((known) => known === one))) {
				assert.deepEqual(fixture.deliveries(fixture.builder(name), tx), [], `${name} has it`);
			}
			const record = await fixture.reaches(tx, "INCLUDED");
			assert.deepEqual([record.status, record.fastMode], ["INCLUDED", fastMode]);
			const simulated = (block: number) => (again ? [`simulated ${block}`] : []);
			assert.deepEqual(await fixture.life(tx), [
				`received ${first - 1}`,
				...(path === "/maxbackruns" ? ["shared"] : []),
				`ready ${first}`,
				`simulated ${first}`,
				`broadcast ${first}`,
				...[first + 1, first + 2].flatMap((block) => [...simulated(block), `broadcast ${block}`]),
				`included ${first + 2}`,
			]);
		});
	}
});

describe("/nochecks", () => {
	it("goes as a private transaction by each builder's own method, again for each block, until it is mined", async () => {
		const tx = (await fixture.actor()).sign();
		const first = (await fixture.head()) + 1;
		await fixture.submit("/nochecks", tx);
		await fixture.waitUntilSent(tx);
		await fixture.passBlock();
		for (const builder of system.builders) {
			await until("sent again", () => fixture.deliveries(builder, tx).length === 2);
		}
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		await fixture.fence();
		const lastBlock = `0x${(first + LIFE_BLOCKS - 1).toString(16)}`;
		const expected = [
			["vault", "eth_sendPrivateRawTransaction", [tx.raw]],
			["plain", "eth_sendPrivateTransaction", [{ tx: tx.raw, maxBlockNumber: lastBlock }]],
			["share", "eth_sendRawTransaction", [tx.raw]],
		] as const;
		for (const [name, method, params] of expected) {
			const sent = fixture.deliveries(fixture.builder(name), tx).map(({ request }) => request);
			assert.deepEqual(
				sent.map((request) => [request.method, request.params]),
				[
					[method, params],
					[method, params],
				],
			);
		}
	});
});

describe("what is common to all paths", () => {
	it("the same bytes on another path return the hash, and keep the treatment of the first path", async () => {
		const tx = (await fixture.actor()).sign();
		const first = (await fixture.head()) + 1;
		await fixture.submit("/fullprivacy", tx);
		await fixture.waitUntilSent(tx, { builders: ["vault"] });
		for (const path of ["/nochecks", "/fast", "/fullprivacy"]) await fixture.submit(path, tx);
		await fixture.passBlock();
		await fixture.waitUntilSent(tx, { builders: ["vault"] });
		await fixture.fence();
		for (const name of ["plain", "share"]) {
			assert.deepEqual(fixture.deliveries(fixture.builder(name), tx), []);
		}
		assert.deepEqual(fixture.blocks(fixture.builder("vault"), tx), [first, first + 1]);
		await system.nextBlock();
		assert.equal((await fixture.reaches(tx, "INCLUDED")).fastMode, false);
		await fixture.submit("/nochecks", tx);
	});

	it("every request's body is signed with the relay's key, and the builder accepts it", async () => {
		await fixture.fence();
		const { address } = accountOf(SIGNING_KEY);
		for (const builder of system.builders) {
			const requests = builder.requests();
			assert.ok(requests.length > 0);
			for (const { signer, headers, answer } of requests) {
				assert.equal(signer?.toLowerCase(), address);
				assert.equal(
					String(headers["x-flashbots-signature"]).toLowerCase().startsWith(`${address}:0x`),
					true,
				);
				assert.ok(answer !== null && "result" in answer, "a builder has refused it");
			}
		}
	});
});

describe("query parameters", () => {
	it("refundRecipient and referrer are in the record once it is not UNKNOWN", async () => {
		const tx = (await fixture.actor()).sign();
		const recipient = `0x${"Ab".repeat(20)}`;
		await fixture.submit(`/fast?referrer=a%20wallet%26co&refundRecipient=${recipient}&unknown=1`, tx);
		await fixture.waitUntilSent(tx);
		const pending = await fixture.status(tx);
		assert.deepEqual([pending.referrer, pending.refundRecipient, pending.rpc_timestamp], [null, null, null]);
		await system.nextBlock();
		const record = await fixture.reaches(tx, "INCLUDED");
		assert.deepEqual([record.referrer, record.refundRecipient], ["a wallet&co", recipient.toLowerCase()]);
	});

	it("both spellings are taken on the paths where they count, and a bad value is refused and nothing kept", async () => {
		for (const query of ["softCancellations=true", "softcancel=1"]) {
			const tx = (await fixture.actor()).sign();
			await fixture.submit(`/noreverts?${query}`, tx);
			await fixture.waitUntilSent(tx);
		}
		const tx = (await fixture.actor()).sign();
		for (const query of ["softCancellations=yes", "refundRecipient=0x12", `referrer=${"x".repeat(65)}`]) {
			const { error } = await system.client.ask("eth_sendRawTransaction", [tx.raw], `/noreverts?${query}`);
			assert.equal(error?.code, -32602, query);
		}
		assert.equal((await fixture.status(tx)).stage, undefined);
	});
});

describe("Flashbots' query parameters", () => {
	/** A transaction that emits an event, and so is disclosed on `/fast`. */
	async function emitting(query: string): Promise<Signed> {
		const tx = (await fixture.actor()).sign({ to: EMITTER });
		await fixture.submit(`/fast?${query}`, tx);
		return tx;
	}

	it("without a hint of the call data searchers see nothing; with one, what they always see", async () => {
		await system.chain.rpc("anvil_setCode", [EMITTER, EMITS]);
		const recipient = `0x${"Cd".repeat(20)}`;
		const hidden = [];
		for (const query of ["hint=hash", "originId=w", `refund=${recipient}:90`, "builder=Plain"])
			hidden.push(await emitting(query));
		const shown = await emitting(`hint=calldata&hint=logs&refund=${recipient}:90&originId=w&blockRange=25`);
		await until("it is shared", async () => (await fixture.status(shown)).shared);
		for (const tx of hidden.slice(0, 3)) await fixture.waitUntilSent(tx);
		await fixture.waitUntilSent(hidden[3] as Signed, { builders: ["plain"] });
		await system.nextBlock();
		for (const tx of hidden.slice(0, 3)) assert.equal((await fixture.reaches(tx, "INCLUDED")).shared, false);
		const { shared, refundRecipient, referrer } = await fixture.reaches(shown, "INCLUDED");
		assert.deepEqual([shared, refundRecipient, referrer], [true, recipient.toLowerCase(), "w"]);
		await fixture.fence();
		for (const name of ["vault", "share"])
			assert.deepEqual(fixture.deliveries(fixture.builder(name), hidden[3] as Signed), []);
	});

	it("what can't be kept is refused by its name, and nothing is kept", async () => {
		const tx = (await fixture.actor()).sign();
		const address = `0x${"ab".repeat(20)}`;
		for (const [target, message] of [
			[`/fast?refund=${address}:50`, "refund: expected 90 percent, as for every refund"],
			["/fast?blockRange=5", "blockRange: expected 25, as for every transaction"],
			["/fast?builder=nobody", "builder: expected the name of a builder that this path sends to"],
			["/fullprivacy?builder=plain", "builder: expected the name of a builder that this path sends to"],
			["/fast?useMempool=true", "useMempool: expected false: nothing goes to the public mempool"],
		]) {
			const { error } = await system.client.ask("eth_sendRawTransaction", [tx.raw], target);
			assert.deepEqual(error, { code: -32602, message: `invalid params: ${message}` }, target);
		}
		assert.equal((await fixture.status(tx)).stage, undefined);
	});
});

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
	it("goes only to the first builder if none is marked for it, which mines it", async () => {
		const builders = [
			{ name: "first" },
			{ name: "second" },
			{ name: "third", dialect: "mev-share" as const },
		];
		await withFixture({ builders }, async (fixture) => {
			const hidden = (await fixture.actor()).sign();
			await fixture.submit("/fullprivacy", hidden);
			await fixture.waitUntilSent(hidden, { builders: ["first"] });
			await fixture.passBlock();
			await fixture.waitUntilSent(hidden, { builders: ["first"] });
			const open = (await fixture.actor()).sign();
			await fixture.submit("/noreverts", open);
			await fixture.waitUntilSent(open);
			await fixture.system.nextBlock();
			await fixture.reaches(hidden, "INCLUDED");
			for (const name of ["second", "third"]) {
				const everything = JSON.stringify(fixture.builder(name).requests());
				assert.equal(everything.includes(hidden.raw.slice(2)), false);
				assert.equal(everything.includes(hidden.hash.slice(2)), false);
			}
		});
	});

	it("goes to every builder marked for it, whatever its position and dialect", async () => {
		const builders = [
			{ name: "open" },
			{ name: "quiet", fullPrivacy: true },
			{ name: "share", fullPrivacy: true, dialect: "mev-share" as const },
		];
		await withFixture({ builders }, async (fixture) => {
			const hidden = (await fixture.actor()).sign();
			await fixture.submit("/fullprivacy", hidden);
			await fixture.waitUntilSent(hidden, { builders: ["quiet", "share"] });
			const open = (await fixture.actor()).sign();
			await fixture.submit("/fast", open);
			await fixture.waitUntilSent(open);
			assert.deepEqual(fixture.deliveries(fixture.builder("open"), hidden), []);
			// The only builder that builds may not have it: so it stays out of the block, and goes out
			// for the next.
			await fixture.system.nextBlock();
			assert.deepEqual([await fixture.receipt(hidden), (await fixture.receipt(open))?.ok], [null, true]);
			await fixture.waitUntilSent(hidden, { builders: ["quiet", "share"] });
			assert.deepEqual(fixture.deliveries(fixture.builder("open"), hidden), []);
		});
	});
});

describe("simulation comes before broadcast, and behind the answer", () => {
	let fixture: RelayFixture;
	before(async () => {
		fixture = new RelayFixture(await startSystem({ proxied: true }));
	});
	after(() => fixture.system.stop());

	const out: NodeFault = { kind: "error", code: -32603, message: "out of order" };
	const FAULTS: readonly (readonly [string, NodeFault])[] = [
		["says that it is out of order", out],
		["closes the connection", { kind: "destroy" }],
		["does not have the state", { kind: "error", code: -32000, message: "header not found" }],
		["answers a page", { kind: "html", status: 500 }],
		["breaks off in its answer", { kind: "truncated" }],
		["answers another question", { kind: "wrongId" }],
		["answers null", { kind: "result", result: null }],
	];

	it("while the node can't simulate only /nochecks is sent; the rest is sent once it can again", async () => {
		const proxy = proxyOf(fixture);
		for (const [what, fault] of FAULTS.slice(0, sized(3, FAULTS.length))) {
			proxy.setFault(fault, { methods: ENGINE_METHODS });
			const paths = fault === out ? ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns"] : ["/fast"];
			const waiting: Signed[] = [];
			for (const path of paths) {
				const tx = (await fixture.actor()).sign();
				await fixture.submit(path, tx);
				waiting.push(tx);
			}
			for (const tx of waiting) {
				const { status, simulationError } = await fixture.reaches(tx, "SIMULATION_FAILED");
				assert.deepEqual([status, simulationError?.code], ["FAILED", "NODE_UNAVAILABLE"], what);
			}
			const unchecked = (await fixture.actor()).sign();
			await fixture.submit("/nochecks", unchecked);
			await fixture.waitUntilSent(unchecked);
			for (const tx of waiting) assert.deepEqual(fixture.deliveries(fixture.system.builder, tx), [], what);
			proxy.setFault(null);
			// Without a new block: the relay asks again by itself.
			for (const tx of waiting) await fixture.waitUntilSent(tx);
			await fixture.system.nextBlock();
			for (const tx of [...waiting, unchecked]) await fixture.reaches(tx, "INCLUDED");
		}
	});

	it("the answer does not wait for a simulation that hangs", async () => {
		const proxy = proxyOf(fixture);
		proxy.reset();
		proxy.setFault({ kind: "hang" }, { methods: ENGINE_METHODS });
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await until("the simulation has begun", () => ENGINE_METHODS.some((name) => proxy.calls(name).length));
		assert.deepEqual(fixture.deliveries(fixture.system.builder, tx), []);
		proxy.setFault(null);
		await fixture.waitUntilSent(tx);
	});

	it("what has passed on /fast is sent for the next block even if the node can't simulate any more", async () => {
		const fast = (await fixture.actor()).sign();
		const noReverts = (await fixture.actor()).sign();
		await fixture.submit("/fast", fast);
		await fixture.submit("/noreverts", noReverts);
		for (const tx of [fast, noReverts]) await fixture.waitUntilSent(tx);
		proxyOf(fixture).setFault(out, { methods: ENGINE_METHODS });
		const head = await fixture.passBlock();
		await fixture.waitUntilSent(fast);
		await fixture.reaches(noReverts, "SIMULATION_FAILED");
		assert.deepEqual(fixture.blocks(fixture.system.builder, noReverts), [head]);
		await fixture.reaches(fast, "BROADCAST");
	});
});

describe("a builder in trouble", () => {
	it("that hangs, is down or refuses delays nobody, and its answers are reported truthfully", async () => {
		const names = ["good", "hangs", "down", "refuses", "broken"];
		await withFixture({ builders: names.map((name) => ({ name })) }, async (fixture) => {
			fixture.builder("hangs").setFaults({ hang: true });
			fixture.builder("down").setFaults({ down: true });
			fixture.builder("refuses").setFaults({ reject: { code: -32000, message: "secret words" } });
			fixture.builder("broken").setFaults({ nonsense: "html" });
			const tx = (await fixture.actor()).sign();
			await fixture.submit("/fast", tx);
			await fixture.waitUntilSent(tx, { builders: ["good"] });
			const answers = { good: "accepted", refuses: "rejected", broken: "failed", down: "failed" };
			for (const [name, answer] of Object.entries(answers)) {
				const told = await fixture.event(tx, "delivered", ({ builder }) => builder === name);
				assert.equal(told.answer, answer, name);
			}
			assert.equal(JSON.stringify(await fixture.events(tx)).includes("secret words"), false);
			// A builder that hangs for good has its connections closed in the end. Only then, or at the
			// deadline, is its delivery reported.
			await fixture.builder("hangs").stop();
			await fixture.event(
				tx,
				"delivered",
				({ builder, answer }) => builder === "hangs" && answer !== "accepted",
			);
			for (const name of names) fixture.builder(name).setFaults({});
			await fixture.passBlock();
			await fixture.waitUntilSent(tx, { builders: names.filter((name) => name !== "hangs") });
			await fixture.system.nextBlock();
			await fixture.reaches(tx, "INCLUDED");
		});
	});
});
