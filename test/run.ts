// `npm test [-- FILE or FOLDER ...]`: runs the test files with node:test. Unless some are named,
// these are all `*.test.ts` but those whose packages must be installed first (`npm run
// test:metamask`, `npm run test:python`). Longer tests end in `.nightly.ts`: see nightly.ts. With
// RELAY_AS=edge the relay of a whole system is an edge, and its core another process; with
// TEST_STORES=postgres stores are in PostgreSQL (see support/engine.ts).

import { RELAY_AS } from "./support/engine.ts";
import { filesAt, filesEnding, pooled, type Round, runRounds } from "./support/runner.ts";

/** Commands of their own install what these need. */
const OWN_COMMAND = /^test\/(metamask|python)\//;
/** They take the longest, so they come first. */
const FIRST = [
	"test/integration/deploy/severalBoosts.test.ts",
	"test/contract/postgres.test.ts",
	"test/integration/privacy/relayOutputs.test.ts",
	"test/integration/deploy/crash.test.ts",
	"test/integration/deploy/procfile.test.ts",
	"test/integration/deploy/start.test.ts",
	"test/integration/deploy/shutdown.test.ts",
	"test/scale/takeover.test.ts",
];
/**
 * Skips its cells where it gets no core, so it runs last, beside one process of unit tests that
 * takes as long.
 */
const TIMED = "test/faults/matrix.test.ts";
const BESIDE_TIMED = /^test\/unit\/shared\//;
/**
 * Run a second time, before an edge: what an edge forwards, follows and waits for. All others do so
 * in the nightly run.
 */
const AS_EDGE = [
	"test/integration/chain/pendingReads.test.ts",
	"test/integration/auction/feed.test.ts",
	"test/integration/auction/liveReads.test.ts",
	"test/integration/auction/repeatedRequests.test.ts",
];
/** Tests in a browser, whose package and start cost a process two seconds. */
const PAGES = "test/integration/pages/";
/** Processes at a time. Eight keep two cores busy without a gap, and take as long. */
const CONCURRENCY = { first: 6, pages: 2, last: 2 };

const asked = process.argv.slice(2);
try {
	const files =
		asked.length === 0
			? filesEnding(".test.ts").filter((file) => !OWN_COMMAND.test(file))
			: asked.flatMap(filesAt);
	process.exitCode = (await runRounds(roundsOf(files))) ? 0 : 1;
} catch (thrown) {
	process.stderr.write(`npm test: ${thrown instanceof Error ? thrown.message : thrown}\n`);
	process.exitCode = 2;
}

function roundsOf(files: readonly string[]): readonly Round[] {
	const isPage = (file: string) => file.startsWith(PAGES);
	const isLast = (file: string) => file === TIMED || BESIDE_TIMED.test(file);
	const edges = asked.length > 0 ? [] : AS_EDGE;
	const longest = FIRST.filter((file) => files.includes(file));
	const others = files.filter((file) => !isLast(file) && !isPage(file) && !FIRST.includes(file));
	const first = [
		...pooled(edges, 1).map((one) => ({ ...one, env: { [RELAY_AS]: "edge" } })),
		...pooled(files.filter(isPage), CONCURRENCY.pages),
		...pooled([...longest, ...others], CONCURRENCY.first),
	];
	const last = pooled(files.filter(isLast), CONCURRENCY.last);
	return [
		{ processes: first, concurrency: CONCURRENCY.first },
		{ processes: last, concurrency: CONCURRENCY.last },
	].filter(({ processes }) => processes.length > 0);
}
