// Every fault once, side by side, under steady traffic of real transactions on both paths: nothing that was acknowledged
// is lost, nothing is public, and clients see no error but verdicts. What was measured is printed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { runCell } from "./cell.ts";
import { FAULT_CASES } from "./faultCases.ts";
import { figuresLine } from "./figures.ts";
import { startWorld, type World } from "./world.ts";

/** Cells at a time. */
const CELLS = 6;
const ACCOUNTS = 120;
const OPTIONS = {
	...{ rate: 12, paths: ["/fast", "/noreverts"], accounts: ACCOUNTS },
	...{ answers: 5, relapses: true, compares: false },
};

let world: World;
before(async () => {
	world = await startWorld({ blockMs: 400, builder: "plain", accounts: FAULT_CASES.length * ACCOUNTS });
});
after(() => world.stop());

test("faults", { concurrency: Number(process.env.CELLS ?? CELLS) }, async (t) => {
	await Promise.all(
		FAULT_CASES.filter(({ name }) =>
			(process.env.ONLY ?? "").split(",").some((one) => name.includes(one)),
		).map((fault) =>
			t.test(fault.name, async (cell) => {
				const { figures, violations } = await runCell(world, fault, OPTIONS);
				cell.diagnostic(figuresLine(figures));
				assert.deepEqual(violations, []);
			}),
		),
	);
});
