// `npm run test:nightly`: everything that takes longer than `npm test` may, within an hour: the
// integration tests before an edge, and at length on PostgreSQL; the long forms of others (see
// support/length.ts); and the files that end in `.nightly.ts`, which CONTRIBUTING.md lists.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { RELAY_AS, STORES } from "./support/engine.ts";
import { LENGTH } from "./support/length.ts";
import { alone, filesEnding, pooled, ROOT, runRounds } from "./support/runner.ts";

const INTEGRATION = /^test\/integration\//;
/** Files of single processes and of hosts' settings: an edge changes nothing in them. */
const DEPLOYMENT = /^test\/integration\/(deploy|scale)\//;
/** Not before an edge, and why. */
const NO_EDGE: Readonly<Record<string, string>> = {
	"test/integration/submit/unusableBuilders.test.ts": "its names are resolved in the test's process",
	"test/integration/auction/publishedRandomness.test.ts": "it expects one reader of the consensus node",
};
/** Processes at a time. */
const CONCURRENCY = 4;
/** A nightly file may take as long, in ms: `long.nightly.ts` takes more than 20 minutes. */
const FILE_MS = 30 * 60_000;
/** Its cells need the machine to themselves, too. */
const MATRIX = "test/faults/matrix.test.ts";

const integration = filesEnding(".test.ts").filter((file) => INTEGRATION.test(file));
const edges = integration.filter((file) => !DEPLOYMENT.test(file) && !(file in NO_EDGE));
const longForms = filesEnding(".test.ts").filter(
	(file) =>
		!INTEGRATION.test(file) && file !== MATRIX && /\bsized\(/.test(readFileSync(join(ROOT, file), "utf8")),
);
const isGreen = await runRounds([
	{
		processes: [
			...pooled(edges, CONCURRENCY).map((one) => ({ ...one, env: { [RELAY_AS]: "edge" } })),
			...pooled(integration, CONCURRENCY).map((one) => ({
				...one,
				env: { [STORES]: "postgres", [LENGTH]: "long" },
			})),
			...pooled(longForms, CONCURRENCY).map((one) => ({ ...one, env: { [LENGTH]: "long" } })),
		],
		concurrency: CONCURRENCY,
	},
	// One at a time: these measure, or need the whole machine.
	{
		processes: [{ files: [MATRIX], env: { [LENGTH]: "long" } }, ...alone(filesEnding(".nightly.ts"))],
		concurrency: 1,
		fileMs: FILE_MS,
	},
]);
process.exitCode = isGreen ? 0 : 1;
