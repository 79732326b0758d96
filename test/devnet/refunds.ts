// Plans a block's refunds and signs them as transfers from the coinbase's key. It decides nothing about orders, and
// sends nothing.

import { keccak256, type Wallet } from "ethers";
import type { OrderRefund } from "./orderBook.ts";

/** A refund that is paid, or why it is not. Wei. */
export interface BuiltRefund {
	/** Checksummed. */
	readonly recipient: string;
	readonly amount: bigint;
	/** Hash of the transfer; null when it was skipped. */
	readonly hash: string | null;
	/** Why it was skipped; null when it was paid. */
	readonly skipped: "nothing to refund" | "coinbase balance" | null;
}

/** A refund with its signed transfer, null where it is skipped. */
export interface PlannedRefund extends BuiltRefund {
	readonly raw: string | null;
}

/** The coinbase's account while a block is put together. */
export interface CoinbaseAccount {
	nonce: number;
	/** Wei. */
	balance: bigint;
}

/** What holds for all refunds of a block. */
export interface RefundTerms {
	readonly wallet: Wallet;
	readonly chainId: bigint;
	readonly baseFee: bigint;
	/** Gas, at the base fee, that each refund bears itself; 0: the builder bears it. */
	readonly refundGas: bigint;
	/** Addresses (checksummed) with code: a transfer to them may need more than 21,000 gas. */
	readonly withCode: ReadonlySet<string>;
}

const TRANSFER_GAS = 21_000n;
/** Enough for the receive function of a wallet contract. */
const CODE_TRANSFER_GAS = 100_000n;

/** The wei of one refund, given what each transaction brings (wei, by hash). */
export function refundOf(
	refund: OrderRefund,
	gains: ReadonlyMap<string, bigint>,
	terms: Pick<RefundTerms, "refundGas" | "baseFee">,
): bigint {
	const gain = refund.of.reduce((sum, hash) => sum + (gains.get(hash) ?? 0n), 0n);
	const amount = (gain * refund.millionths) / 1_000_000n - terms.refundGas * terms.baseFee;
	return amount > 0n ? amount : 0n;
}

/** An order's refunds in a row; `account` is moved on by what they cost. */
export async function planRefunds(
	refunds: readonly OrderRefund[],
	gains: ReadonlyMap<string, bigint>,
	account: CoinbaseAccount,
	terms: RefundTerms,
): Promise<PlannedRefund[]> {
	const planned: PlannedRefund[] = [];
	for (const refund of refunds) {
		planned.push(await plan(refund.recipient, refundOf(refund, gains, terms), account, terms));
	}
	return planned;
}

async function plan(
	recipient: string,
	amount: bigint,
	account: CoinbaseAccount,
	terms: RefundTerms,
): Promise<PlannedRefund> {
	const none = { recipient, amount, hash: null, raw: null };
	if (amount === 0n) return { ...none, skipped: "nothing to refund" };
	const gasLimit = terms.withCode.has(recipient) ? CODE_TRANSFER_GAS : TRANSFER_GAS;
	const cost = amount + gasLimit * terms.baseFee;
	if (account.balance < cost) return { ...none, skipped: "coinbase balance" };
	const raw = await terms.wallet.signTransaction({
		type: 2,
		chainId: terms.chainId,
		nonce: account.nonce,
		to: recipient,
		value: amount,
		gasLimit,
		maxFeePerGas: terms.baseFee,
		maxPriorityFeePerGas: 0n,
	});
	account.nonce += 1;
	account.balance -= cost;
	return { recipient, amount, hash: keccak256(raw), raw, skipped: null };
}
