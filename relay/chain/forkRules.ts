// What the chain's fork demands of every transaction, as the node tells it by `eth_config`, for the block that comes
// next: a fork that is announced is followed to the block. https://eips.ethereum.org/EIPS/eip-7910

import type { Background } from "../../shared/background.ts";
import { MAX_INITCODE_BYTES, MAX_TX_GAS } from "../../shared/ethereum/intrinsicGas.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { NextBlock } from "../domain/chain.ts";
import type { ChainRules } from "../domain/transactionRules.ts";

/** What a fork sets. */
type Fork = Pick<ChainRules, "maxTxGas" | "maxInitCodeBytes">;

/** https://eips.ethereum.org/EIPS/eip-7954 */
const AMSTERDAM_INITCODE_BYTES = 131_072;
const BEFORE_OSAKA: Fork = { maxTxGas: null, maxInitCodeBytes: MAX_INITCODE_BYTES };
/** EIP-7825 limits the gas of a transaction. */
const OSAKA: Fork = { ...BEFORE_OSAKA, maxTxGas: MAX_TX_GAS };
/** EIP-8037 lifts that limit again; what is left of it, 2^32 - 1, is above every block's. */
const AMSTERDAM: Fork = { maxTxGas: null, maxInitCodeBytes: AMSTERDAM_INITCODE_BYTES };
/** Mainnet, Sepolia and Hoodi, which have had Osaka since 2025: for nodes that do not serve `eth_config`. */
const OSAKA_CHAINS: readonly bigint[] = [1n, 11_155_111n, 560_048n];
/** Blocks after which the node is asked again: its operator may have updated it. */
const ASK_EACH_BLOCKS = 100;
const ASK_MS = 5_000;

/** The rules of the chain's next block, read by whoever judges a transaction. */
export class ForkRules implements ChainRules {
	readonly chainId: bigint;
	readonly #node: Pick<JsonRpcClient, "call">;
	readonly #background: Pick<Background, "run">;
	#current: Fork;
	/** The one that is announced, and from when on it holds, in seconds since the epoch. */
	#next: { readonly fork: Fork; readonly since: number } | null = null;
	/** Of the next block, in seconds since the epoch. */
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

	/** Takes what the next block is; the node is asked again now and then, and when a fork comes. */
	setNext({ number, timestamp }: Pick<NextBlock, "number" | "timestamp">): void {
		this.#timestamp = timestamp;
		if (!this.#hasCome && Math.abs(number - this.#askedAt) < ASK_EACH_BLOCKS) return;
		this.#askedAt = number;
		this.#background.run("fork rules", () => this.read());
	}

	/** Asks the node. Where it does not tell, what is known stays. */
	async read(): Promise<void> {
		try {
			const answer = await this.#node.call({ method: "eth_config", params: [] }, ASK_MS);
			const told = answer.ok && isObject(answer.result) ? answer.result : {};
			const current = forkOf(told.current);
			if (current === null) return;
			this.#current = current;
			const fork = forkOf(told.next);
			const since = isObject(told.next) ? told.next.activationTime : null;
			this.#next = fork !== null && typeof since === "number" ? { fork, since } : null;
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
		}
	}

	get #hasCome(): boolean {
		return this.#next !== null && this.#timestamp >= this.#next.since;
	}

	get #fork(): Fork {
		return this.#next !== null && this.#hasCome ? this.#next.fork : this.#current;
	}
}

/** Which fork's `config` it is, by what came with it: Osaka's P256VERIFY (EIP-7951), Amsterdam's builder deposits (EIP-8282). */
function forkOf(config: unknown): Fork | null {
	if (!isObject(config) || !isObject(config.precompiles)) return null;
	const contracts = isObject(config.systemContracts) ? config.systemContracts : {};
	if ("BUILDER_DEPOSIT_CONTRACT_ADDRESS" in contracts) return AMSTERDAM;
	return "P256VERIFY" in config.precompiles ? OSAKA : BEFORE_OSAKA;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null;
}
