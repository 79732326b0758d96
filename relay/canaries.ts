// Sends canaries: transfers of the operator's account to itself, each to one builder alone, at
// random times. Anybody else can have one only from that builder. domain/conduct.ts counts them,
// and docs/decisions/canaries.md has the choices.

import { SigningKey } from "ethers/crypto";
import { Transaction } from "ethers/transaction";
import type { Background } from "../shared/background.ts";
import { UNKNOWN_ADDRESS } from "../shared/client.ts";
import type { Clock } from "../shared/clock.ts";
import { hexToBytes } from "../shared/ethereum/hex.ts";
import { type Logger, safeError } from "../shared/log.ts";
import type { NextBlock, Tip } from "./domain/chain.ts";
import type { Accounts } from "./domain/ports.ts";
import type { Submission } from "./domain/transaction.ts";
import type { Pipeline } from "./pipeline.ts";
import type { Transactions } from "./transactions/transactions.ts";

export interface CanariesOptions {
	/** 0x hex of 32 bytes; never printed. */
	readonly key: string;
	/** Its address, lower case. */
	readonly address: string;
	/** On average. */
	readonly perDay: number;
	readonly chainId: bigint;
	/** Names of all builders. */
	readonly builders: readonly string[];
	readonly slot: { readonly ms: number };
}

export interface CanariesDependencies {
	readonly pipeline: Pick<Pipeline, "submit" | "cancel">;
	readonly pool: Pick<Transactions["pool"], "transactionsOf">;
	readonly accounts: Pick<Accounts, "get">;
	readonly tip: Tip;
	/** From 0 to below 1; nobody must be able to predict it. */
	readonly random: () => number;
	readonly background: Pick<Background, "run">;
	readonly clock: Clock;
	readonly log: Logger;
}

const DAY_MS = 86_400_000;
/** When a canary is cancelled, as a part of the slot in which it is sent. */
const CANCEL_AFTER = 0.5;
/**
 * The priority fee, in wei per gas: at least the first, by up to the second more. Low, so that the
 * canary rarely costs more than its base fee. Random, so that no two have the same bytes.
 */
const [LEAST_TIP, MORE_TIP] = [10_000_000n, 20_000_000];
/** The base fee may double until the canary is too cheap for the public mempool. */
const CAP_FACTOR = 2n;

/**
 * Sends canaries. Each head decides by itself whether one is sent, so a restart or another core
 * changes nothing.
 */
export class Canaries {
	readonly #options: CanariesOptions;
	readonly #dependencies: CanariesDependencies;
	#stopped = false;
	#isRefusalLogged = false;

	constructor(options: CanariesOptions, dependencies: CanariesDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** Sends no more. */
	stop(): void {
		this.#stopped = true;
	}

	/** A head came: ends the last canary, or sends one, with the probability of a slot. */
	headCame(): void {
		const { perDay, address, slot } = this.#options;
		const { background, pool, random } = this.#dependencies;
		if (this.#stopped) return;
		const { ready, waiting } = pool.transactionsOf(address);
		const pending = [...ready, ...waiting].map(({ transaction }) => transaction.tx.hash);
		if (pending.length > 0) background.run("canaries", () => this.#cancel(pending));
		else if (random() < (perDay * slot.ms) / DAY_MS) background.run("canaries", () => this.#send());
	}

	async #cancel(hashes: readonly string[]): Promise<void> {
		const { pipeline, log } = this.#dependencies;
		if (this.#stopped) return;
		try {
			for (const hash of hashes)
				await pipeline.cancel({ hash, address: null, signer: this.#options.address });
		} catch (thrown) {
			log.warn("could not cancel a canary, retrying", { fault: safeError(thrown) });
		}
	}

	async #send(): Promise<void> {
		const { address, builders } = this.#options;
		const { pipeline, accounts, tip, random, log, clock, background } = this.#dependencies;
		const next = tip.next();
		const builder = builders[Math.floor(random() * builders.length)];
		if (next === null || builder === undefined) return;
		try {
			const { nonce } = await accounts.get(address, UNKNOWN_ADDRESS);
			const outcome = await pipeline.submit(submissionTo(builder, this.#signed(nonce, next)));
			if (outcome.outcome === "rejected") {
				if (!this.#isRefusalLogged) log.warn("canary refused", { code: outcome.rejection.code });
				this.#isRefusalLogged = true;
				return;
			}
			this.#isRefusalLogged = false;
			clock.after(this.#options.slot.ms * CANCEL_AFTER, () => {
				background.run("canaries", () => this.#cancel([outcome.hash]));
			});
		} catch (thrown) {
			log.warn("could not send a canary", { fault: safeError(thrown) });
		}
	}

	/** A transfer of nothing from the account to itself (EIP-1559), signed. */
	#signed(nonce: bigint, { baseFee, fork }: NextBlock): Buffer {
		const { key, address, chainId } = this.#options;
		const tip = LEAST_TIP + BigInt(Math.floor(this.#dependencies.random() * MORE_TIP));
		const transaction = Transaction.from({
			...{ type: 2, chainId, nonce: Number(nonce), to: address, gasLimit: fork.transferGas.toExisting },
			...{ maxPriorityFeePerGas: tip, maxFeePerGas: CAP_FACTOR * baseFee + tip },
		});
		transaction.signature = new SigningKey(key).sign(transaction.unsignedHash);
		return hexToBytes(transaction.serialized) as Buffer;
	}
}

/** As a client's with `?hidden` and `builders=` would be, without an address of its own. */
function submissionTo(builder: string, raw: Buffer): Submission {
	return {
		raw,
		path: "noreverts",
		builders: [builder],
		isHidden: true,
		softCancellations: false,
		refundRecipient: null,
		referrer: null,
		address: null,
		submitterAddress: UNKNOWN_ADDRESS,
		again: null,
		requestId: null,
		trace: null,
	};
}
