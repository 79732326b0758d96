// Finds out once at the start what the node can simulate, and logs it.

import { toQuantity } from "../../shared/ethereum/hex.ts";
import { type RpcCall, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import type { NodeAnswer, SimulationNode } from "./engines/engine.ts";
import { onlyReturned, PROBE_ADDRESS, PROBE_CALLER } from "./engines/nodeObjects.ts";
import { readAnswer } from "./engines/verdicts.ts";

export interface NodeAbilities {
	/** Whether its `eth_simulateV1` supports all that simulations need. */
	readonly simulates: boolean;
	/** Gas limit for all transactions of one request together. */
	readonly gasCap: bigint;
}

/** Deadline of a request, in ms. */
const ASK_MS = 5_000;
/** The default of geth and reth. */
const DEFAULT_GAS_CAP = 50_000_000n;
/** More than any cap. */
const MUCH_GAS = 2n ** 49n;
/** Gas used before {@link GAS_CODE} reads the gas left. */
const USED_BEFORE = 21_002n;
/** GAS PUSH0 MSTORE PUSH1 32 PUSH0 RETURN */
const GAS_CODE = "0x5a5f5260205ff3";
/** TIMESTAMP PUSH0 MSTORE BASEFEE PUSH1 32 MSTORE PUSH1 64 PUSH0 RETURN */
const BLOCK_CODE = "0x425f524860205260405ff3";
/** A time and a fee that no node would answer by chance. */
const TIME = 0xffff_fffen;
const BASE_FEE = 0x1ee3an;

/** Probes `node`, whose client version is `version`. A node that fails to answer is assumed to be able. */
export async function nodeAbilities(
	node: Pick<SimulationNode, "call">,
	version: string,
	log: Logger,
): Promise<NodeAbilities> {
	const [simulates, gasCap] = await Promise.all([servesSimulation(node), readGasCap(node)]);
	if (simulates)
		log.info("the node simulates so much gas in one request", { version, limit: Number(gasCap) });
	else {
		log.error(
			"the node lacks eth_simulateV1 with overrides: bids are refused, and transactions are simulated one by one where it serves debug_traceCall, else not at all",
			{ version },
		);
	}
	return { simulates, gasCap };
}

async function servesSimulation(node: Pick<SimulationNode, "call">): Promise<boolean> {
	const block = { time: toQuantity(TIME), baseFeePerGas: toQuantity(BASE_FEE) };
	const gas = 100_000n;
	const call = { gas: toQuantity(gas), gasPrice: toQuantity(BASE_FEE) };
	const funds = { [PROBE_CALLER]: { balance: toQuantity(gas * BASE_FEE) } };
	const answer = await ask(node, probeCall(BLOCK_CODE, block, call, funds, true));
	if (answer.kind === "fault") return true;
	return onlyReturned(answer) === `0x${word(TIME)}${word(BASE_FEE)}`;
}

async function readGasCap(node: Pick<SimulationNode, "call">): Promise<bigint> {
	const block = { gasLimit: toQuantity(2n * MUCH_GAS) };
	const answer = await ask(node, probeCall(GAS_CODE, block, { gas: toQuantity(MUCH_GAS) }, {}, false));
	const left = onlyReturned(answer);
	return left?.length === 66 ? BigInt(left) + USED_BEFORE : DEFAULT_GAS_CAP;
}

function probeCall(code: string, block: object, call: object, state: object, validation: boolean): RpcCall {
	const blockStateCalls = [
		{
			blockOverrides: block,
			stateOverrides: { [PROBE_ADDRESS]: { code }, ...state },
			calls: [{ from: PROBE_CALLER, to: PROBE_ADDRESS, ...call }],
		},
	];
	return { method: "eth_simulateV1", params: [{ blockStateCalls, validation }, "latest"] };
}

async function ask(node: Pick<SimulationNode, "call">, call: RpcCall): Promise<NodeAnswer> {
	try {
		return readAnswer(await node.call(call, ASK_MS));
	} catch (thrown) {
		if (thrown instanceof UpstreamError) return { kind: "fault" };
		throw thrown;
	}
}

function word(value: bigint): string {
	return value.toString(16).padStart(64, "0");
}
