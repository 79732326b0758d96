// Following a real node's chain by polling and by subscription: blocks, catching up,
// reorganisations, rollbacks and gaps. While the node or the subscription fails (unreachable,
// lagging, silent, ahead, or talking nonsense), blocks are caught up, nothing false is reported,
// and an outage is logged once.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { systemClock } from "../../../shared/clock.ts";
import { Slots } from "../../../shared/ethereum/slots.ts";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { type HeadFixture, NODE_TIMEOUT_MS, startHeadFixture } from "../../support/headFixture.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import { startTcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

const OUT = "warn could not read the node's head";
const ANNOUNCED = "info node announces heads";
const NOT_ANNOUNCED = "warn node announces no heads: polling";
const BACK = "info node's head read again";

let chain: DevChain;
const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
const mine = (count: number) => chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);
let coinbases = 0;
/**
 * The next blocks have another coinbase, and so are others: anvil may else make the very same ones
 * again.
 */
const makeOthers = () => {
	coinbases += 1;
	return ask("anvil_setCoinbase", [`0x${coinbases.toString(16).padStart(40, "0")}`]);
};

before(async () => {
	chain = await startDevChain();
	await mine(5);
});
after(() => chain.stop());

for (const transport of ["polling", "subscription"] as const) {
	describe(`heads by ${transport}`, () => {
		let fixture: HeadFixture;
		const start = async (limits?: { kept: number; missed: number }) => {
			const options =
				transport === "polling" ? {} : { wsUrl: chain.wsUrl, pollMs: 60_000, safetyPollMs: 300 };
			fixture = await startHeadFixture(
				chain.url,
				ask,
				limits === undefined ? options : { ...options, limits },
			);
			if (transport === "subscription") {
				await until("the subscription", () => fixture.logged.includes("info node announces heads"));
			}
			await fixture.waitUntilInSync("the first head");
		};
		const reorganise = async (depth: number) => {
			await makeOthers();
			await ask("anvil_reorg", [depth, []]);
		};
		/**
		 * Mines a block; the listener is at work on it until the function that is answered is called.
		 */
		const holdAtBlock = async () => {
			const count = fixture.mirror.updates.length;
			const release = fixture.hold();
			await mine(1);
			await until("the listener at work", () => fixture.mirror.updates.length === count + 1);
			return release;
		};
		const transaction = async (index: number, fields: object = {}) => {
			const wallet = chain.wallet(index);
			const nonce = Number(await ask("eth_getTransactionCount", [wallet.address, "pending"]));
			return wallet.signTransaction({
				chainId: chain.chainId,
				to: wallet.address,
				nonce,
				gasLimit: 200_000n,
				maxFeePerGas: 10n ** 10n,
				maxPriorityFeePerGas: 1n,
				...fields,
			});
		};
		const send = async (raw: string) => String(await ask("eth_sendRawTransaction", [raw]));

		afterEach(() => fixture.stop());

		test("a block's update has its transactions, and all accounts whose nonce changed", async () => {
			await start();
			const authorityIndex = transport === "polling" ? 5 : 6;
			const authority = chain.wallet(authorityIndex);
			const target = { chainId: chain.chainId, nonce: 0, address: `0x${"aa".repeat(20)}` };
			const authorizationList = [await authority.authorize(target)];
			const hashes = [
				await send(await transaction(0)),
				await send(await transaction(0)),
				await send(await transaction(1, { type: 4, authorizationList })),
				await send(await transaction(2, { to: null, data: "0x00" })),
			];
			await mine(1);
			await fixture.waitUntilInSync("the block");
			const address = (i: number) => chain.wallet(i).address.toLowerCase();
			const block = fixture.tracker.current();
			assert.deepEqual(
				block?.transactions,
				[0, 0, 1, 2].map((sender, i) => ({ hash: hashes[i], from: address(sender) })),
			);
			assert.deepEqual(new Set(block?.touched), new Set([0, 1, 2, authorityIndex].map(address)));
			assert.equal(await ask("eth_getTransactionCount", [authority.address, "latest"]), "0x1");
		});

		test("a reorganisation of three blocks reverts three and applies three", async () => {
			await start();
			await mine(4);
			await fixture.waitUntilInSync("four blocks");
			const old = fixture.mirror.blocks.slice(-3);
			const seen = fixture.mirror.updates.length;
			await reorganise(3);
			await fixture.waitUntilInSync("the new branch");
			const updates = fixture.mirror.updates.slice(seen);
			const reverted = updates.flatMap((update) => update.reverted.map(({ hash }) => hash));
			for (const { hash } of old) assert.ok(reverted.includes(hash));
			assert.ok(updates.every(({ gap }) => !gap));
			assert.equal(fixture.tracker.current()?.number, old.at(-1)?.number);
			assert.ok(fixture.logged.includes("info reorganisation"));
		});

		test("while a listener runs, changes wait and are then one update", async () => {
			await start();
			const release = await holdAtBlock();
			for (let i = 0; i < 10; i++) await mine(1);
			await reorganise(4);
			assert.equal(fixture.mirror.updates.length, 2);
			release();
			await fixture.waitUntilInSync("the rest");
			assert.equal(fixture.mirror.updates.length, 3);
			const last = fixture.mirror.updates[2];
			assert.deepEqual([last?.applied.length, last?.reverted.length, last?.gap], [10, 0, false]);
		});

		test("64 missed blocks are caught up one by one, 65 are a gap", async () => {
			await start();
			for (const [missed, gap] of [
				[64, false],
				[65, true],
			] as const) {
				const release = await holdAtBlock();
				await mine(missed);
				release();
				await fixture.waitUntilInSync(`${missed} blocks`);
				const update = fixture.mirror.updates.at(-1);
				assert.deepEqual([update?.applied.length, update?.gap], [gap ? 1 : missed, gap]);
			}
			assert.ok(fixture.logged.includes("warn blocks missed"));
		});

		test("a reorganisation deeper than what is kept is a gap", async () => {
			await mine(10);
			await start({ kept: 4, missed: 64 });
			await mine(8);
			await fixture.waitUntilInSync("eight blocks");
			const release = await holdAtBlock();
			await reorganise(3);
			release();
			await fixture.waitUntilInSync("three deep");
			assert.equal(fixture.mirror.updates.at(-1)?.gap, false);
			const again = await holdAtBlock();
			await reorganise(6);
			again();
			await fixture.waitUntilInSync("six deep");
			assert.equal(fixture.mirror.updates.at(-1)?.gap, true);
		});
	});
}

describe("a node with faults", () => {
	let proxy: NodeProxy;
	let fixture: HeadFixture;

	before(async () => {
		proxy = await startNodeProxy(chain.url);
	});
	afterEach(async () => {
		proxy.setFault(null);
		await fixture.stop();
	});
	after(() => proxy.stop());

	const faults: readonly [string, NodeFault][] = [
		["refuses", { kind: "error", code: -32000, message: "no" }],
		["answers HTML", { kind: "html", status: 502 }],
		["closes connections", { kind: "destroy" }],
		["answers half", { kind: "truncated" }],
		["has no head", { kind: "result", result: null }],
		["answers text", { kind: "result", result: "0x1" }],
		["answers a block without a hash", { kind: "result", result: { number: "0x9", transactions: [] } }],
	];
	for (const [name, fault] of faults) {
		test(`a node that ${name}: logged once, the head stays, and all is caught up`, async () => {
			fixture = await startHeadFixture(proxy.url, ask, {});
			await fixture.waitUntilInSync("the head");
			const head = fixture.tracker.current();
			proxy.reset();
			proxy.setFault(fault);
			await mine(2);
			await until("five tries", () => proxy.requests >= 5);
			assert.equal(fixture.tracker.current(), head);
			proxy.setFault(null);
			await fixture.waitUntilInSync("two blocks");
			await until("the end of the outage", () => fixture.logged.includes(BACK));
			assert.deepEqual(fixture.logged, [OUT, BACK]);
			assert.equal(fixture.mirror.updates.at(-1)?.gap, false);
		});
	}

	test("a block that cannot be read whole is not passed over", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.waitUntilInSync("the head");
		proxy.setFault({ kind: "result", result: null }, { methods: ["eth_getBlockByHash"], times: 3 });
		await mine(3);
		await fixture.waitUntilInSync("three blocks");
		const updates = fixture.mirror.updates.slice(1);
		const numbers = updates.flatMap(({ applied }) => applied.map(({ number }) => number));
		assert.deepEqual([numbers.length, updates.some(({ gap }) => gap)], [3, false]);
	});

	test("a parent with another hash than requested is ignored", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.waitUntilInSync("the head");
		const wrong = await ask("eth_getBlockByNumber", ["0x1", true]);
		proxy.setFault({ kind: "result", result: wrong }, { methods: ["eth_getBlockByHash"], times: 2 });
		await mine(2);
		await fixture.waitUntilInSync("two blocks");
		assert.ok(fixture.logged.includes(OUT));
	});

	test("a lagging node behind a load balancer does not count as a rollback", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.waitUntilInSync("the head");
		const lagging = await ask("eth_getBlockByNumber", ["latest", false]);
		await mine(2);
		await fixture.waitUntilInSync("two blocks");
		const updates = fixture.mirror.updates.length;
		for (let i = 0; i < 3; i++) {
			proxy.reset();
			proxy.setFault({ kind: "result", result: lagging }, { methods: ["eth_getBlockByNumber"], times: 2 });
			await until("four looks", () => proxy.calls("eth_getBlockByNumber").length >= 4);
		}
		assert.equal(fixture.mirror.updates.length, updates);
		await fixture.waitUntilInSync("the same head");
	});

	test("a stop does not wait for a node that hangs", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.waitUntilInSync("the head");
		proxy.reset();
		proxy.setFault({ kind: "hang" });
		await until("the request", () => proxy.requests === 1);
		const begun = performance.now();
		await fixture.stop();
		assert.ok(performance.now() - begun < NODE_TIMEOUT_MS / 2);
	});
});

describe("a subscription with faults", () => {
	const latestHash = async () =>
		((await ask("eth_getBlockByNumber", ["latest", false])) as { hash: string }).hash;
	const times = (fixture: HeadFixture, line: string) => fixture.logged.filter((one) => one === line).length;

	test("while it is down heads are polled, and announced again afterwards", async () => {
		const wire = await startTcpProxy(chain.port);
		const options = { wsUrl: `ws://127.0.0.1:${wire.port}`, safetyPollMs: 60_000, pollMs: 25 };
		const fixture = await startHeadFixture(chain.url, ask, options);
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			await mine(1);
			await fixture.waitUntilInSync("an announced block");
			wire.cut();
			await until("the loss", () => fixture.logged.includes(NOT_ANNOUNCED));
			await mine(2);
			await fixture.waitUntilInSync("polled blocks");
			const tries = wire.accepted;
			await until("two more tries", () => wire.accepted >= tries + 2);
			assert.equal(times(fixture, NOT_ANNOUNCED), 1);
			wire.mend();
			await until("live again", () => times(fixture, ANNOUNCED) === 2);
			await mine(1);
			await fixture.waitUntilInSync("an announced block");
			assert.ok(fixture.mirror.updates.slice(1).every(({ gap }) => !gap));
		} finally {
			await fixture.stop();
			await wire.stop();
		}
	});

	test("an announced head that the HTTP side does not have yet is asked for until it is there", async () => {
		const proxy = await startNodeProxy(chain.url);
		const options = { wsUrl: chain.wsUrl, safetyPollMs: 60_000, pollMs: 25 };
		const fixture = await startHeadFixture(proxy.url, ask, options);
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			await fixture.waitUntilInSync("the head");
			const lagging = await ask("eth_getBlockByNumber", ["latest", true]);
			proxy.reset();
			proxy.setFault({ kind: "result", result: lagging }, { methods: ["eth_getBlockByNumber"], times: 4 });
			await mine(1);
			await fixture.waitUntilInSync("the block");
			assert.ok(proxy.calls("eth_getBlockByNumber").length >= 5);
		} finally {
			await fixture.stop();
			await proxy.stop();
		}
	});

	test("a silent subscription is noticed, and made again", async () => {
		const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
		let subscriptions = 0;
		server.on("connection", (socket) => {
			socket.on("message", () => {
				subscriptions += 1;
				socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x1" }));
			});
		});
		await until("the port", () => server.address() !== null);
		const wsUrl = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
		const fixture = await startHeadFixture(chain.url, ask, { wsUrl, safetyPollMs: 30, pollMs: 60_000 });
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			for (let i = 0; i < 3; i++) {
				await mine(1);
				await fixture.waitUntilInSync("a block found by asking");
			}
			await until("a new subscription", () => subscriptions === 2);
			assert.ok(fixture.logged.includes("warn node stopped announcing heads: subscribing again"));
		} finally {
			await fixture.stop();
			server.close();
		}
	});

	test("a rollback that the node announces counts at once, also one of a head that was just being read", async () => {
		const { server, wsUrl, say } = await announcer();
		const proxy = await startNodeProxy(chain.url);
		const options = { wsUrl, safetyPollMs: 60_000, pollMs: 60_000 };
		// A rollback that is not announced counts after half a slot.
		const slots = new Slots({ setMs: 300_000 }, { clock: systemClock });
		const fixture = await startHeadFixture(proxy.url, ask, options, slots);
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			await fixture.waitUntilInSync("the head");
			for (const isRead of [true, false]) {
				const before = await latestHash();
				await makeOthers();
				await mine(1);
				const withheld = await latestHash();
				proxy.reset();
				const release = isRead ? () => {} : proxy.hold(["eth_feeHistory"]);
				say(withheld);
				if (isRead) await fixture.waitUntilInSync("the block");
				else await until("its fees are asked for", () => proxy.calls("eth_feeHistory").length > 0);
				await ask("anvil_rollback", [1]);
				say(before);
				release();
				const isGone = () => fixture.mirror.updates.at(-1)?.reverted[0]?.hash === withheld;
				await until("the rollback", isGone);
				assert.equal(fixture.mirror.head?.hash, before);
			}
			// An old block is no rollback where the node's head stays.
			const [old] = fixture.mirror.blocks;
			await makeOthers();
			await mine(1);
			const head = await latestHash();
			for (const hash of [head, old?.hash, head]) say(hash);
			await fixture.waitUntilInSync("the next block");
			assert.equal(fixture.mirror.updates.at(-1)?.applied.length, 1);
		} finally {
			await fixture.stop();
			await proxy.stop();
			server.close();
		}
	});

	test("repeated, old or empty announcements do no harm", async () => {
		const { server, wsUrl, say } = await announcer();
		const fixture = await startHeadFixture(chain.url, ask, { wsUrl, safetyPollMs: 60_000, pollMs: 25 });
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			await fixture.waitUntilInSync("the head");
			const old = fixture.mirror.head?.hash;
			for (let i = 0; i < 3; i++) {
				await mine(1);
				const hash = await latestHash();
				for (const one of [hash, hash, old, "0x12", null, 7, `0x${"9".repeat(64)}`, hash]) say(one);
				await fixture.waitUntilInSync("the block");
			}
			assert.deepEqual(
				fixture.mirror.updates.slice(1).map(({ applied, reverted }) => [applied.length, reverted.length]),
				[
					[1, 0],
					[1, 0],
					[1, 0],
				],
			);
			assert.equal(times(fixture, NOT_ANNOUNCED), 0);
		} finally {
			await fixture.stop();
			server.close();
		}
	});
});

/** A server that accepts subscriptions and announces any given hash. */
async function announcer() {
	const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
	let send = (_text: string): void => {};
	server.on("connection", (socket) => {
		socket.on("message", () => socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x1" })));
		send = (text) => socket.send(text);
	});
	await until("the port", () => server.address() !== null);
	return {
		server,
		wsUrl: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
		say(hash: unknown) {
			const params = { subscription: "0x1", result: { hash } };
			send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
		},
	};
}
