// Nodes for the contract tests of simulation: anvil, and geth as if it were one. What anvil lets a test set is in geth's
// genesis: it starts anew with that, and mines again what it had mined. Without GETH its answers are recorded ones.

import { Wallet } from "ethers";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import type { NodeAbilities } from "../../relay/simulation/nodeAbilities.ts";
import { systemClock } from "../../shared/clock.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import type { GenesisAccount, GethBlock } from "./geth.ts";
import { startRecordedGeth } from "./recordedGeth.ts";
import { WAYS } from "./simulationFixture.ts";

/** A chain that simulations are run on. */
export interface SimulationChain extends Pick<DevChain, "wallet" | "rpc" | "snapshot" | "revert" | "stop"> {
	readonly node: SimulationNode;
}

/** Starts a node for tests of that name. */
type Start = (tests: string) => Promise<SimulationChain>;

/** Each way to run transactions, on the nodes where it is taken: geth needs no traces for what fits under its cap. */
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
	// The engine draws both anew for each question.
	const geth = await startRecordedGeth(tests, {}, ["prevRandao", "beaconRoot"]);
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
