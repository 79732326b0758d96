// The requirements of the next block for transactions: base fee, blob base fee, gas limit and the
// fork's rules. The fees come from the node (`eth_feeHistory`), or else from the protocol's
// formulas.

import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import type { Slots } from "../../shared/ethereum/slots.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Header, NextBlock } from "../domain/chain.ts";
import { fieldsOf } from "../domain/nodeJson.ts";
import type { ForkReader } from "./forkReader.ts";

/**
 * Ethereum's blobs since the second blob-parameter-only fork of 2026-01-07
 * (https://eips.ethereum.org/EIPS/eip-7892). Only used if the node does not answer with the blob
 * base fee, so later forks need not be known here.
 */
const TARGET_BLOBS = 14n;
const MAX_BLOBS = 21n;
const BLOB_UPDATE_FRACTION = 11_684_671n;

/**
 * EIP-1559: the target is half of the limit, and a block moves the base fee by an eighth at most.
 */
const ELASTICITY = 2n;
const MAX_CHANGE_DENOMINATOR = 8n;
const GAS_PER_BLOB = 131_072n;
/**
 * Each blob costs at least as much as this much gas at the base fee.
 * https://eips.ethereum.org/EIPS/eip-7918
 */
const BLOB_BASE_COST = 8_192n;
const FEE_HISTORY_MS = 1_000;

/**
 * Returns a function from a head to the next block; it never throws. Both fees come from
 * `eth_feeHistory`. {@link nextBaseFee} and {@link nextBlobBaseFee} compute them if the node does
 * not answer within a second, answers for another block or has no blobs. `slots` supplies the time.
 */
export function nextBlockReader(
	{ slots }: { readonly slots: Pick<Slots, "timestampAfter" | "stepMs"> },
	dependencies: { readonly node: Pick<JsonRpcClient, "call">; readonly forks: Pick<ForkReader, "after"> },
): (head: Header) => Promise<NextBlock> {
	return async (head) => {
		const fees = await askFees(dependencies.node, head);
		const timestamp = slots.timestampAfter(head);
		return {
			number: head.number + 1,
			timestamp,
			stepMs: slots.stepMs,
			parentTimestamp: head.timestamp,
			fork: dependencies.forks.after(head, timestamp),
			baseFee: fees.baseFee ?? nextBaseFee(head),
			blobBaseFee: fees.blobBaseFee ?? nextBlobBaseFee(head),
			// The proposer may change it by 1/1024, which can't be known beforehand.
			gasLimit: head.gasLimit,
			parentHash: head.hash,
		};
	};
}

/** The next block's base fee in wei per gas. https://eips.ethereum.org/EIPS/eip-1559 */
export function nextBaseFee(head: Header): bigint {
	const { baseFee, gasUsed, gasLimit } = head;
	const target = gasLimit / ELASTICITY;
	if (target === 0n || gasUsed === target) return baseFee;
	if (gasUsed < target) return baseFee - (baseFee * (target - gasUsed)) / target / MAX_CHANGE_DENOMINATOR;
	const rise = (baseFee * (gasUsed - target)) / target / MAX_CHANGE_DENOMINATOR;
	return baseFee + (rise > 0n ? rise : 1n);
}

/** The next block's blob base fee in wei per blob gas, by EIP-4844, EIP-7691 and EIP-7918. */
export function nextBlobBaseFee({ excessBlobGas, blobGasUsed, baseFee }: Header): bigint {
	const target = TARGET_BLOBS * GAS_PER_BLOB;
	if (excessBlobGas + blobGasUsed < target) return blobBaseFee(0n);
	if (BLOB_BASE_COST * baseFee > GAS_PER_BLOB * blobBaseFee(excessBlobGas)) {
		return blobBaseFee(excessBlobGas + (blobGasUsed * (MAX_BLOBS - TARGET_BLOBS)) / MAX_BLOBS);
	}
	return blobBaseFee(excessBlobGas + blobGasUsed - target);
}

/**
 * `e^(excessBlobGas / BLOB_UPDATE_FRACTION)` in whole numbers, at least 1, as EIP-4844 defines it.
 */
function blobBaseFee(excessBlobGas: bigint): bigint {
	let sum = 0n;
	let term = BLOB_UPDATE_FRACTION;
	for (let i = 1n; term > 0n; i += 1n) {
		sum += term;
		term = (term * excessBlobGas) / (BLOB_UPDATE_FRACTION * i);
	}
	return sum / BLOB_UPDATE_FRACTION;
}

/** The next block's fees from `eth_feeHistory`. */
type NodeFees = Partial<Pick<NextBlock, "baseFee" | "blobBaseFee">>;

async function askFees(node: Pick<JsonRpcClient, "call">, head: Header): Promise<NodeFees> {
	try {
		const params = ["0x1", toQuantity(head.number), []];
		const answer = await node.call({ method: "eth_feeHistory", params }, FEE_HISTORY_MS);
		return answer.ok ? readFees(answer.result, head) : {};
	} catch (thrown) {
		if (thrown instanceof UpstreamError) return {};
		throw thrown;
	}
}

/**
 * Each list has the head's fee, then the next block's. If the head's fee differs, the answer is for
 * another block.
 */
function readFees(result: unknown, head: Header): NodeFees {
	const { baseFeePerGas, baseFeePerBlobGas } = fieldsOf(result) ?? {};
	const [own, baseFee] = quantities(baseFeePerGas);
	if (own !== head.baseFee || baseFee == null) return {};
	const [, blobBaseFee] = quantities(baseFeePerBlobGas);
	// Nodes answer 0 on chains without blobs.
	return blobBaseFee ? { baseFee, blobBaseFee } : { baseFee };
}

function quantities(list: unknown): (bigint | null)[] {
	return Array.isArray(list) ? list.map(parseNodeQuantity) : [];
}
