// Tests that the relay's refusals become each client library's typed errors, which wallets show to
// their users.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isError, JsonRpcProvider, type TransactionRequest, Wallet } from "ethers";
import {
	BaseError,
	createPublicClient,
	createWalletClient,
	ExecutionRevertedError,
	http,
	InsufficientFundsError,
	IntrinsicGasTooLowError,
	NonceMaxValueError,
	NonceTooHighError,
	NonceTooLowError,
	RpcRequestError,
	TipAboveFeeCapError,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { Web3 } from "web3";
import { cast, type RelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { accountOf, rawTransaction, type TxOptions } from "../../support/txFactory.ts";

const GWEI = 1_000_000_000n;
const RECEIVER = "0x000000000000000000000000000000000000dEaD";
/** Reverts with Error("no luck"). */
const REVERTER = "0x00000000000000000000000000000000000badc0";
const REASON = `0x08c379a0${"20".padStart(64, "0")}${"7".padStart(64, "0")}${Buffer.from("no luck").toString("hex").padEnd(64, "0")}`;
const POOR = `0x${"9".repeat(64)}` as const;

let system: ProcessSystem;
let relay: RelayProcess;
let provider: JsonRpcProvider;
before(async () => {
	system = await startProcessSystem();
	// PUSH1 size PUSH1 offset PUSH0 CODECOPY, PUSH1 size PUSH0 REVERT, then the data.
	await system.chain.rpc("anvil_setCode", [REVERTER, `0x6064600a5f3960645ffd${REASON.slice(2)}`]);
	relay = await system.start();
	provider = new JsonRpcProvider(`${relay.url}/fast`);
	// Account 0 has sent one that is mined, account 1 one that is pending.
	await relay.client.send(rawOf(0));
	await system.builder.waitForRequest("eth_sendBundle");
	await system.nextBlock(relay);
	await relay.client.send(rawOf(1));
});
after(async () => {
	provider.destroy();
	await system.stop();
});

const ETHERS: readonly (readonly [
	string,
	Parameters<typeof isError>[1],
	number | "poor",
	TransactionRequest,
])[] = [
	["an account without ether", "INSUFFICIENT_FUNDS", "poor", { nonce: 0 }],
	["a value over the balance", "INSUFFICIENT_FUNDS", 2, { nonce: 0, value: 10n ** 23n }],
	["a nonce that is used", "NONCE_EXPIRED", 0, { nonce: 0 }],
	["the nonce of a pending one, for no more", "REPLACEMENT_UNDERPRICED", 1, { nonce: 0, value: 2n }],
	[
		"the nonce of a pending one, for 9 % more",
		"REPLACEMENT_UNDERPRICED",
		1,
		{ nonce: 0, maxFeePerGas: (20n * GWEI * 109n) / 100n, maxPriorityFeePerGas: (GWEI * 109n) / 100n },
	],
];
for (const [what, code, account, fields] of ETHERS) {
	test(`ethers: ${what} is ${code}`, async () => {
		const wallet = new Wallet(account === "poor" ? POOR : keyOf(account), provider);
		const request = {
			chainId: 31337,
			type: 2,
			to: RECEIVER,
			value: 1n,
			gasLimit: 21_000,
			maxFeePerGas: 20n * GWEI,
			maxPriorityFeePerGas: GWEI,
			...fields,
		};
		const thrown = await thrownBy(wallet.sendTransaction(request));
		assert.ok(isError(thrown, code), String(thrown));
	});
}

test("ethers: a call that reverts is CALL_EXCEPTION with its reason, an estimate too", async () => {
	const request = { to: REVERTER, from: system.chain.accounts[0]?.address ?? null, data: "0x" };
	for (const failing of [provider.call(request), provider.estimateGas(request)]) {
		const thrown = await thrownBy(failing);
		assert.ok(isError(thrown, "CALL_EXCEPTION"), String(thrown));
		assert.equal(thrown.reason, "no luck");
		assert.equal(thrown.data, REASON);
	}
});

test("ethers: a transaction without replay protection is UNSUPPORTED_OPERATION", async () => {
	const wallet = new Wallet(keyOf(2));
	const raw = await wallet.signTransaction({
		type: 0,
		to: RECEIVER,
		value: 1n,
		nonce: 0,
		gasLimit: 21_000,
		gasPrice: 20n * GWEI,
	});
	const thrown = await thrownBy(provider.broadcastTransaction(raw));
	assert.ok(isError(thrown, "UNSUPPORTED_OPERATION"), String(thrown));
});

type ErrorClass = abstract new (...args: never[]) => Error;
interface ViemFields {
	readonly nonce?: number;
	readonly value?: bigint;
	readonly gas?: bigint;
	readonly maxFeePerGas?: bigint;
	readonly maxPriorityFeePerGas?: bigint;
}
const VIEM: readonly (readonly [string, ErrorClass, number | "poor", ViemFields])[] = [
	["an account without ether", InsufficientFundsError, "poor", {}],
	["a value over the balance", InsufficientFundsError, 2, { value: 10n ** 23n }],
	["a nonce that is used", NonceTooLowError, 0, {}],
	["a nonce far ahead", NonceTooHighError, 2, { nonce: 65 }],
	["too little gas", IntrinsicGasTooLowError, 2, { gas: 20_999n }],
];
for (const [what, errorClass, account, fields] of VIEM) {
	test(`viem: ${what} is ${errorClass.name}`, async () => {
		const client = createWalletClient({
			account: privateKeyToAccount(account === "poor" ? POOR : keyOf(account)),
			chain: foundry,
			transport: http(`${relay.url}/fast`),
		});
		const thrown = await thrownBy(
			client.sendTransaction({
				to: RECEIVER,
				value: 1n,
				nonce: 0,
				gas: 21_000n,
				maxFeePerGas: 20n * GWEI,
				maxPriorityFeePerGas: GWEI,
				...fields,
			}),
		);
		assert.ok(thrown instanceof BaseError);
		assert.ok(thrown.walk((cause) => cause instanceof errorClass) instanceof errorClass, thrown.message);
	});
}

// viem itself signs no such transactions: its own checks are before the relay's.
for (const [what, errorClass, fields] of [
	["a tip over the fee cap", TipAboveFeeCapError, { maxFeePerGas: 1n, maxPriorityFeePerGas: 2n }],
	["the last nonce there is", NonceMaxValueError, { nonce: 2n ** 64n - 1n }],
] as const) {
	test(`viem: the relay's words for ${what} are those of ${errorClass.name}`, async () => {
		const { error } = await relay.client.ask("eth_sendRawTransaction", [rawOf(2, fields)]);
		assert.match(error?.message ?? "", errorClass.nodeMessage);
	});
}

test("viem: sendRawTransaction gives the relay's code, words and data", async () => {
	const client = createPublicClient({ chain: foundry, transport: http(`${relay.url}/fast`) });
	const thrown = await thrownBy(client.sendRawTransaction({ serializedTransaction: rawOf(0) }));
	assert.equal(thrown, undefined, "one that is mined is answered with its hash again");
	const other = await thrownBy(client.sendRawTransaction({ serializedTransaction: rawOf(0, { value: 7n }) }));
	assert.ok(other instanceof BaseError);
	const cause = other.walk((one) => one instanceof RpcRequestError);
	assert.ok(cause instanceof RpcRequestError);
	assert.equal(cause.code, -32000);
	assert.match(cause.details, /^nonce too low: next nonce 1, tx nonce 0/);
});

test("viem: a call that reverts is ExecutionRevertedError with its reason", async () => {
	const client = createPublicClient({ chain: foundry, transport: http(`${relay.url}/fast`) });
	const thrown = await thrownBy(client.call({ to: REVERTER, data: "0x" }));
	assert.ok(thrown instanceof BaseError);
	const cause = thrown.walk((one) => one instanceof ExecutionRevertedError);
	assert.ok(cause instanceof ExecutionRevertedError, thrown.message);
	assert.match(cause.message, /no luck/);
});

test("web3.js: the relay's words come out of its error", async () => {
	const web3 = new Web3(`${relay.url}/fast`);
	const thrown = await thrownBy(web3.eth.sendSignedTransaction(rawOf(0, { value: 7n })));
	assert.ok(thrown instanceof Error);
	assert.match(`${thrown.message} ${JSON.stringify(thrown)}`, /nonce too low: next nonce 1, tx nonce 0/);
});

test("cast: the relay's words are on its stderr", async () => {
	const common = ["--rpc-url", `${relay.url}/fast`, "--private-key", keyOf(2), RECEIVER];
	const much = ["--value", "20000ether", "--gas-limit", "21000"];
	const run = await cast(
		"send",
		...much,
		"--priority-gas-price",
		"1gwei",
		"--gas-price",
		"20gwei",
		...common,
	);
	assert.equal(run.code, 1);
	assert.match(run.stderr, /insufficient funds for gas \* price \+ value/);
});

function keyOf(account: number): `0x${string}` {
	return system.chain.accounts[account]?.privateKey as `0x${string}`;
}

function rawOf(account: number, options: TxOptions = {}): `0x${string}` {
	const raw = rawTransaction({ by: accountOf(keyOf(account)), gasLimit: 21_000, ...options });
	return `0x${raw.toString("hex")}`;
}

async function thrownBy(promise: unknown): Promise<unknown> {
	try {
		await promise;
		return undefined;
	} catch (thrown) {
		return thrown;
	}
}
