// Each file of a run is begun by one process, and a folder that cannot be written skips none in
// silence.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { begins } from "../../support/begin.ts";

test("begins each name once, and throws where it cannot tell", (t) => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	t.after(() => rmSync(folder, { recursive: true }));
	const names = ["test/a.test.ts", "test/a.test.ts as an edge", "test/a.test.ts"];
	assert.deepEqual(
		names.map((name) => begins(folder, name)),
		[true, true, false],
	);
	assert.throws(() => begins(join(folder, "missing"), "test/a.test.ts"), { code: "ENOENT" });
});
