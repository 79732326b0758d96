// Bids with signed backruns, for tests of what ranks and sends them.

import type { Bid } from "../../../../relay/auction/bids.ts";
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

/** A bid of 1 wei on `0xt` for block 101 unless said; each with a later `seq`, an owner, a sender and a contract of its own. */
export function bidOf(fields: Partial<Bid> = {}): Bid {
	seq += 1;
	const backrun = fields.backrun ?? backrunOf(seq % 50, 0);
	const owner = fields.owner ?? `owner ${seq}`;
	const client = fields.client ?? owner;
	const bidder = { owner, client, sender: backrun.from, contract: `0xcontract${seq}` };
	const target = fields.target ?? "0xt";
	const range = { firstBlock: fields.firstBlock ?? 101, lastBlock: fields.lastBlock ?? 101 };
	return {
		record: { owner, hash: `0xbundle${seq}`, bidder, target, receivedAt: 1, ...range, blocks: [] },
		...{ bidder, owner, client, target, backrun, nonce: backrun.nonce, seq, ...range },
		submission: { owner, uuid: null, overtaken: null, stop: new AbortController(), end: null },
		...{ builders: null, value: 1n, basis: "now", checking: null, tried: null, out: null, landed: null },
		...fields,
	};
}
