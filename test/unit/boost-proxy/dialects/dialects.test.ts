// Error messages from the sources or logs of nodes and relays, and messages that only resemble
// them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlreadyKnown, isNonceTooLow, isPoolFull } from "../../../../boost-proxy/dialects/dialects.ts";

const KNOWN = [
	"already known",
	"ALREADY_EXISTS: already known",
	"AlreadyKnown",
	"call failed: AlreadyKnown",
	"already known: 0x6013",
	"known transaction: 0x7f657507aee0511e36d2d1972a6b22e917cc89f92b6c12c4dbd57eaabb236960",
	"Known transaction",
	"Known transaction (7f65)",
	"known transaction. transaction with hash 0x6013…3053 is already in the system",
	"Transaction with the same hash was already imported.",
	"INTERNAL_ERROR: existing tx with same hash",
	"transaction already imported",
	"Transaction already imported: 0xab",
	"already imported",
	"already in mempool",
	"tx already in mempool",
	"transaction already in the mempool",
	"already exists",
	"transaction already exists",
	"tx already exists in cache",
	"Error: already known",
	" already known ",
];
const NOT_KNOWN = [
	"unknown transaction",
	"unknown transaction type",
	"transaction unknown: already known senders only",
	"block already known",
	"known transaction type 5 is not supported",
	"known transactions limit reached",
	"already known nonce",
	"already exists a transaction with this nonce",
	"a transaction with the same nonce already exists",
	"replacement transaction underpriced",
	"replacement transaction underpriced: transaction already exists",
	"there is another tx which has the same nonce in the tx pool",
	"account already exists",
	"nonce too low",
	"transaction already mined by another sender",
	"not already known",
	"",
];
const LOW = [
	"nonce too low",
	"nonce too low: next nonce 82, tx nonce 81",
	"Nonce too low",
	"nonce too low. allowed nonce range: 427 - 447, actual: 426",
	"transaction rejected: nonce too low",
	"call failed: OldNonce, Current nonce: 22, nonce of rejected tx: 17",
	"INTERNAL_ERROR: nonce too low",
	"Transaction nonce is too low. Try incrementing the nonce.",
];
const NOT_LOW = ["nonce too high", "invalid nonce", "gas too low", "my nonce too low", "nonce too lowly", ""];

test("each kind of node's message for a known transaction", () => {
	// A trailing space changes nothing.
	for (const words of KNOWN) assert.ok(isAlreadyKnown(words.trimEnd()), words);
	for (const words of NOT_KNOWN) assert.equal(isAlreadyKnown(words), false, words);
});

test("each kind of node's message for a used nonce", () => {
	for (const words of LOW) assert.ok(isNonceTooLow(words), words);
	for (const words of NOT_LOW) assert.equal(isNonceTooLow(words), false, words);
});

test("the message of a full pool", () => {
	assert.ok(isPoolFull("txpool is full"), "go-ethereum's words");
	assert.equal(isPoolFull("the txpool is full"), false);
});

test("messages of any length are read quickly", () => {
	const long = "internal_error: ".repeat(100_000);
	const before = process.cpuUsage();
	for (let i = 0; i < 1_000; i++) isAlreadyKnown(long);
	const { user } = process.cpuUsage(before);
	assert.ok(user < 1_000_000, `${user} µs for a thousand`);
});
