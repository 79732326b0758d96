// Simulations on go-ethereum, real or recorded, and the real outcomes of the simulated transactions
// when it mines them.

import { Wallet } from "ethers";
import type { BlockContext, SimulationOutcome, SimulationRequest } from "../../relay/domain/simulation.ts";
import type { AccountOverride, SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { BEACON_ROOTS_ADDRESS } from "../../relay/simulation/engines/nodeObjects.ts";
import { forkShownBy } from "../../shared/ethereum/forks.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../shared/jsonrpc/client.ts";
import { OSAKA } from "./forks.ts";
import type { RecordedGeth } from "./recordedGeth.ts";
import { abilitiesOf, GWEI, simulatorOn } from "./simulationFixture.ts";

/** The coinbase of simulated and of mined blocks. */
export const COINBASE = "0x00000000000000000000000000000000facade02";

/**
 * A node for the relay whose random draws are replaced by fixed values, so that the recorded
 * answers are to these questions.
 */
function undrawn(geth: RecordedGeth, refused = ""): SimulationNode {
	const word = `0x${"5a".repeat(32)}`;
	const fixed = (call: RpcCall): RpcCall =>
		JSON.parse(
			JSON.stringify(call, (name, value) => {
				if (name === "prevRandao" || name === "beaconRoot") return word;
				return name === BEACON_ROOTS_ADDRESS ? withRoot(value.stateDiff, word) : value;
			}),
		) as RpcCall;
	const none = {
		ok: false,
		error: { code: -32601, message: "the method does not exist", data: undefined },
	} as const;
	const call = async (asked: RpcCall) => (asked.method === refused ? none : geth.node.call(fixed(asked)));
	return { call, batch: (calls) => Promise.all(calls.map(call)) };
}

/** The beacon roots' contract with the block's time, and another root. */
function withRoot(stateDiff: Readonly<Record<string, string>>, root: string): AccountOverride {
	const [[timeSlot, time] = ["", ""], [rootSlot] = [""]] = Object.entries(stateDiff);
	return { stateDiff: { [timeSlot]: time, [rootSlot]: root } };
}

/** A go-ethereum, and the node that simulations ask. */
export class GethSimulation {
	readonly geth: RecordedGeth;
	readonly node: SimulationNode;
	/** `refused`: a method that the node does not have. */
	constructor(geth: RecordedGeth, refused?: string) {
		this.geth = geth;
		this.node = undrawn(geth, refused);
	}

	wallet(index: number): Wallet {
		return new Wallet(this.geth.accounts[index]?.privateKey ?? "");
	}

	/** The block so many behind the head, so many seconds from one to the next. */
	async block(ahead = 1, slotSeconds = 12): Promise<BlockContext> {
		const head = (await this.geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		const stateBlock = Number(head.number);
		return {
			...{ stateBlock, feeRecipient: COINBASE, parentHash: String(head.hash) },
			number: stateBlock + ahead,
			timestamp: Number(head.timestamp) + ahead * slotSeconds,
			baseFee: 3n * GWEI,
			blobBaseFee: 1n,
			gasLimit: 60_000_000n,
			fork: forkShownBy(head) ?? OSAKA,
		};
	}

	async run(request: SimulationRequest): Promise<readonly SimulationOutcome[]> {
		return simulatorOn(this.node, await abilitiesOf(this.node)).simulate(request);
	}

	/** Mines them; whether all of them passed, and what the coinbase got beside fees. */
	async mined(txs: readonly DecodedTransaction[]): Promise<{ passed: boolean; paid: bigint }> {
		const head = Number(await this.geth.rpc("eth_blockNumber"));
		const held = await this.balance();
		await this.geth.mine({ txs: txs.map(({ raw }) => bytesToHex(raw)), coinbase: COINBASE });
		const block = (await this.geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		const baseFee = BigInt(block.baseFeePerGas ?? 0);
		let paid = (await this.balance()) - held;
		let passed = true;
		for (const { hash } of txs) {
			const receipt = (await this.geth.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
			const [gas, price] = [BigInt(receipt.gasUsed ?? 0), BigInt(receipt.effectiveGasPrice ?? 0)];
			passed &&= receipt.status === "0x1";
			paid -= gas * (price - baseFee);
		}
		await this.geth.revert(head);
		return { passed, paid };
	}

	async balance(): Promise<bigint> {
		return BigInt(String(await this.geth.rpc("eth_getBalance", [COINBASE, "latest"])));
	}
}
