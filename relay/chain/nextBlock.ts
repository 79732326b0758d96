// Base fee, blob base fee and gas limit of the next block. The node is asked, because it knows the chain's forks;
// where it can't tell, the protocol's formulas do.

import { readQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Header, NextBlock } from "../domain/chain.ts";

/** What a fork says of blobs. Blobs per block; the divisor in the blob base fee's exponent. */
export interface BlobSchedule {
	readonly target: number;
	readonly max: number;
	readonly updateFraction: bigint;
	/** Whether the blob base fee has a floor by the base fee. https://eips.ethereum.org/EIPS/eip-7918 */
	readonly reserve: boolean;
}

/**
 * Ethereum's since the second blob-parameter-only fork of 2026-01-07 (https://eips.ethereum.org/EIPS/eip-7892). Only
 * used where the node does not tell the blob base fee, which is why later forks need not be known here.
 */
export const BLOB_SCHEDULE: BlobSchedule = {
	target: 14,
	max: 21,
	updateFraction: 11_684_671n,
	reserve: true,
};

/** EIP-1559: the target is half of the limit, and a block moves the base fee by an eighth at most. */
const ELASTICITY = 2n;
const MAX_CHANGE_DENOMINATOR = 8n;
const GAS_PER_BLOB = 131_072n;
/** Gas whose cost at the base fee a blob costs at least. https://eips.ethereum.org/EIPS/eip-7918 */
const BLOB_BASE_COST = 8_192n;
/** Wei per blob gas at least. */
const MIN_BLOB_BASE_FEE = 1n;
const FEE_HISTORY_MS = 1_000;

/**
 * A function from a head to what the block after it allows; it never throws. `slotSeconds` is the time between
 * blocks. `eth_feeHistory` of the head tells both fees of the next block; should it not answer within a second, be
 * of another block, or know no blobs, {@link nextBaseFee} and {@link nextBlobBaseFee} do.
 */
export function nextBlockReader(
	options: { readonly slotSeconds: number },
	dependencies: { readonly node: Pick<JsonRpcClient, "call"> },
): (head: Header) => Promise<NextBlock> {
	return async (head) => {
		const told = await askFees(dependencies.node, head);
		return {
			number: head.number + 1,
			timestamp: head.timestamp + options.slotSeconds,
			baseFee: told.baseFee ?? nextBaseFee(head),
			blobBaseFee: told.blobBaseFee ?? nextBlobBaseFee(head, BLOB_SCHEDULE),
			// A proposer may move it by 1/1024; nobody knows by how much before.
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
export function nextBlobBaseFee(head: Header, schedule: BlobSchedule): bigint {
	return blobBaseFee(nextExcessBlobGas(head, schedule), schedule);
}

function nextExcessBlobGas(head: Header, schedule: BlobSchedule): bigint {
	const { excessBlobGas, blobGasUsed, baseFee } = head;
	const target = BigInt(schedule.target) * GAS_PER_BLOB;
	if (excessBlobGas + blobGasUsed < target) return 0n;
	const floor = BLOB_BASE_COST * baseFee;
	if (schedule.reserve && floor > GAS_PER_BLOB * blobBaseFee(excessBlobGas, schedule)) {
		return excessBlobGas + (blobGasUsed * BigInt(schedule.max - schedule.target)) / BigInt(schedule.max);
	}
	return excessBlobGas + blobGasUsed - target;
}

/** `factor · e^(numerator / denominator)` in whole numbers, as EIP-4844 defines it. */
function blobBaseFee(excessBlobGas: bigint, { updateFraction }: BlobSchedule): bigint {
	let sum = 0n;
	let term = MIN_BLOB_BASE_FEE * updateFraction;
	for (let i = 1n; term > 0n; i += 1n) {
		sum += term;
		term = (term * excessBlobGas) / (updateFraction * i);
	}
	return sum / updateFraction;
}

interface Told {
	readonly baseFee?: bigint;
	readonly blobBaseFee?: bigint;
}

async function askFees(node: Pick<JsonRpcClient, "call">, head: Header): Promise<Told> {
	try {
		const params = ["0x1", toQuantity(head.number), []];
		const answer = await node.call({ method: "eth_feeHistory", params }, FEE_HISTORY_MS);
		return answer.ok ? readFees(answer.result, head) : {};
	} catch (thrown) {
		if (thrown instanceof UpstreamError) return {};
		throw thrown;
	}
}

/** Each list has the head's fee and then the next block's; a head's fee that differs is of another fork's block. */
function readFees(result: unknown, head: Header): Told {
	if (typeof result !== "object" || result === null) return {};
	const { baseFeePerGas, baseFeePerBlobGas } = result as Record<string, unknown>;
	const [own, next] = quantities(baseFeePerGas);
	if (own !== head.baseFee || next === undefined) return {};
	const [, blob] = quantities(baseFeePerBlobGas);
	// 0 is told of chains without blobs.
	return blob === undefined || blob === 0n ? { baseFee: next } : { baseFee: next, blobBaseFee: blob };
}

function quantities(list: unknown): (bigint | undefined)[] {
	if (!Array.isArray(list)) return [];
	return list.map((one) => readQuantity(one) ?? undefined);
}
