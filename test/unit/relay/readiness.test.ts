// The checks of /readyz: each part that is not well is named, in words of ours, and no other.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Readings, readinessChecks } from "../../../relay/readiness.ts";

const WELL: Readings = {
	isNodeWell: () => true,
	headAgeMs: () => 60_000,
	maxHeadAgeMs: 60_000,
	isStoreWell: async () => true,
	isStoreHeld: () => true,
	isDelivering: () => true,
};

/** The names and reasons of the checks that fail. */
async function failing(readings: Partial<Readings>): Promise<string[]> {
	const failed: string[] = [];
	for (const { name, check } of readinessChecks({ ...WELL, ...readings })) {
		const result = await check();
		if (!result.ok) failed.push(`${name}: ${result.reason}`);
	}
	return failed;
}

test("what is well is not named, up to the oldest head that is allowed", async () => {
	assert.deepEqual(await failing({}), []);
	assert.equal(readinessChecks(WELL).length, 4);
});

test("what is not well is named alone", async () => {
	assert.deepEqual(await failing({ isNodeWell: () => false }), ["node: the node does not answer"]);
	assert.deepEqual(await failing({ headAgeMs: () => 60_001 }), ["head: the head is too old"]);
	assert.deepEqual(await failing({ isStoreWell: async () => false }), ["store: the last write failed"]);
	const lost = { isStoreHeld: () => false, isStoreWell: () => Promise.reject(new Error("not to be asked")) };
	assert.deepEqual(await failing(lost), ["store: the store does not answer, or is another relay's"]);
	assert.deepEqual(await failing({ isDelivering: () => false }), ["delivery: no builder answers"]);
});

test("each is read when it is asked", async () => {
	let well = true;
	const checks = readinessChecks({ ...WELL, isStoreWell: async () => well });
	const store = checks.find(({ name }) => name === "store");
	assert.deepEqual(await store?.check(), { ok: true });
	well = false;
	assert.deepEqual(await store?.check(), { ok: false, reason: "the last write failed" });
});
