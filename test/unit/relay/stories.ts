// Runs a test of the stages on a scene of its own, in which no fault of ours may be logged.

import assert from "node:assert/strict";
import { test } from "node:test";
import { StagesScene } from "./stagesScene.ts";

/** Tells a story; it fails too where a fault was logged. */
export function story(name: string, tell: (scene: StagesScene) => Promise<void>): void {
	test(name, async () => {
		const scene = new StagesScene();
		await tell(scene);
		assert.deepEqual(scene.faults, []);
	});
}

/** So many empty blocks come. */
export async function blocks(scene: StagesScene, count: number): Promise<void> {
	for (let i = 0; i < count; i += 1) await scene.block();
}
