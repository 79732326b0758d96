// Account states at the tracked head, on a real chain: their values, how often the node is asked, and what becomes of them
// when it fails, lags or is asked too much.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Wallet } from "ethers";
import { NodeAccounts } from "../../../../relay/chain/accounts.ts";
import type { AccountState } from "../../../../relay/domain/chain.ts";
import { Background } from "../../../../shared/background.ts";
import { systemClock } from "../../../../shared/clock.ts";
import type { UpstreamFault } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import type { NodeFault } from "../../../support/nodes.ts";
import { until } from "../../../support/until.ts";
import { fails, startProxiedChain } from "./nodeFixture.ts";

const READS = ["eth_getBalance", "eth_getCode", "eth_getTransactionCount"];

const { chain, proxy, reader, mine, send } = await startProxiedChain();
const background = new Background({ onFault: (task) => assert.fail(task) }, { log: silentLogger });
afterEach(() => background.join());

const newAccounts = (options: { timeoutMs?: number } = {}) =>
	new NodeAccounts(options, { node: reader(), background, clock: systemClock });
const account = (i: number) => chain.accounts[i]?.address.toLowerCase() ?? "";

test("tells nonce, balance and code after the head", async () => {
	await send(0, 0);
	const contract = `0xc0de${"0".repeat(36)}`;
	await chain.rpc("anvil_setCode", [contract, "0x6001600055"]);
	const head = await mine();
	const accounts = newAccounts();
	accounts.setHead(head);
	const state = await accounts.get(account(0), "a");
	const balance = BigInt((await chain.rpc("eth_getBalance", [account(0), "latest"])) as string);
	assert.deepEqual(state, { address: account(0), block: head, nonce: 1n, balance, code: "none" });
	assert.equal((await accounts.get(contract, "a")).code, "contract");
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

test("an account is asked for once a head, however many want it and however its address is written", async () => {
	const accounts = newAccounts();
	const head = await mine();
	accounts.setHead(head);
	const mixed = Wallet.createRandom().address;
	const release = proxy.hold();
	const first = Array.from({ length: 200 }, (_, i) => accounts.get(i % 2 ? mixed : mixed.toLowerCase(), "a"));
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
	await send(6, 0);
	await mine();
	accounts.setHead(head + 1);
	assert.equal((await accounts.get(account(6), "a")).nonce, 1n);
	await chain.revert(snapshot);
	await mine();
	accounts.setHead(head + 1);
	assert.equal((await accounts.get(account(6), "a")).nonce, 0n);
});

test("a block that the node does not have yet is waited for, as behind a balancer", async () => {
	const head = await mine();
	const accounts = newAccounts({ timeoutMs: 5_000 });
	accounts.setHead(head + 1);
	const asked = accounts.get(account(7), "a");
	await until("the second try", () => proxy.requests >= 2);
	await mine();
	assert.equal((await asked).block, head + 1);
});

const faults: readonly [string, NodeFault, UpstreamFault][] = [
	["hangs", { kind: "hang" }, "timeout"],
	["closes connections", { kind: "destroy" }, "unreachable"],
	["answers HTML", { kind: "html", status: 502 }, "httpStatus"],
	["refuses", { kind: "error", code: -32000, message: "header not found" }, "notJsonRpc"],
	["answers nonsense", { kind: "result", result: "0xzz" }, "notJsonRpc"],
];
for (const [name, fault, code] of faults) {
	test(`a node that ${name}: an error in time, and nothing of it stays`, async () => {
		const accounts = newAccounts({ timeoutMs: 300 });
		accounts.setHead(await mine());
		proxy.setFault(fault);
		const begun = performance.now();
		await assert.rejects(accounts.get(account(8), "a"), fails(code));
		assert.ok(performance.now() - begun < 2_000);
		proxy.setFault(null);
		assert.equal((await accounts.get(account(8), "a")).nonce, 0n);
	});
}
