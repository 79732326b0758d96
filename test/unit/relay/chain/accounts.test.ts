// Tests account states at the tracked head: their values, and how often the node is asked.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { Wallet } from "ethers";
import { NodeAccounts } from "../../../../relay/chain/accounts.ts";
import { NodeReader } from "../../../../relay/chain/nodeReader.ts";
import type { AccountState } from "../../../../relay/domain/chain.ts";
import { Background } from "../../../../shared/background.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { type NodeProxy, startNodeProxy } from "../../../support/nodeProxy.ts";
import { until } from "../../../support/until.ts";

const READS = ["eth_getBalance", "eth_getCode", "eth_getTransactionCount"];

describe("NodeAccounts", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let client: JsonRpcClient;
	let background: Background;
	const newAccounts = (options: { timeoutMs?: number; maxAccounts?: number } = {}) => {
		const node = new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log: silentLogger });
		return new NodeAccounts(options, { node, background, clock: systemClock });
	};
	const account = (i: number) => chain.accounts[i]?.address.toLowerCase() ?? "";
	const mine = async (count = 1) => {
		await chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);
		return Number(await chain.rpc("eth_blockNumber"));
	};
	const transfer = async (from: number, nonce: number) => {
		const raw = await chain.wallet(from).signTransaction({
			chainId: chain.chainId,
			to: `0x${"77".repeat(20)}`,
			value: 1n,
			nonce,
			gasLimit: 21_000n,
			maxFeePerGas: 10n ** 10n,
			maxPriorityFeePerGas: 1n,
		});
		await chain.rpc("eth_sendRawTransaction", [raw]);
	};
	const addresses = (count: number, salt: string) =>
		Array.from({ length: count }, (_, i) => `0x${salt}${i.toString(16).padStart(40 - salt.length, "0")}`);

	before(async () => {
		chain = await startDevChain();
		proxy = await startNodeProxy(chain.url);
		client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000 }, { clock: systemClock });
		background = new Background({ onFault: (task) => assert.fail(task) }, { log: silentLogger });
	});
	afterEach(async () => {
		proxy.setFault(null);
		await background.join();
		proxy.reset();
	});
	after(async () => {
		await client.close();
		await proxy.stop();
		await chain.stop();
	});

	test("tells nonce, balance and code after the head", async () => {
		await transfer(0, 0);
		const head = await mine();
		const accounts = newAccounts();
		accounts.setHead(head);
		const state = await accounts.get(account(0), "a");
		const balance = BigInt((await chain.rpc("eth_getBalance", [account(0), "latest"])) as string);
		assert.deepEqual(state, { address: account(0), block: head, nonce: 1n, balance, code: "none" });
		assert.ok(balance < 10_000n * 10n ** 18n);
	});

	test("tells delegated accounts from contracts", async () => {
		const codes: readonly [string, AccountState["code"]][] = [
			["0x", "none"],
			[`0xef0100${"ab".repeat(20)}`, "delegated"],
			[`0xEF0100${"AB".repeat(20)}`, "delegated"],
			[`0xef0100${"ab".repeat(19)}`, "contract"],
			[`0xef0100${"ab".repeat(21)}`, "contract"],
			["0xef0101", "contract"],
			["0x00", "contract"],
			["0x6001600055", "contract"],
		];
		for (const [code, kind] of codes) {
			// Not on the chain: anvil dies of a delegation of the wrong length.
			const answers = ["0x0", "0x0", code].map((result) => ({ ok: true as const, result }));
			const node = { batch: async () => answers };
			const accounts = new NodeAccounts({}, { node, background, clock: systemClock });
			accounts.setHead(1);
			assert.equal((await accounts.get(account(0), "a")).code, kind, code);
		}
	});

	test("a contract on the chain is one", async () => {
		const address = `0xc0de${"0".repeat(36)}`;
		await chain.rpc("anvil_setCode", [address, "0x6001600055"]);
		const accounts = newAccounts();
		accounts.setHead(await mine());
		assert.equal((await accounts.get(address, "a")).code, "contract");
	});

	test("a real EIP-7702 delegation is seen, its removal too", async () => {
		const authority = chain.wallet(3);
		const delegate = async (nonce: number, to: string) => {
			const target = { chainId: chain.chainId, nonce, address: to };
			const raw = await chain.wallet(4).signTransaction({
				type: 4,
				chainId: chain.chainId,
				to: account(4),
				nonce,
				gasLimit: 200_000n,
				maxFeePerGas: 10n ** 10n,
				maxPriorityFeePerGas: 1n,
				authorizationList: [await authority.authorize(target)],
			});
			await chain.rpc("eth_sendRawTransaction", [raw]);
			return mine();
		};
		const accounts = newAccounts();
		accounts.setHead(await delegate(0, `0x${"aa".repeat(20)}`));
		const { code, nonce } = await accounts.get(account(3), "a");
		assert.deepEqual({ code, nonce }, { code: "delegated", nonce: 1n });
		accounts.setHead(await delegate(1, `0x${"00".repeat(20)}`));
		const later = await accounts.get(account(3), "a");
		assert.deepEqual({ code: later.code, nonce: later.nonce }, { code: "none", nonce: 2n });
	});

	test("its state never runs ahead of the tracked head", async () => {
		const head = await mine();
		const accounts = newAccounts();
		accounts.setHead(head);
		await transfer(1, 0);
		await mine();
		assert.equal((await accounts.get(account(1), "a")).nonce, 0n);
		accounts.setHead(head + 1);
		assert.equal((await accounts.get(account(1), "a")).nonce, 1n);
	});

	test("an account is asked for once a head, however many want it and however its address is written", async () => {
		const accounts = newAccounts();
		const head = await mine();
		accounts.setHead(head);
		const mixed = Wallet.createRandom().address;
		const release = proxy.hold();
		const first = Array.from({ length: 200 }, (_, i) =>
			accounts.get(i % 2 ? mixed : mixed.toLowerCase(), "a"),
		);
		await until("the first request", () => proxy.requests > 0);
		const late = Array.from({ length: 200 }, () => accounts.get(mixed, "a"));
		release();
		const states = await Promise.all([...first, ...late]);
		assert.equal(new Set(states).size, 1);
		await accounts.get(mixed, "a");
		assert.deepEqual(
			proxy
				.calls()
				.map(({ method }) => method)
				.sort(),
			READS,
		);
		assert.ok(proxy.calls().every(({ params }) => params[1] === `0x${head.toString(16)}`));
		accounts.setHead(head);
		await accounts.get(mixed, "a");
		assert.equal(proxy.calls().length, 6);
	});

	test("accounts that are wanted in the same moment go together, 100 in a request", async () => {
		const accounts = newAccounts();
		accounts.setHead(await mine());
		await Promise.all(addresses(250, "a1").map((address) => accounts.get(address, "a")));
		const batches = proxy.calls("eth_getCode").map(({ batch }) => batch);
		assert.equal(proxy.requests, 3);
		assert.deepEqual([...new Set(batches)].sort(), [150, 300]);
	});

	test("while four requests are under way the rest waits, and goes together", async () => {
		const accounts = newAccounts({ timeoutMs: 10_000 });
		accounts.setHead(await mine());
		const release = proxy.hold();
		const first = addresses(420, "a2").map((address) => accounts.get(address, "a"));
		await until("four requests", () => proxy.requests === 4);
		const rest: Promise<AccountState>[] = [];
		for (const address of addresses(80, "a3")) {
			rest.push(accounts.get(address, "a"));
			await new Promise((resolve) => setImmediate(resolve));
		}
		assert.equal(proxy.requests, 4);
		release();
		await Promise.all([...first, ...rest]);
		assert.equal(proxy.requests, 5);
	});

	test("what waits when the head moves is asked for at the new head, once", async () => {
		const head = await mine(2);
		const accounts = newAccounts();
		accounts.setHead(head - 1);
		const asked = accounts.get(account(5), "a");
		accounts.setHead(head);
		const again = accounts.get(account(5), "a");
		assert.equal((await asked).block, head);
		assert.equal(await again, await asked);
		assert.equal(proxy.calls("eth_getCode").length, 1);
	});

	test("what is under way when the head moves is asked for again, and not remembered", async () => {
		const head = await mine(2);
		const accounts = newAccounts();
		accounts.setHead(head - 1);
		const release = proxy.hold();
		const asked = accounts.get(account(5), "a");
		await until("the request", () => proxy.requests === 1);
		accounts.setHead(head);
		release();
		assert.equal((await asked).block, head);
		assert.equal((await accounts.get(account(5), "a")).block, head);
		assert.equal(proxy.calls("eth_getCode").length, 2);
	});

	test("the same height with another hash is a new head", async () => {
		const head = await mine();
		const accounts = newAccounts();
		const snapshot = await chain.snapshot();
		await transfer(6, 0);
		await mine();
		accounts.setHead(head + 1);
		assert.equal((await accounts.get(account(6), "a")).nonce, 1n);
		await chain.revert(snapshot);
		await mine();
		accounts.setHead(head + 1);
		assert.equal((await accounts.get(account(6), "a")).nonce, 0n);
	});

	test("remembers a bounded number: the one not asked for longest goes", async () => {
		const accounts = newAccounts({ maxAccounts: 2 });
		accounts.setHead(await mine());
		for (const i of [0, 1, 0, 2, 0]) await accounts.get(account(i), "a");
		assert.equal(proxy.calls("eth_getCode").length, 3);
		await accounts.get(account(1), "a");
		assert.equal(proxy.calls("eth_getCode").length, 4);
	});
});
