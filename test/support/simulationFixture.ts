// Fixtures of the simulation tests: contracts on a chain, decoded transactions, requests for its
// next block, and the nodes that simulate them: anvil, and geth (or its recorded answers).

import { type TransactionLike, Wallet } from "ethers";
import type { Simulator } from "../../relay/domain/ports.ts";
import { Recoveries } from "../../relay/domain/recoveries.ts";
import type { BlockContext, SimulationOutcome, SimulationRequest } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { BEACON_ROOTS_ADDRESS } from "../../relay/simulation/engines/nodeObjects.ts";
import { LearntAbilities, type NodeAbilities } from "../../relay/simulation/nodeAbilities.ts";
import { createSimulator } from "../../relay/simulation/simulator.ts";
import { Background } from "../../shared/background.ts";
import { type Clock, systemClock } from "../../shared/clock.ts";
import { hexToBytes } from "../../shared/ethereum/hex.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import type { GenesisAccount, GethBlock } from "../devnet/gethChain.ts";
import { PRAGUE } from "./forks.ts";
import { startRecordedGeth } from "./recordedGeth.ts";

export const GWEI = 1_000_000_000n;
export const ETHER = GWEI * GWEI;

/** An unused address, for the contracts of a test. */
export function addressOf(index: number): string {
	return `0x${"c0de".repeat(8)}${index.toString(16).padStart(8, "0")}`;
}

/** Puts contracts, by address, into the chain's state, and mines a block. */
export async function placeContracts(
	chain: Chain,
	contracts: Readonly<Record<string, string>>,
): Promise<void> {
	for (const [address, code] of Object.entries(contracts)) await chain.rpc("anvil_setCode", [address, code]);
	await chain.rpc("evm_mine");
}

/** The block after the chain's head, with an unused coinbase. */
export async function nextBlock(chain: Chain): Promise<BlockContext> {
	const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const stateBlock = Number(head.number);
	return {
		stateBlock,
		number: stateBlock + 1,
		timestamp: Number(head.timestamp) + 12,
		baseFee: 3n * GWEI,
		blobBaseFee: 1n,
		gasLimit: 60_000_000n,
		fork: PRAGUE,
		feeRecipient: "0x00000000000000000000000000000000facade01",
	};
}

type Chain = Pick<DevChain, "rpc">;

/** Number of accounts given out on each chain. They are the same in each run. */
const funded = new WeakMap<Chain, number>();

/** A new account with `balance` wei. */
export async function fundedWallet(chain: Chain, balance: bigint): Promise<Wallet> {
	const count = (funded.get(chain) ?? 0) + 1;
	funded.set(chain, count);
	const wallet = new Wallet(`0x${(0xf00d_0000n + BigInt(count)).toString(16).padStart(64, "0")}`);
	await chain.rpc("anvil_setBalance", [wallet.address, `0x${balance.toString(16)}`]);
	await chain.rpc("evm_mine");
	return wallet;
}

/**
 * Signs and decodes a transaction; by default with 200,000 gas, a fee cap of 5 gwei and a tip of 1
 * gwei.
 */
export async function signed(wallet: Wallet, fields: TransactionLike): Promise<DecodedTransaction> {
	const fees = fields.gasPrice === undefined ? { maxFeePerGas: 5n * GWEI, maxPriorityFeePerGas: GWEI } : {};
	const raw = await wallet.signTransaction({
		chainId: 31337n,
		nonce: 0,
		gasLimit: 200_000n,
		...fees,
		...fields,
	});
	const bytes = hexToBytes(raw);
	const decoded = bytes === null ? null : decodeTransaction(bytes);
	if (decoded?.ok !== true) throw new Error("the test's own transaction does not decode");
	return decoded.tx;
}

/** A request on the chain's state for a sender with nonce 0. */
export function requestFor(
	block: BlockContext,
	balance: bigint,
	chain: readonly DecodedTransaction[],
): SimulationRequest {
	const sender = chain[0]?.from ?? "";
	const accounts = new Map([[sender, { nonce: 0n, balance }]]);
	return { block, client: "192.0.2.1", priority: "new", accounts, transactions: chain };
}

/**
 * A request whose last transaction is a measured backrun; its sender, if another, has `balance` and
 * `nonce`.
 */
export function backrunRequest(
	request: SimulationRequest,
	tx: DecodedTransaction,
	balance: bigint,
	nonce = 0n,
): SimulationRequest {
	const accounts = new Map([[tx.from, { nonce, balance }], ...request.accounts]);
	return { ...request, accounts, transactions: [...request.transactions, tx], measured: true };
}

const MUCH = 1n << 49n;

/**
 * The ways to simulate transactions: all at once, in parts because of the node's gas cap, and one
 * by one.
 */
const WAYS: Readonly<Record<string, NodeAbilities>> = {
	eth_simulateV1: { simulates: true, gasCap: MUCH },
	"eth_simulateV1 in parts": { simulates: true, gasCap: 250_000n },
	debug_traceCall: { simulates: false, gasCap: MUCH },
};

/** A simulator on this node that assumes these abilities of it. */
export function simulatorOn(node: SimulationNode, abilities: NodeAbilities): Simulator {
	const { simulates, traces, gasCap, maxBlockGas, beaconRoot, sameTime } = abilities;
	return createSimulator(
		{ simulates, traces, gasCap, maxBlockGas, beaconRoot, sameTime, timeoutMs: 10_000 },
		{ node, clock: systemClock, recoveries: new Recoveries(), onRun() {} },
	);
}

/** The node's abilities to simulate, learnt as the relay does. */
export async function abilitiesOf(
	node: SimulationNode,
	clock: Clock = systemClock,
	log: Logger = silentLogger,
	slot: SlotLength = { ms: 12_000 },
): Promise<LearntAbilities> {
	const background = new Background({}, { log });
	const abilities = new LearntAbilities({ node, slot, clock, background, log });
	await abilities.learn();
	return abilities;
}

/** The error code of each outcome, or "ok". */
export function codes(outcomes: readonly SimulationOutcome[]): string[] {
	return outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.error.code));
}

/** The error message of each outcome, or "ok". */
export function messages(outcomes: readonly SimulationOutcome[]): string[] {
	return outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.error.message));
}

/** A chain that simulations run on. */
export interface SimulationChain extends Pick<DevChain, "wallet" | "rpc" | "snapshot" | "revert" | "stop"> {
	readonly node: SimulationNode;
}

/** Starts a node; `tests` names its record of answers. */
type Start = (tests: string) => Promise<SimulationChain>;

/**
 * Each way to simulate, with the nodes on which the relay uses it: geth needs no traces for what
 * fits under its gas cap.
 */
export const WAYS_ON_NODES: readonly (readonly [string, NodeAbilities, "anvil" | "geth", Start])[] =
	Object.entries(WAYS).flatMap(([way, abilities]) => [
		[way, abilities, "anvil", startOnAnvil] as const,
		...(abilities.simulates ? [[way, abilities, "geth", startOnGeth] as const] : []),
	]);

async function startOnAnvil(): Promise<SimulationChain> {
	const chain = await startDevChain();
	const node = new JsonRpcClient({ url: chain.url, timeoutMs: 10_000 }, { clock: systemClock });
	const stop = async () => {
		await node.close();
		await chain.stop();
	};
	return { ...chain, node, stop };
}

async function startOnGeth(tests: string): Promise<SimulationChain> {
	// The engine draws both at random for each call.
	const geth = await startRecordedGeth(tests, {}, ["prevRandao", "beaconRoot", BEACON_ROOTS_ADDRESS]);
	const alloc: Record<string, GenesisAccount> = {};
	const blocks: GethBlock[] = [];
	let pool: string[] = [];
	let coinbase: string | undefined;
	let isChanged = false;
	const settle = async () => {
		if (!isChanged) return;
		isChanged = false;
		await geth.restart({ alloc: structuredClone(alloc) });
		for (const block of blocks) await geth.mine(block);
	};
	const set = (address: unknown, fields: GenesisAccount) => {
		const key = String(address).toLowerCase();
		const known = alloc[key] ?? { balance: "0x0" };
		alloc[key] = { ...known, ...fields, storage: { ...known.storage, ...fields.storage } };
		isChanged = true;
	};
	const rpc = async (method: string, params: readonly unknown[] = []): Promise<unknown> => {
		const [first, second, third] = params.map(String);
		switch (method) {
			case "anvil_setCode":
				return set(first, { code: second ?? "0x" });
			case "anvil_setBalance":
				return set(first, { balance: second ?? "0x0" });
			case "anvil_setNonce":
				return set(first, { nonce: second ?? "0x0" });
			case "anvil_setStorageAt":
				return set(first, {
					storage: {
						[`0x${BigInt(second ?? 0)
							.toString(16)
							.padStart(64, "0")}`]: third ?? "0x",
					},
				});
			case "anvil_setCoinbase":
				coinbase = first;
				return null;
			case "eth_sendRawTransaction":
				pool.push(first ?? "");
				return null;
			case "evm_mine": {
				await settle();
				const block = { txs: pool, ...(coinbase === undefined ? {} : { coinbase }) };
				pool = [];
				blocks.push(block);
				return geth.mine(block);
			}
		}
		await settle();
		return geth.rpc(method, params);
	};
	return {
		wallet: (index) => new Wallet(geth.accounts[index]?.privateKey ?? ""),
		rpc,
		snapshot: async () => String(blocks.length),
		async revert(snapshot) {
			blocks.length = Number(snapshot);
			await geth.revert(blocks.length);
		},
		stop: () => geth.stop(),
		node: {
			call: (call) => geth.node.call(call),
			batch: (calls) => geth.node.batch(calls),
		},
	};
}
