// Who may cancel by hash: every kind of client against every kind of owner, under both policies.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	CANCEL_POLICIES,
	mayCancelTransaction,
	type TransactionOwner,
} from "../../../../relay/domain/cancelPolicy.ts";
import type { CancelRequest } from "../../../../relay/domain/transaction.ts";

const SENDER = "0x00000000000000000000000000000000000000aa";
const OTHER = "0x00000000000000000000000000000000000000bb";
const HERE = "198.51.100.1";
const THERE = "2001:db8::1";
const HELD: TransactionOwner = { from: SENDER, origin: HERE };
const SETTLED: TransactionOwner = { from: SENDER, origin: null };

type Client = Pick<CancelRequest, "address" | "signer">;

/** Whether each may cancel what is held, and what is settled, under `origin`. */
const ROWS: readonly (readonly [string, Client, boolean, boolean])[] = [
	["the address that submitted it", { address: HERE, signer: null }, true, false],
	["another address", { address: THERE, signer: null }, false, false],
	["no address", { address: null, signer: null }, false, false],
	["the sender's key from there", { address: HERE, signer: SENDER }, true, true],
	["the sender's key from elsewhere", { address: THERE, signer: SENDER }, true, true],
	["the sender's key in a web page", { address: null, signer: SENDER }, true, true],
	["another key from there", { address: HERE, signer: OTHER }, true, false],
	["another key from elsewhere", { address: THERE, signer: OTHER }, false, false],
	["another key in a web page", { address: null, signer: OTHER }, false, false],
	["an address that looks like it", { address: `${HERE}0`, signer: null }, false, false],
	["the sender's address in the place of the network's", { address: SENDER, signer: null }, false, false],
];

for (const [name, client, held, settled] of ROWS) {
	test(`origin: ${name}`, () => {
		assert.equal(mayCancelTransaction("origin", client, HELD), held);
		assert.equal(mayCancelTransaction("origin", client, SETTLED), settled);
	});
}

test("open: anybody", () => {
	for (const [name, client] of ROWS) {
		for (const owner of [HELD, SETTLED])
			assert.equal(mayCancelTransaction("open", client, owner), true, name);
	}
});

test("there are these two policies", () => {
	assert.deepEqual(CANCEL_POLICIES, ["origin", "open"]);
});
