// Tests the names by which bundles are known: no two collide.

import assert from "node:assert/strict";
import { test } from "node:test";
import { backrunName } from "../../../../relay/auction/bid.ts";
import { nameOf } from "../../../../relay/auction/plainBundle.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";

const bidName = (target: string, from: string) =>
	backrunName({ target, backrun: { from } as DecodedTransaction });

test("a bid is named by its sender and target, a plain bundle by its uuid or its content, and no two names collide", () => {
	const names = [
		...[bidName("0xt", "me"), bidName("0xu", "me"), bidName("0xt", "you")],
		nameOf("me", "u", ["0xb", 101, 101]),
		nameOf("you", "u", ["0xb", 101, 101]),
		nameOf("me", "0xb", []),
		nameOf("me", null, ["0xb", 101, 101]),
		nameOf("me", null, ["0xb", 102, 102]),
		nameOf("me", '["0xb",101,101]', []),
		nameOf('me","u', "u", []),
	];
	assert.equal(new Set(names).size, names.length, "names collide");
	assert.equal(nameOf("me", "u", ["0xb"]), nameOf("me", "u", ["0xc"]));
});
