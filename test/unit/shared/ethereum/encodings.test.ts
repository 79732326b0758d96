// Hex, RLP, Keccak-256 and signatures: the specifications' examples, comparison with ethers and viem, and what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 as byEthers, id, Wallet } from "ethers";
import { privateKeyToAccount } from "viem/accounts";
import {
	bytesToHex,
	hexToBytes,
	parseAddress,
	parseHash,
	parseQuantity,
	toQuantity,
} from "../../../../shared/ethereum/hex.ts";
import { type RlpItem, RlpReader, rlpEncode, uintToBytes } from "../../../../shared/ethereum/rlp.ts";
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
const ADDRESS = "0xAbCdEf0123456789aBcDeF0123456789abcdef01";
const SHORT = ADDRESS.slice(0, -1);
const MAX = 2n ** 256n - 1n;

type Parse = (text: string) => unknown;
const TAKEN: readonly [parse: Parse, text: string, value: unknown][] = [
	[hexToBytes, "0x", Buffer.alloc(0)],
	[hexToBytes, "0XAbff", Buffer.from([0xab, 0xff])],
	[parseAddress, ADDRESS, ADDRESS.toLowerCase()],
	[parseHash, `0X${"AB".repeat(32)}`, `0x${"ab".repeat(32)}`],
	[parseQuantity, "0x0", 0n],
	[parseQuantity, "0X1F", 31n],
	[parseQuantity, `0x${MAX.toString(16)}`, MAX],
];
const REFUSED: readonly [parse: Parse, ...texts: string[]][] = [
	// Node's decoder uses the lower eight bits of a character: U+0130 as "0", U+0161 as "a".
	[hexToBytes, "0x\u0130\u0130", "0xab\u0161b", "0xé0", "0x\ud83d\ude00"],
	[hexToBytes, "", "0", "00", "x00", "0x0", "0xg0", "0x0g", "0x00 ", " 0x00", "0x00\n", "0x-1", "0x0x00"],
	[parseAddress, SHORT, `${ADDRESS}0`, ADDRESS.slice(2), `${SHORT}g`, `${SHORT}\n`, ""],
	[parseHash, ADDRESS, `0x${"\u0130".repeat(64)}`],
	[parseQuantity, "", "0x", "0x00", "0x01", "1", "0xg", "-0x1", " 0x1", "0x1n", `0x1${"0".repeat(64)}`],
];

test("hex is read strictly, and written in lower case", () => {
	for (const [parse, text, value] of TAKEN) assert.deepEqual(parse(text), value, `${parse.name} ${text}`);
	for (const [parse, ...texts] of REFUSED) {
		for (const text of texts) assert.equal(parse(text), null, `${parse.name} ${JSON.stringify(text)}`);
	}
	assert.equal(bytesToHex(new Uint8Array([1, 0xab, 0xff, 4]).subarray(1, 3)), "0xabff");
	assert.deepEqual([0n, 255, 2n ** 64n].map(toQuantity), ["0x0", "0xff", "0x10000000000000000"]);
	for (const bad of [-1n, 1.5]) assert.throws(() => toQuantity(bad), RangeError);
});

const text = (value: string) => Buffer.from(value, "latin1");
const LOREM = text("Lorem ipsum dolor sit amet, consectetur adipisicing elit");
/** https://ethereum.org/en/developers/docs/data-structures-and-encoding/rlp/#examples */
const EXAMPLES: readonly [RlpItem, string][] = [
	[text("dog"), "83646f67"],
	[[text("cat"), text("dog")], "c88363617483646f67"],
	[text(""), "80"],
	[[], "c0"],
	[uintToBytes(0n), "80"],
	[Buffer.from([0]), "00"],
	[uintToBytes(1024n), "820400"],
	[[[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"],
	[LOREM, `b838${LOREM.toString("hex")}`],
];

test("RLP: the specification's examples, and integers of every length", () => {
	for (const [item, hex] of EXAMPLES) assert.equal(rlpEncode(item).toString("hex"), hex);
	for (let bits = 0n; bits < 256n; bits += 1n) {
		for (const value of [1n << bits, (1n << bits) - 1n]) {
			const source = new RlpReader(rlpEncode(uintToBytes(value)));
			assert.deepEqual([source.uint("n", 32), source.fault], [value, null]);
		}
	}
	assert.throws(() => uintToBytes(-1n), RangeError);
});

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
		assert.deepEqual(verifyBody(expected, body), { ok: true, address });
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
		const expected = reason === "ok" ? { ok: true, address: signer } : { ok: false, reason };
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
