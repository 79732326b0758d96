// Tests the names by which bundles are known: no two collide.

import assert from "node:assert/strict";
import { test } from "node:test";
import { backrunName } from "../../../../relay/auction/bid.ts";
import { nameOf } from "../../../../relay/auction/plainBundle.ts";

test("a bid is named by client and target, a plain bundle by its uuid or its content, and no two names collide", () => {
	const names = [
		...[backrunName("0xt", "me"), backrunName("0xu", "me"), backrunName("0xt", "you")],
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
