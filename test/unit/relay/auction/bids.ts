// Bids for tests of the book and what stands on it: targets and values come in, bids with signed backruns go out.

import type { Bid } from "../../../../relay/auction/book.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";

const signed = new Map<string, DecodedTransaction>();

/** A backrun of an account's nonce with so many bytes of data; signed once. */
export function backrunOf(account: number, nonce: number, bytes = 0): DecodedTransaction {
	const key = `${account} ${nonce} ${bytes}`;
	const known = signed.get(key);
	if (known !== undefined) return known;
	const tx = signedTransaction({
		by: testAccount(200 + account),
		nonce,
		data: Buffer.alloc(bytes, 1),
		gasLimit: 500_000,
	});
	signed.set(key, tx);
	return tx;
}

let seq = 0;

/** A bid of 1 wei on `0xt` for block 101 unless said; each with a later `seq`. */
export function bidOf(fields: Partial<Bid> = {}): Bid {
	seq += 1;
	return {
		...{
			owner: "me",
			network: fields.owner ?? "me",
			hash: `0xbundle${seq}`,
			target: "0xt",
			backrun: backrunOf(seq % 50, 0),
		},
		...{ firstBlock: 101, lastBlock: 101, builders: null, seq, value: 1n },
		...{ basis: "now", checking: null, tried: null },
		release() {},
		...fields,
	};
}
