// The hash that the transaction's page makes of what its wallet signs is Ethereum's own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import { SeededRandom } from "../../../support/seededRandom.ts";

const PAGE = new URL("../../../../shared/pages/keccak.js", import.meta.url);

test("it is the native package's for every length over three blocks", async () => {
	const own = (await import(PAGE.href)) as { keccak256(bytes: Uint8Array): string };
	const random = new SeededRandom(1);
	for (let length = 0; length <= 3 * 136 + 1; length += 1) {
		const bytes = random.bytes(length);
		assert.equal(own.keccak256(bytes), `0x${keccak256(bytes).toString("hex")}`, `${length} bytes`);
	}
});
