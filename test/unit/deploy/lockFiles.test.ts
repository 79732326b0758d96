// Each package of the lock files has its hash, so that npm refuses one that was changed on its way.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../../support/documents.ts";

for (const file of ["package-lock.json", "test/metamask/package-lock.json"]) {
	test(`each package of ${file} has its integrity`, () => {
		const { packages } = JSON.parse(readFileSync(join(ROOT, file), "utf8")) as {
			packages: Record<string, { integrity?: string }>;
		};
		// "" is the project itself.
		const all = Object.entries(packages).filter(([path]) => path !== "");
		const bare = all.filter(([, { integrity = "" }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity));
		assert.ok(all.length > 100);
		assert.deepEqual(
			bare.map(([path]) => path),
			[],
		);
	});
}
