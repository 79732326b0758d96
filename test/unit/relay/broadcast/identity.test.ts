// Identifiers and signatures: what they are made of, and that equal bodies are signed once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { computeAddress, keccak256, toUtf8Bytes, verifyMessage } from "ethers";
import { createIdentity } from "../../../../relay/broadcast/identity.ts";
import { testAccount } from "../../../support/txFactory.ts";
import { UUID_V4 } from "./fanoutFixture.ts";

const KEY = testAccount(42).keyHex;
const CALL = { method: "eth_cancelBundle", params: [{ replacementUuid: "u" }] };

test("an identifier is the keccak256 of name and key, with the version and variant of a UUIDv4", () => {
	const name = `target 0x${"ab".repeat(32)}`;
	const digest = keccak256(toUtf8Bytes(`${name} ${KEY}`)).slice(2, 34);
	const uuid = createIdentity(KEY).uuid(name);
	assert.match(uuid, UUID_V4);
	const bare = uuid.replaceAll("-", "");
	const marked = [...bare].map((digit, i) => (i === 12 || i === 16 ? digest[i] : digit)).join("");
	assert.equal(marked, digest);
});

test("another name or another key makes another identifier; the same ones the same", () => {
	const [one, two] = [createIdentity(KEY), createIdentity(testAccount(43).keyHex)];
	const uuids = [one.uuid("a"), one.uuid("b"), two.uuid("a")];
	for (const uuid of uuids) assert.match(uuid, UUID_V4);
	assert.equal(new Set(uuids).size, 3);
	assert.equal(createIdentity(KEY).uuid("a"), uuids[0]);
});

for (const builders of [1, 3]) {
	test(`a call is signed over the bytes of its body, for ${builders} builders`, () => {
		const sign = createIdentity(KEY).signing(builders);
		const [first, again] = [sign(CALL), sign(CALL)];
		const other = sign({ ...CALL, params: [] });
		assert.deepEqual(JSON.parse(first.body.toString()), { jsonrpc: "2.0", id: 1, ...CALL });
		for (const { body, signature } of [first, again, other]) {
			const [address, signed] = signature.split(":");
			assert.equal(address, computeAddress(KEY).toLowerCase());
			assert.equal(verifyMessage(keccak256(body), signed ?? ""), computeAddress(KEY));
		}
		assert.deepEqual(again, first);
		assert.notEqual(other.signature, first.signature);
	});
}
