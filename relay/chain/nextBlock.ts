// What the next block requires of transactions: base fee, blob base fee, gas limit and the fork's rules. They come from the
// node (`eth_feeHistory`, and `eth_config`, https://eips.ethereum.org/EIPS/eip-7910), or else from the protocol's formulas.

import type { Background } from "../../shared/background.ts";
import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { MAX_INITCODE_BYTES, MAX_TX_GAS } from "../../shared/ethereum/intrinsicGas.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Header, NextBlock } from "../domain/chain.ts";
import { fieldsOf } from "../domain/nodeJson.ts";
import type { ChainRules } from "../domain/transactionRules.ts";

/**
 * Ethereum's blobs since the second blob-parameter-only fork of 2026-01-07 (https://eips.ethereum.org/EIPS/eip-7892). Only used
 * if the node does not answer with the blob base fee, so later forks need not be known here.
 */
const TARGET_BLOBS = 14n;
const MAX_BLOBS = 21n;
const BLOB_UPDATE_FRACTION = 11_684_671n;

/** EIP-1559: the target is half of the limit, and a block moves the base fee by an eighth at most. */
const ELASTICITY = 2n;
const MAX_CHANGE_DENOMINATOR = 8n;
const GAS_PER_BLOB = 131_072n;
/** Gas whose cost at the base fee a blob costs at least. https://eips.ethereum.org/EIPS/eip-7918 */
const BLOB_BASE_COST = 8_192n;
const FEE_HISTORY_MS = 1_000;

/**
 * Returns a function from a head to the next block; it never throws. Both fees come from `eth_feeHistory`. If the node does
 * not answer within a second, answers for another block or knows no blobs, {@link nextBaseFee} and {@link nextBlobBaseFee}
 * compute them. `slotSeconds` is the time between blocks.
 */
export function nextBlockReader(
	options: { readonly slotSeconds: number },
	dependencies: { readonly node: Pick<JsonRpcClient, "call"> },
): (head: Header) => Promise<NextBlock> {
	return async (head) => {
		const fees = await askFees(dependencies.node, head);
		return {
			number: head.number + 1,
			timestamp: head.timestamp + options.slotSeconds,
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

/** `e^(excessBlobGas / BLOB_UPDATE_FRACTION)` in whole numbers, at least 1, as EIP-4844 defines it. */
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

/** Each list has the head's fee, then the next block's. If the head's fee differs, the answer is for another block. */
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

/** The rules that depend on the fork. */
type Fork = Pick<ChainRules, "maxTxGas" | "maxInitCodeBytes">;

/** https://eips.ethereum.org/EIPS/eip-7954 */
const AMSTERDAM_INITCODE_BYTES = 131_072;
const BEFORE_OSAKA: Fork = { maxTxGas: null, maxInitCodeBytes: MAX_INITCODE_BYTES };
/** EIP-7825 limits the gas of a transaction. */
const OSAKA: Fork = { ...BEFORE_OSAKA, maxTxGas: MAX_TX_GAS };
/** EIP-8037 raises that limit to 2^32 - 1, which is above every block's. */
const AMSTERDAM: Fork = { maxTxGas: null, maxInitCodeBytes: AMSTERDAM_INITCODE_BYTES };
/** Mainnet, Sepolia and Hoodi, which have had Osaka since 2025: for nodes that do not serve `eth_config`. */
const OSAKA_CHAINS: readonly bigint[] = [1n, 11_155_111n, 560_048n];
/** Blocks after which the node is asked again: its operator may have updated it. */
const ASK_EACH_BLOCKS = 100;
const ASK_MS = 5_000;

/** The rules of the chain's next block. */
export class ForkRules implements ChainRules {
	readonly chainId: bigint;
	readonly #node: Pick<JsonRpcClient, "call">;
	readonly #background: Pick<Background, "run">;
	#current: Fork;
	/** The announced fork, and its activation time in seconds since the epoch. */
	#next: { readonly fork: Fork; readonly since: number } | null = null;
	/** Time of the next block, in seconds since the epoch. */
	#timestamp = 0;
	#askedAt = 0;

	constructor(
		options: { readonly chainId: bigint },
		dependencies: {
			readonly node: Pick<JsonRpcClient, "call">;
			readonly background: Pick<Background, "run">;
		},
	) {
		this.chainId = options.chainId;
		this.#node = dependencies.node;
		this.#background = dependencies.background;
		this.#current = OSAKA_CHAINS.includes(options.chainId) ? OSAKA : BEFORE_OSAKA;
	}

	get maxTxGas(): bigint | null {
		return this.#fork.maxTxGas;
	}

	get maxInitCodeBytes(): number {
		return this.#fork.maxInitCodeBytes;
	}

	/** Sets the next block. The node is asked again every hundred blocks and at a fork. */
	setNext({ number, timestamp }: Pick<NextBlock, "number" | "timestamp">): void {
		this.#timestamp = timestamp;
		if (!this.#isForkActive && Math.abs(number - this.#askedAt) < ASK_EACH_BLOCKS) return;
		this.#askedAt = number;
		this.#background.run("fork rules", () => this.read());
	}

	/** Reads the rules from the node. If it does not answer, the known ones stay. */
	async read(): Promise<void> {
		try {
			const answer = await this.#node.call({ method: "eth_config", params: [] }, ASK_MS);
			const config = (answer.ok ? fieldsOf(answer.result) : null) ?? {};
			const current = forkOf(config.current);
			if (current === null) return;
			this.#current = current;
			const fork = forkOf(config.next);
			const since = fieldsOf(config.next)?.activationTime;
			this.#next = fork !== null && typeof since === "number" ? { fork, since } : null;
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
		}
	}

	get #isForkActive(): boolean {
		return this.#next !== null && this.#timestamp >= this.#next.since;
	}

	get #fork(): Fork {
		return this.#next !== null && this.#isForkActive ? this.#next.fork : this.#current;
	}
}

/** The fork of `config`, recognised by what it introduced: Osaka P256VERIFY (EIP-7951), Amsterdam builder deposits (EIP-8282). */
function forkOf(config: unknown): Fork | null {
	const { precompiles, systemContracts } = fieldsOf(config) ?? {};
	const known = fieldsOf(precompiles);
	if (known === null) return null;
	if ("BUILDER_DEPOSIT_CONTRACT_ADDRESS" in (fieldsOf(systemContracts) ?? {})) return AMSTERDAM;
	return "P256VERIFY" in known ? OSAKA : BEFORE_OSAKA;
}
