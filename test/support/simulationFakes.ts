// Fakes for the unit tests of simulation: a clock, unsigned transactions, and simulators and nodes
// whose answers a test decides.

import type { CallsRequest, TransactionsRequest, UnsignedCall } from "../../relay/domain/callMany.ts";
import type { Header } from "../../relay/domain/chain.ts";
import type { Simulator } from "../../relay/domain/ports.ts";
import { Recoveries } from "../../relay/domain/recoveries.ts";
import type { BlockContext, SimulationOutcome, SimulationRequest } from "../../relay/domain/simulation.ts";
import { type CallManyOptions, createCallMany } from "../../relay/simulation/callMany/callMany.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { NO_ACCESS } from "../../shared/ethereum/transactionFields.ts";
import { PRAGUE } from "./forks.ts";
import { ManualClock } from "./manualClock.ts";
import { type Answer, ScriptedNode } from "./nodes.ts";
import { signedTransaction } from "./txFactory.ts";

/** A clock that only {@link advance} moves. */
export class FakeClock implements Clock {
	#now = 0;
	readonly #timers = new Set<{ at: number; fn: () => void }>();

	now(): number {
		return this.#now;
	}

	monotonic(): number {
		return this.#now;
	}

	after(ms: number, fn: () => void): Timer {
		const timer = { at: this.#now + ms, fn };
		this.#timers.add(timer);
		return { cancel: () => this.#timers.delete(timer) };
	}

	/** The number of timers that are set. */
	get pending(): number {
		return this.#timers.size;
	}

	/** Moves on by `ms`, and fires due timers in order. */
	advance(ms: number): void {
		const end = this.#now + ms;
		for (;;) {
			const due = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
			if (due === undefined) break;
			this.#timers.delete(due);
			this.#now = due.at;
			due.fn();
		}
		this.#now = end;
	}
}

export const SENDER = "0x00000000000000000000000000000000000005e4";

export const BLOCK: BlockContext = {
	stateBlock: 99,
	number: 100,
	timestamp: 1_700_000_012,
	baseFee: 10n,
	blobBaseFee: 3n,
	gasLimit: 30_000_000n,
	fork: PRAGUE,
	feeRecipient: "0x00000000000000000000000000000000facade01",
};

/**
 * An EIP-1559 transaction of SENDER with nonce 0, 100,000 gas, a fee cap of 20 wei and a tip of 1.
 */
export function fakeTransaction(fields: Partial<DecodedTransaction> = {}): DecodedTransaction {
	return {
		type: 2,
		chainId: 1n,
		nonce: 0n,
		gasLimit: 100_000n,
		to: "0x0000000000000000000000000000000000000abc",
		value: 0n,
		data: Buffer.alloc(0),
		accessList: NO_ACCESS,
		gasPrice: null,
		maxFeePerGas: 20n,
		maxPriorityFeePerGas: 1n,
		maxFeePerBlobGas: null,
		blobVersionedHashes: [],
		authorizationList: [],
		v: 0n,
		yParity: 0,
		r: 1n,
		s: 1n,
		hash: `0x${"00".repeat(32)}`,
		from: SENDER,
		raw: Buffer.alloc(0),
		size: 0,
		zeroBytes: 0,
		sidecar: null,
		...fields,
	};
}

/** A request of SENDER in BLOCK; by default with nonce 0 and 10⁹ wei. */
export function fakeRequest(fields: Partial<SimulationRequest> = {}): SimulationRequest {
	return {
		block: BLOCK,
		client: "192.0.2.1",
		priority: "new",
		accounts: new Map([[SENDER, { nonce: 0n, balance: 1_000_000_000n }]]),
		transactions: [fakeTransaction()],
		...fields,
	};
}

export const PASSED: SimulationOutcome = { ok: true, gasUsed: 21_000n, emitsEvents: false, paid: 0n };

/**
 * A simulator whose simulations run until the test ends them; `running` are those that have begun,
 * in order.
 */
export class HeldSimulator implements Simulator {
	readonly running: {
		readonly request: SimulationRequest;
		end(outcomes: SimulationOutcome[]): void;
		fail(thrown: unknown): void;
	}[] = [];

	simulate(request: SimulationRequest): Promise<SimulationOutcome[]> {
		return new Promise((resolve, reject) => {
			this.running.push({ request, end: resolve, fail: reject });
		});
	}
}

const GWEI = 1_000_000_000n;
/** The chain's last block. */
const HEAD = 100;
export const HASHES = [`0x${"01".repeat(32)}`, `0x${"02".repeat(32)}`] as const;
const TO = `0x${"cd".repeat(20)}`;

function hashOf(number: number): string {
	return `0x${number.toString(16).padStart(64, "0")}`;
}

/** A block as nodes return it. */
function blockObject(number: number, transactions: readonly unknown[] = HASHES): Record<string, unknown> {
	return {
		number: `0x${number.toString(16)}`,
		hash: hashOf(number),
		parentHash: hashOf(Math.max(number - 1, 0)),
		timestamp: `0x${(1_700_000_000 + 12 * number).toString(16)}`,
		gasLimit: "0x1c9c380",
		gasUsed: "0x0",
		baseFeePerGas: "0x3b9aca00",
		miner: `0x${"aa".repeat(20)}`,
		mixHash: `0x${"bb".repeat(32)}`,
		transactions,
	};
}

/** The receipt of a successful transaction that used 21,000 gas. */
export function receipt(transactionHash: string, fields: object = {}): object {
	return { transactionHash, gasUsed: "0x5208", status: "0x1", effectiveGasPrice: "0x3b9aca00", ...fields };
}

/** Answers of a node with blocks up to HEAD, whose accounts have sent nothing and hold an ether. */
const CHAIN: Readonly<Record<string, Answer>> = {
	eth_getBlockByNumber([block, full]) {
		const number = block === "latest" ? HEAD : Number(block);
		if (number > HEAD) return null;
		const from = `0x${"ee".repeat(20)}`;
		return blockObject(
			number,
			full === true ? HASHES.map((hash) => ({ hash, from, to: TO, gas: "0x186a0", type: "0x0" })) : HASHES,
		);
	},
	eth_getBlockReceipts: () => HASHES.map((hash) => receipt(hash)),
	eth_getTransactionCount: () => "0x0",
	eth_getBalance: () => "0xde0b6b3a7640000",
	eth_getCode: () => "0x",
};

export function startCallMany(
	answers: Readonly<Record<string, Answer>> = {},
	options: Partial<CallManyOptions> = {},
	clock: Clock = new ManualClock(),
) {
	const node = new ScriptedNode({ ...CHAIN, ...answers });
	const shared = new Map<string, DecodedTransaction>();
	const callMany = createCallMany(
		{
			rules: { chainId: 31_337n },
			feeRecipientOf: () => `0x${"fe".repeat(20)}`,
			...options,
		},
		{
			node,
			nextBlock: async (head: Header) => ({
				number: head.number + 1,
				timestamp: head.timestamp + 12,
				baseFee: GWEI,
				blobBaseFee: 1n,
				gasLimit: head.gasLimit,
				fork: PRAGUE,
			}),
			forkAt: () => PRAGUE,
			sharedTransaction: (hash) => shared.get(hash) ?? null,
			recoveries: new Recoveries(),
			clock,
		},
	);
	return { node, shared, callMany };
}

/** A request that by default simulates one transaction in the next block. */
export function signedRequest(fields: Partial<TransactionsRequest> = {}): TransactionsRequest {
	return {
		client: "me",
		txs: [signedTransaction()],
		blockNumber: BigInt(HEAD + 1),
		stateBlock: "latest",
		timestamp: null,
		...fields,
	};
}

export function call(fields: Partial<UnsignedCall> = {}): UnsignedCall {
	return {
		from: `0x${"ab".repeat(20)}`,
		to: TO,
		gas: 100_000n,
		gasPrice: null,
		maxFeePerGas: null,
		maxPriorityFeePerGas: null,
		value: 0n,
		data: "0x",
		accessList: [],
		...fields,
	};
}

/** A request that by default makes one call after the last block. */
export function callsRequest(fields: Partial<CallsRequest> = {}): CallsRequest {
	return {
		client: "me",
		bundles: [{ transactions: [call()], blockOverride: {} }],
		block: "latest",
		transactionIndex: null,
		...fields,
	};
}

/** The parameter of eth_simulateV1. */
interface SimulateParams {
	readonly validation: boolean;
	readonly blockStateCalls: readonly {
		readonly blockOverrides: Readonly<Record<string, string>>;
		readonly stateOverrides?: Readonly<Record<string, object>>;
		readonly calls: readonly Readonly<Record<string, string>>[];
	}[];
}

/** The result of a successful call of eth_simulateV1. */
export function simulatedCall(returnData: string, fields: object = {}): Record<string, unknown> {
	return { status: "0x1", gasUsed: "0x5208", returnData, logs: [], ...fields };
}

/**
 * An eth_simulateV1 like geth's, with at most 50,000,000 gas in a request; `run` answers each
 * block's calls.
 */
export function simulateV1(
	run: (calls: SimulateParams["blockStateCalls"][number]["calls"], params: SimulateParams) => unknown[],
): Answer {
	return ([given, block]) => {
		const params = given as SimulateParams;
		return params.blockStateCalls.map((one) => {
			const { number, baseFeePerGas } = one.blockOverrides;
			if (block !== "latest") return { number, calls: run(one.calls, params) };
			const seen = [BigInt(baseFeePerGas ?? 0), 50_000_000n - 21_012n];
			const words = seen.map((value) => value.toString(16).padStart(64, "0"));
			return { number, calls: [simulatedCall(`0x${words.join("")}`)] };
		});
	};
}
