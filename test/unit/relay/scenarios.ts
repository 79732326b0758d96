// Runs a test of the stages on a fixture of its own, in which no fault of ours may be logged.

import assert from "node:assert/strict";
import { test } from "node:test";
import { StagesFixture } from "./stagesFixture.ts";

/** Tells a scenario; it fails too where a fault was logged. */
export function scenario(name: string, tell: (fixture: StagesFixture) => Promise<void>): void {
	test(name, async () => {
		const fixture = new StagesFixture();
		await tell(fixture);
		assert.deepEqual(fixture.faults, []);
	});
}

/** So many empty blocks come. */
export async function blocks(fixture: StagesFixture, count: number): Promise<void> {
	for (let i = 0; i < count; i += 1) await fixture.block();
}
