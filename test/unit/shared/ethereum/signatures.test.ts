// Signatures: X-Flashbots-Signature against ethers, which the builders' own examples use, and each way in which a header can
// be wrong; senders of hashes and of EIP-7702 authorizations, against ethers and viem, and what has no sender.

import assert from "node:assert/strict";
import { test } from "node:test";
import { id, Wallet } from "ethers";
import secp256k1 from "secp256k1";
import { privateKeyToAccount } from "viem/accounts";
import {
	addressOfKey,
	createBodySigner,
	createKey,
	SECP256K1_N,
	verifyBody,
} from "../../../../shared/ethereum/signatures.ts";
import { senderOfAuthorization } from "../../../../shared/ethereum/transaction.ts";
import { randomKey } from "../../../support/rawTransactions.ts";
import { seededRandom } from "../../../support/seededRandom.ts";

const random = seededRandom(0xf1a5);
/** The first account of anvil and hardhat. */
const KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const ADDRESS = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_sendBundle","params":[{"txs":[]}]}';

test("signs as the builders' documents do with ethers", async () => {
	for (let round = 0; round < 20; round++) {
		const key = `0x${randomKey(random).toString("hex")}`;
		const wallet = new Wallet(key);
		const body = round === 0 ? "" : `{"é":"${random.bytes(round).toString("base64")}"}`;
		const expected = `${wallet.address.toLowerCase()}:${await wallet.signMessage(id(body))}`;
		for (const form of [body, Buffer.from(body), new Uint8Array(Buffer.from(body))]) {
			assert.equal(createBodySigner(key).sign(form), expected);
		}
		assert.equal(createBodySigner(key).address, wallet.address.toLowerCase());
		assert.deepEqual(verifyBody(expected, body), { ok: true, address: wallet.address.toLowerCase() });
	}
});

function parts(): { r: string; s: string; v: string } {
	const signature = createBodySigner(KEY).sign(BODY).slice(45);
	return { r: signature.slice(0, 64), s: signature.slice(64, 128), v: signature.slice(128) };
}

test("takes v as 0, 1, 27 and 28, and any case", () => {
	const { r, s, v } = parts();
	const plain = v === "1b" ? "00" : "01";
	const wanted = { ok: true, address: ADDRESS };
	assert.deepEqual(verifyBody(`${ADDRESS}:0x${r}${s}${v}`, BODY), wanted);
	assert.deepEqual(verifyBody(`${ADDRESS}:0x${r}${s}${plain}`, BODY), wanted);
	assert.deepEqual(verifyBody(`${new Wallet(KEY).address}:0x${r}${s}${v}`, BODY), wanted);
	const upper = `0x${ADDRESS.slice(2).toUpperCase()}:0x${(r + s + v).toUpperCase()}`;
	assert.deepEqual(verifyBody(upper, Buffer.from(BODY)), wanted);
});

const highS = (s: string) => (SECP256K1_N - BigInt(`0x${s}`)).toString(16).padStart(64, "0");
const { r, s, v } = parts();
const otherV = v === "1b" ? "1c" : "1b";
const good = `${ADDRESS}:0x${r}${s}${v}`;
const zero = "0".repeat(64);
const order = SECP256K1_N.toString(16);

const REFUSED: readonly [string, string, "malformed" | "invalid" | "mismatch"][] = [
	["empty", "", "malformed"],
	["address alone", ADDRESS, "malformed"],
	["signature alone", good.slice(43), "malformed"],
	["another separator", good.replace(":", ";"), "malformed"],
	["space behind", `${good} `, "malformed"],
	["line end behind", `${good}\n`, "malformed"],
	["two of them", `${good},${good}`, "malformed"],
	["signature without 0x", good.replace(":0x", ":"), "malformed"],
	["signature a digit short", good.slice(0, -1), "malformed"],
	["signature a byte long", `${good}00`, "malformed"],
	["compact signature", good.slice(0, -2), "malformed"],
	["address a digit short", good.slice(0, 2) + good.slice(3), "malformed"],
	["no hex", `${good.slice(0, -1)}g`, "malformed"],
	["v 2", `${good.slice(0, -2)}02`, "invalid"],
	["v 26", `${good.slice(0, -2)}1a`, "invalid"],
	["v 29", `${good.slice(0, -2)}1d`, "invalid"],
	["v 255", `${good.slice(0, -2)}ff`, "invalid"],
	["s in the upper half", `${ADDRESS}:0x${r}${highS(s)}${otherV}`, "invalid"],
	["r is 0", `${ADDRESS}:0x${zero}${s}${v}`, "invalid"],
	["s is 0", `${ADDRESS}:0x${r}${zero}${v}`, "invalid"],
	["r is n", `${ADDRESS}:0x${order}${s}${v}`, "invalid"],
	["r is on no point", `${ADDRESS}:0x${"5".padStart(64, "0")}${s}${v}`, "invalid"],
	["the other v", `${ADDRESS}:0x${r}${s}${otherV}`, "mismatch"],
	["another's address", `0x${"11".repeat(20)}:0x${r}${s}${v}`, "mismatch"],
];

test("refuses each wrong header", () => {
	for (const [name, header, reason] of REFUSED) {
		assert.deepEqual(verifyBody(header, BODY), { ok: false, reason }, name);
	}
	assert.deepEqual(verifyBody(good, `${BODY} `), { ok: false, reason: "mismatch" });
	assert.deepEqual(verifyBody(good, BODY), { ok: true, address: ADDRESS });
});

test("makes keys that sign", () => {
	const keys = new Set(Array.from({ length: 20 }, createKey));
	assert.equal(keys.size, 20);
	for (const key of keys) {
		assert.match(key, /^0x[0-9a-f]{64}$/);
		assert.equal(addressOfKey(key), new Wallet(key).address.toLowerCase());
	}
});

test("what is no key is refused, and not repeated in the error", () => {
	const tooHigh = `0x${order}`;
	const notKeys = [
		"",
		"0x",
		zero,
		`0x${zero}`,
		tooHigh,
		KEY.slice(0, -2),
		`${KEY}00`,
		`${KEY.slice(0, -1)}g`,
	];
	for (const key of notKeys) {
		for (const use of [() => addressOfKey(key), () => createBodySigner(key)]) {
			assert.throws(
				use,
				(thrown: Error) => thrown instanceof TypeError && (key.length < 4 || !thrown.message.includes(key)),
			);
		}
	}
});

const hexOf = (bytes: Buffer): `0x${string}` => `0x${bytes.toString("hex")}`;

test("finds the authority of an authorization that viem signed", async () => {
	for (const [chainId, nonce] of [
		[0, 0],
		[1, 7],
		[31_337, 2 ** 40],
	] as const) {
		const account = privateKeyToAccount(hexOf(randomKey(random)));
		const signed = await account.signAuthorization({ chainId, nonce, address: hexOf(random.bytes(20)) });
		const authorization = {
			...{ chainId: BigInt(chainId), nonce: BigInt(nonce), address: signed.address.toLowerCase() },
			...{ yParity: signed.yParity as number, r: BigInt(signed.r), s: BigInt(signed.s) },
		};
		assert.equal(senderOfAuthorization(authorization), account.address.toLowerCase());
		for (const spoiled of [
			{ yParity: 2 },
			{ yParity: 27 },
			{ r: 0n },
			{ s: SECP256K1_N - authorization.s },
			{ r: 5n },
		]) {
			assert.equal(senderOfAuthorization({ ...authorization, ...spoiled }), null);
		}
		assert.notEqual(senderOfAuthorization({ ...authorization, nonce: 1n }), account.address.toLowerCase());
	}
});

// Recovery ids 2 and 3 mean that r is the x less n: real for a few tiny r, and no parity.
test("takes no recovery id for a parity", () => {
	const bytes = (value: bigint) => Buffer.from(value.toString(16).padStart(64, "0"), "hex");
	const tuple = { chainId: 1n, address: `0x${"11".repeat(20)}`, nonce: 0n, s: 1n };
	const recoverable = Array.from({ length: 20 }, (_, index) => BigInt(index + 1)).filter((r) => {
		try {
			secp256k1.ecdsaRecover(Buffer.concat([bytes(r), bytes(1n)]), 2, Buffer.alloc(32, 1));
			return true;
		} catch {
			return false;
		}
	});
	assert.notEqual(recoverable.length, 0);
	for (const r of recoverable) assert.equal(senderOfAuthorization({ ...tuple, yParity: 2, r }), null);
});
