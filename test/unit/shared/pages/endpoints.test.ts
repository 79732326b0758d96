// The home page's description of each submission path follows from its policy.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDPOINTS } from "../../../../relay/domain/endpoints.ts";
import { ENDPOINTS_TO_CHOOSE } from "../../../../relay/ingress/waiting.ts";
import { choices, visibilityRows } from "../../../../shared/pages/endpoints.ts";

test("each path has a row: which builders see it, what searchers see and when, and whether it may fail on chain", () => {
	const rows = visibilityRows(ENDPOINTS_TO_CHOOSE).split("\n");
	assert.deepEqual(
		rows.map((row) => row.replace(/<\/t[hd]>/g, "|").replace(/<[^>]+>/g, "")),
		[
			"/fast|everything|all but the signature, once its simulation emits an event: a swap does, a plain transfer does not|may be mined and cost gas|",
			"/noreverts|everything|all but the signature, once its simulation emits an event: a swap does, a plain transfer does not|is not mined|",
			"/fullprivacy|everything, but only chosen builders get it|nothing|is not mined|",
			"/maxbackruns|everything|all but the signature, at once|may be mined and cost gas|",
			"/nochecks|everything|nothing|may be mined and cost gas|",
		],
	);
});

test("the words of a path that searchers see nothing of promise no refund", () => {
	for (const { path, about, sharing } of ENDPOINTS_TO_CHOOSE) {
		assert.equal(/refund|bid/.test(about), sharing !== "never", path);
	}
});

test("the first path is chosen, and those with soft cancellations are marked", () => {
	const buttons = choices(ENDPOINTS_TO_CHOOSE).split("\n");
	const names = Object.entries(ENDPOINTS);
	assert.equal(buttons.length, names.length);
	for (const [i, [name, { softCancellations }]] of names.entries()) {
		assert.match(buttons[i] ?? "", new RegExp(`value="/${name}"`));
		assert.equal(buttons[i]?.includes(" checked"), i === 0, name);
		assert.equal(buttons[i]?.includes(" data-soft"), softCancellations, name);
	}
});
