// Keccak-256, keys and signatures: comparison with ethers and viem, and what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 as byEthers, hashMessage, id, Wallet } from "ethers";
import { privateKeyToAccount } from "viem/accounts";
import { bytesToHex } from "../../../../shared/ethereum/hex.ts";
import {
	addressOfKey,
	createBodySigner,
	createKey,
	keccak256,
	SECP256K1_N,
	verifyBody,
} from "../../../../shared/ethereum/signatures.ts";
import { senderOfAuthorization } from "../../../../shared/ethereum/transaction.ts";
import { randomKey } from "../../../support/rawTransactions.ts";
import { SeededRandom } from "../../../support/seededRandom.ts";

const random = new SeededRandom(0xf1a5);

test("Keccak-256 equals that of ethers, in one part or several", () => {
	// A block of the hash has 136 bytes.
	for (const length of [0, 1, 135, 136, 137, 272, 10_000]) {
		const bytes = random.bytes(length);
		const cut = random.below(length + 1);
		for (const parts of [[bytes], [bytes.subarray(0, cut), new Uint8Array(bytes.subarray(cut))]]) {
			assert.equal(bytesToHex(keccak256(...parts)), byEthers(bytes));
		}
	}
});

test("signed bodies equal those of ethers, as builders document it", async () => {
	for (let round = 0; round < 20; round++) {
		const key = `0x${randomKey(random).toString("hex")}`;
		const wallet = new Wallet(key);
		const address = wallet.address.toLowerCase();
		const body = round === 0 ? "" : `{"é":"${random.bytes(round).toString("base64")}"}`;
		const expected = `${address}:${await wallet.signMessage(id(body))}`;
		for (const form of [body, Buffer.from(body)]) assert.equal(createBodySigner(key).sign(form), expected);
		assert.deepEqual(verifyBody(expected, body), { ok: true, address, digest: hashMessage(id(body)) });
	}
});

/** The first account of anvil and hardhat. */
const KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_sendBundle","params":[{"txs":[]}]}';
const { address: signer, sign } = createBodySigner(KEY);
const good = sign(BODY);
const [r, s, v] = [good.slice(45, 109), good.slice(109, 173), good.slice(173)];
const otherV = v === "1b" ? "1c" : "1b";
const highS = (SECP256K1_N - BigInt(`0x${s}`)).toString(16).padStart(64, "0");
const zero = "0".repeat(64);
const order = SECP256K1_N.toString(16);
const by = (signature: string) => `${signer}:0x${signature}`;

const HEADERS = {
	ok: [
		...[good, by(`${r}${s}${v === "1b" ? "00" : "01"}`), good.replace(signer, new Wallet(KEY).address)],
		`0x${signer.slice(2).toUpperCase()}:0x${(r + s + v).toUpperCase()}`,
	],
	malformed: [
		...["", signer, good.slice(43), good.replace(":", ";"), `${good} `, `${good}\n`, `${good},${good}`],
		...[good.replace(":0x", ":"), good.slice(0, -1), `${good}00`, good.slice(0, -2), `0x${good.slice(3)}`],
		`${good.slice(0, -1)}g`,
	],
	invalid: [
		...["02", "1a", "1d", "ff"].map((other) => by(r + s + other)),
		...[by(r + highS + otherV), by(zero + s + v), by(r + zero + v), by(order + s + v)],
		by(`${"5".padStart(64, "0")}${s}${v}`),
	],
	mismatch: [by(r + s + otherV), good.replace(signer, `0x${"11".repeat(20)}`)],
} as const;

test("a header is accepted with each form of v and in any case, or refused with the reason", () => {
	for (const [reason, headers] of Object.entries(HEADERS)) {
		const digest = hashMessage(id(BODY));
		const expected = reason === "ok" ? { ok: true, address: signer, digest } : { ok: false, reason };
		for (const header of headers) assert.deepEqual(verifyBody(header, BODY), expected, header);
	}
	assert.deepEqual(verifyBody(good, `${BODY} `), { ok: false, reason: "mismatch" });
});

test("created keys can sign; an invalid key is refused without being quoted", () => {
	const keys = new Set(Array.from({ length: 20 }, createKey));
	assert.equal(keys.size, 20);
	for (const key of keys) assert.equal(addressOfKey(key), new Wallet(key).address.toLowerCase());
	for (const key of [zero, `0x${zero}`, `0x${order}`, KEY.slice(0, -2), `${KEY}00`, `${KEY.slice(0, -1)}g`]) {
		const isQuiet = (thrown: Error) => thrown instanceof TypeError && !thrown.message.includes(key);
		assert.throws(() => createBodySigner(key), isQuiet, key);
	}
});

test("the authority of an authorization signed by viem is found; an invalid one has none", async () => {
	for (const [chainId, nonce] of [
		[0, 0],
		[31_337, 2 ** 40],
	] as const) {
		const account = privateKeyToAccount(`0x${randomKey(random).toString("hex")}`);
		const address = `0x${random.bytes(20).toString("hex")}` as const;
		const signed = await account.signAuthorization({ chainId, nonce, address });
		const tuple = {
			...{ chainId: BigInt(chainId), nonce: BigInt(nonce), address },
			...{ yParity: signed.yParity as number, r: BigInt(signed.r), s: BigInt(signed.s) },
		};
		const authority = account.address.toLowerCase();
		assert.equal(senderOfAuthorization(tuple), authority);
		assert.notEqual(senderOfAuthorization({ ...tuple, nonce: 1n }), authority);
		for (const spoiled of [
			{ yParity: 2 },
			{ yParity: 27 },
			{ r: 0n },
			{ s: SECP256K1_N - tuple.s },
			{ r: 5n },
		]) {
			assert.equal(senderOfAuthorization({ ...tuple, ...spoiled }), null);
		}
	}
});
