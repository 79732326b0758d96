// Tests that a process whose tests are over ends, and says what kept it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";

const MODULE = new URL("../../support/endInTime.ts", import.meta.url).href;

/** Runs `left` in a process that is given 50 ms to end. */
function run(left: string): { status: number | null; stderr: string } {
	const code = `import { endInTime } from ${JSON.stringify(MODULE)}; ${left}; endInTime(50);`;
	const args = [...process.execArgv, "--input-type=module", "--eval", code];
	return spawnSync(process.execPath, args, { encoding: "utf8", timeout: 30_000 });
}

describe("a process whose tests are over", () => {
	it("ends as failed where something keeps it, which it names", () => {
		const { status, stderr } = run(`(await import("node:net")).createServer().listen(0)`);
		assert.equal(status, 1);
		assert.match(stderr, /does not end: it has open .*TCPServerWrap/);
	});

	it("is left alone where nothing does", () => {
		assert.equal(run("").status, 0);
	});
});
