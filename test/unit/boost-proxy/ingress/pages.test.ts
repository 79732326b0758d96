// Boost's home page describes its paths as the relay's describes the same ones.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDPOINTS } from "../../../../boost-proxy/ingress/pages.ts";
import { ENDPOINTS_TO_CHOOSE } from "../../../../relay/ingress/waiting.ts";
import { choices, visibilityRows } from "../../../../shared/pages/endpoints.ts";

test("boost's paths are shown as the relay shows them", () => {
	const same = ENDPOINTS_TO_CHOOSE.filter(({ path }) => ENDPOINTS.some((one) => one.path === path));
	assert.equal(choices(ENDPOINTS), choices(same));
	assert.equal(visibilityRows(ENDPOINTS), visibilityRows(same));
});
