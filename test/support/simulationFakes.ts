// Fakes for the tests of simulations: a clock that is moved by hand, a simulator that answers when it is told to,
// transactions that were never signed. They record what they were asked and decide nothing.

import type { Simulator } from "../../relay/domain/ports.ts";
import type { BlockContext, SimulationOutcome, SimulationRequest } from "../../relay/domain/simulation.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";

/** Time stands still but for {@link advance}. */
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

	/** How many timers are set. */
	get pending(): number {
		return this.#timers.size;
	}

	/** Lets `ms` pass, and what is due happen in its order. */
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
	feeRecipient: "0x00000000000000000000000000000000facade01",
};

/** An EIP-1559 call of SENDER's at nonce 0 with 100,000 gas, a cap of 20 wei and a tip of 1. */
export function fakeTransaction(fields: Partial<DecodedTransaction> = {}): DecodedTransaction {
	return {
		type: 2,
		chainId: 1n,
		nonce: 0n,
		gasLimit: 100_000n,
		to: "0x0000000000000000000000000000000000000abc",
		value: 0n,
		data: Buffer.alloc(0),
		accessList: [],
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
		sidecar: null,
		...fields,
	};
}

/** A new request of SENDER's in BLOCK, nonce 0 and 10⁹ wei unless `fields` say otherwise. */
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

/** Simulations that hang until the test ends them; `running` are those begun, in order. */
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
