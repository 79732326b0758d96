// A dev builder behind a fan-out, with contracts that pay the coinbase, a target, a backrun behind it, and what the
// built block says of them. There is no relay: the test decides who bids what.

import assert from "node:assert/strict";
import { Fanout } from "../../relay/broadcast/fanout.ts";
import { type BuilderInput, parseBuilders } from "../../relay/domain/builder.ts";
import type { OutgoingBundle } from "../../relay/domain/bundle.ts";
import { policyOf } from "../../relay/domain/endpoints.ts";
import { owedRefund } from "../../relay/domain/refund.ts";
import type { PrivateTransaction } from "../../relay/domain/transaction.ts";
import { systemClock } from "../../shared/clock.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { BuiltBlock } from "../devnet/blockMaker.ts";
import { type DevnetFixture, startFixture, walletOf } from "../devnet/devnetFixture.ts";
import {
	PAYS_AND_EMITS,
	PAYS_COINBASE,
	PAYS_IF_OPEN,
	REVERTS_AFTER_TIME,
	REVERTS_IF_COINBASE,
} from "./auctionContracts.ts";
import { accountOf, privateTransaction, signedTransaction, type TxOptions } from "./txFactory.ts";
import { until } from "./until.ts";

/** Wei that {@link DeliveryFixture.backrun} pays unless said. */
export const BID = 123_456_789_012_345n;
/** What is asked for of a backrun, where the builder takes as much. */
export const PERCENT = 90;
const REFUND_GAS = 21_000;
const CODE = { PAYS_COINBASE, PAYS_AND_EMITS, PAYS_IF_OPEN, REVERTS_AFTER_TIME, REVERTS_IF_COINBASE };
const TARGET_ACCOUNT = 0;
const SEARCHER_ACCOUNT = 1;

export type PayingContract = keyof typeof CODE;

/** The relay's side towards the one builder. */
export interface Delivery {
	readonly fanout: Fanout;
	/** The target by itself, for the next block. */
	send(target: PrivateTransaction): Promise<void>;
	sendBundle(bundle: OutgoingBundle): void;
	/** Waits until the builder has answered all, and answers how: kind and answer, in no order. */
	settled(): Promise<readonly string[]>;
}

/** A chain whose every block is built by {@link DevnetFixture.build}. */
export class DeliveryFixture {
	readonly net: DevnetFixture;
	readonly #fanouts: Fanout[] = [];
	#recipients = 0;

	constructor(net: DevnetFixture) {
		this.net = net;
	}

	async close(): Promise<void> {
		await Promise.all(this.#fanouts.map((fanout) => fanout.close()));
		await this.net.stop();
	}

	/** A fan-out to the builder, which is spoken to as `row` says. */
	delivery(row: Partial<BuilderInput>): Delivery {
		const { url } = this.net.builder;
		const parsed = parseBuilders([{ name: "dev", url, refundGas: REFUND_GAS, ...row }]);
		assert.ok(parsed.ok);
		const answers: string[] = [];
		const fanout = new Fanout(
			{ builders: parsed.rows, signingKey: walletOf("relay").privateKey, laneCapacity: 100 },
			{
				events: { emit: () => {} },
				...{ clock: systemClock, maySend: () => true },
				onDelivery: (_, kind, answer) => answers.push(`${kind} ${answer}`),
			},
		);
		this.#fanouts.push(fanout);
		return {
			fanout,
			send: async (target) => {
				const block = await this.#nextBlock();
				fanout.send({ transaction: target, block, lastBlock: block + 24 }, ["dev"]);
			},
			sendBundle: (bundle) =>
				assert.deepEqual(
					fanout.sendBundle(bundle, ["dev"], () => {}),
					["dev"],
				),
			settled: async () => {
				await until("an empty lane", () => fanout.depth === 0);
				return answers;
			},
		};
	}

	/** 1 wei to a stranger, unless said. */
	async target(
		options: TxOptions = {},
		path: PrivateTransaction["path"] = "fast",
	): Promise<PrivateTransaction> {
		return {
			...privateTransaction({ path }),
			tx: await this.#signed(TARGET_ACCOUNT, { value: 1n, ...options }),
		};
	}

	/** Calls one of the contracts; it pays {@link BID} there, and 1 gwei a gas beside. */
	backrun(name: PayingContract, options: TxOptions = {}): Promise<DecodedTransaction> {
		return this.#signed(SEARCHER_ACCOUNT, { to: contractAddress(name), value: BID, ...options });
	}

	/** As the auction sends it: behind its target, its refund out of what the backrun brings. */
	async bidOn(
		{ tx, path }: PrivateTransaction,
		behind: DecodedTransaction,
		recipient: string,
	): Promise<OutgoingBundle> {
		return {
			name: `backrun ${tx.hash}`,
			transactions: [
				{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false },
				{ tx: behind, mayRevert: false, mayDrop: true },
			],
			...{ client: "127.0.0.1", isPlain: false, block: await this.#nextBlock() },
			refund: { percent: PERCENT, recipient, bodyIdx: 0, of: behind.hash },
		};
	}

	/** A made-up address that has no ether yet. */
	newRecipient(): string {
		this.#recipients += 1;
		return walletOf(`recipient ${this.#recipients}`).address.toLowerCase();
	}

	async receipt(hash: string): Promise<{ fee: bigint; gasUsed: bigint; price: bigint }> {
		const fields = (await this.net.chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
		const [gasUsed, price] = [BigInt(fields.gasUsed ?? 0), BigInt(fields.effectiveGasPrice ?? 0)];
		return { fee: gasUsed * price, gasUsed, price };
	}

	/** What the block's refund must be: the builder's terms on what the backrun brought, {@link BID} and fees. */
	async owed({ fanout }: Delivery, block: BuiltBlock, hash: string): Promise<bigint> {
		const terms = fanout.terms("dev", PERCENT);
		assert.ok(terms !== null);
		const { gasUsed, price } = await this.receipt(hash);
		const brought = BID + gasUsed * (price - block.baseFeePerGas);
		return owedRefund(brought, block.baseFeePerGas, terms).owed;
	}

	/** The block holds `hashes` and then a transfer of the coinbase's to `recipient`, nothing else; its wei. */
	async refundIn(block: BuiltBlock, hashes: readonly string[], recipient: string): Promise<bigint> {
		assert.equal(block.transactions.length, hashes.length + 1);
		assert.deepEqual(block.transactions.slice(0, hashes.length), hashes);
		const hash = block.transactions.at(-1);
		const transfer = (await this.net.chain.rpc("eth_getTransactionByHash", [hash])) as Record<string, string>;
		assert.equal(transfer.from, this.net.builder.coinbase.toLowerCase());
		assert.equal(transfer.to, recipient);
		return BigInt(transfer.value ?? 0);
	}

	/** Seconds. */
	async headTime(): Promise<bigint> {
		const head = await this.net.chain.rpc("eth_getBlockByNumber", ["latest", false]);
		return BigInt((head as { timestamp: string }).timestamp);
	}

	/** Whether the call of `tx` goes through in a next block of another coinbase, 1 s behind the head. */
	async passesElsewhere(tx: DecodedTransaction): Promise<boolean> {
		const call = {
			from: tx.from,
			to: tx.to,
			value: `0x${tx.value.toString(16)}`,
			input: `0x${tx.data.toString("hex")}`,
		};
		const time = `0x${((await this.headTime()) + 1n).toString(16)}`;
		const blockOverrides = { feeRecipient: this.newRecipient(), time };
		const options = { blockStateCalls: [{ blockOverrides, calls: [call] }] };
		const blocks = await this.net.chain.rpc("eth_simulateV1", [options, "latest"]);
		return (blocks as { calls: { status: string }[] }[])[0]?.calls[0]?.status === "0x1";
	}

	async #nextBlock(): Promise<number> {
		return Number(await this.net.chain.rpc("eth_blockNumber")) + 1;
	}

	async #signed(account: number, options: TxOptions): Promise<DecodedTransaction> {
		const { address, privateKey } = this.net.chain.accounts[account] ?? { address: "", privateKey: "" };
		const nonce = await this.net.nonce(address);
		return signedTransaction({ by: accountOf(privateKey), nonce, ...options });
	}
}

/** Where {@link startDeliveryFixture} put the contract. */
export function contractAddress(name: PayingContract): string {
	return `0x${(0xba_c000 + Object.keys(CODE).indexOf(name)).toString(16).padStart(40, "0")}`;
}

/** A chain with the contracts, and a builder that takes the cost of a refund off it. */
export async function startDeliveryFixture(): Promise<DeliveryFixture> {
	const net = await startFixture({ builder: { refundGas: BigInt(REFUND_GAS) } });
	for (const [name, code] of Object.entries(CODE)) {
		await net.chain.rpc("anvil_setCode", [contractAddress(name as PayingContract), code]);
	}
	return new DeliveryFixture(net);
}
