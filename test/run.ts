// `npm test [-- FILE or FOLDER ...]`: runs the test files with node:test. Unless some are named, these are all but those whose
// packages must be installed first (`npm run test:metamask`, `npm run test:python`). A process takes a second to load what most
// tests need, so files share some; those that measure have their own. In which round a file is, and why, is said below.
// With RELAY_AS=edge the relays of whole systems are edges, each with a core in another process (see support/systems.ts).

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { run } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isEdge, RELAY_AS, TEST_DATABASE } from "./support/engine.ts";
import { startPostgres } from "./support/postgresServer.ts";
import { report } from "./support/report.ts";

/** What has a command of its own, which installs what it needs. */
const APART = /^test\/(metamask|python)\//;
/** Files that share a process, at most. */
const SHARED = { integration: 16, edge: 4, unit: 36 };
/** In processes of their own, these first, since they take the longest. */
const ALONE = [
	"test/integration/deploy/crash.test.ts",
	"test/integration/deploy/procfile.test.ts",
	"test/integration/auction/auctionCrowd.test.ts",
	"test/integration/deploy/start.test.ts",
	"test/integration/deploy/demo.test.ts",
	"test/integration/deploy/startSeveral.test.ts",
	"test/integration/deploy/shutdown.test.ts",
];
// The round of a file goes by what it judges. What happens, in which order, how often, how many bytes: the first round, where a
// busy machine changes nothing. Most files are there, and none is listed. Each round begins when the one before it has ended.

/**
 * How long one process takes, or what memory, while others do all they can to it: without the time that it waited for a processor,
 * or the shortest of some rounds, so that they may share the cores, the longest first.
 */
const MEASURED = [
	"test/attacks/trust.test.ts",
	"test/integration/transport/eventLoopRecoveries.test.ts",
	"test/attacks/bundles.test.ts",
	"test/integration/transport/eventLoop.test.ts",
	"test/attacks/logs.test.ts",
	"test/integration/transport/eventLoopBlobs.test.ts",
	"test/attacks/boost.test.ts",
	"test/attacks/requests.test.ts",
	"test/attacks/pages.test.ts",
	"test/attacks/pool.test.ts",
	"test/attacks/owners.test.ts",
	"test/attacks/connections.test.ts",
	"test/attacks/bids.test.ts",
];
/**
 * How long a whole system takes by the clock. One for each core, the longest first; a fault is tried again where the machine was
 * too busy for it.
 */
const TIMED = ["test/faults/matrix.test.ts", "test/integration/deploy/rolling.test.ts"];
/**
 * The same where both cores have enough to do: several relays with a lease between them, which a busy machine loses, and a node that
 * simulates all the time. One at a time.
 */
const WHOLE_MACHINE = [
	"test/attacks/authorizations.test.ts",
	"test/scale/chaos.test.ts",
	"test/scale/rollingRestart.test.ts",
	"test/scale/takeover.test.ts",
];
/**
 * Run a second time before an edge, the longest first: what an edge passes on, follows and waits for. The others do so in the long
 * tests.
 */
const EDGES = [
	"test/integration/submit/endpoints.test.ts",
	"test/integration/chain/pendingReads.test.ts",
	"test/integration/auction/auctionRules.test.ts",
	"test/integration/auction/feed.test.ts",
	"test/integration/auction/mevShareStream.test.ts",
	"test/integration/pages/pages.test.ts",
	"test/integration/auction/refunds.test.ts",
	"test/integration/cancel/cancel.test.ts",
	"test/integration/cancel/controlAbuse.test.ts",
	"test/integration/submit/sendSync.test.ts",
];
/** Never before an edge, and why. */
const NO_EDGE: Readonly<Record<string, string>> = {
	"test/integration/submit/unusableBuilders.test.ts": "resolver in the test",
	"test/integration/auction/publishedRandomness.test.ts": "one reader of the consensus node",
};
/**
 * Processes at a time, each of which starts more. Each waits for something more than half of the time: so many keep two
 * cores busy. The measured and the timed ones have a core each.
 */
const CONCURRENCY = { first: 5, measured: 2, timed: 2, wholeMachine: 1 };

/** What a test file may take, and a process of them, in ms: one that hangs fails by its name, and holds up no other. */
const FILE_MS = 5 * 60_000;
const PROCESS_MS = 10 * 60_000;
/** What a process may take to end when its tests are over, in ms. */
const END_MS = 20_000;

/**
 * As relay and boost are run: with more room for young objects a test's process spends a tenth less. Those that measure
 * have what node has by itself.
 */
const MORE_ROOM = "--max-semi-space-size=32";

/**
 * Those about stores whose relays are processes: once on each engine. In the others all that is opened in the test's own
 * process is on both at once (see support/storeEngines.ts).
 */
const EACH_ENGINE = /\/(cancelCrash|crashRefund|crashState)\.test\.ts$/;

/** Some files for one process, each a suite by its name; on PostgreSQL, too, where that is said. */
interface Suite {
	readonly file: string;
	readonly onPostgres: boolean;
	/** Run before an edge, whatever RELAY_AS says. */
	readonly asEdge?: boolean;
}

interface Round {
	readonly files: readonly string[];
	readonly concurrency: number;
	/** NODE_OPTIONS. */
	readonly options: string;
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const asked = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "leeward-run-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const files = asked.length === 0 ? all().filter((file) => !APART.test(file)) : asked.flatMap(below);
process.chdir(root);
// Packages are put together by the first process that needs one, and these are many at once: see loader/hooks.mjs.
await import("zod");
const postgres = await startPostgres({ connections: 300 });
process.env[TEST_DATABASE] = await postgres.newDatabase();
const { NODE_OPTIONS: own = "" } = process.env;
const rest = files.filter(
	(file) => ![...MEASURED, ...TIMED, ...WHOLE_MACHINE].includes(file) && !(isEdge && file in NO_EDGE),
);
const edges = asked.length === 0 && !isEdge ? EDGES : [];
const rounds: readonly Round[] = [
	{ files: processes(rest), concurrency: CONCURRENCY.first, options: `${own} ${MORE_ROOM}` },
	{ files: each("measured", MEASURED), concurrency: CONCURRENCY.measured, options: own },
	{ files: each("timed", TIMED), concurrency: CONCURRENCY.timed, options: own },
	{ files: each("whole", WHOLE_MACHINE), concurrency: CONCURRENCY.wholeMachine, options: own },
];
for (const { options, ...round } of rounds.filter((one) => one.files.length > 0)) {
	process.env.NODE_OPTIONS = options;
	const events = run({ ...round, timeout: PROCESS_MS });
	events.on("test:fail", () => {
		process.exitCode = 1;
	});
	for await (const text of report(events)) process.stdout.write(text);
}
await postgres.stop();

/** Every test file. */
function all(): readonly string[] {
	return readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
		.filter((name) => name.endsWith(".test.ts") && !name.includes("node_modules"))
		.map((name) => join("test", name))
		.sort();
}

/** The test files of a path, which is a file's or a folder's. */
function below(path: string): readonly string[] {
	const place = relative(root, resolve(path));
	const files = all().filter((file) => file === place || file.startsWith(`${place}/`));
	if (files.length > 0) return files;
	process.stderr.write(`npm test: no test file at ${path}: expected one of test/, or a folder of them\n`);
	process.exit(2);
}

/** Files to be run in a process each, for all of `files`. */
function processes(files: readonly string[]): readonly string[] {
	const of = (kind: string) => files.filter((file) => file.startsWith(join("test", kind)));
	const unit = of("unit");
	const engines = files.filter((file) => EACH_ENGINE.test(file));
	const suites = [
		...files.filter((file) => !unit.includes(file)).map((file) => ({ file, onPostgres: false })),
		...engines.map((file) => ({ file, onPostgres: true })),
	];
	const alone = suites
		.filter(({ file }) => ALONE.includes(file))
		.sort((a, b) => ALONE.indexOf(a.file) - ALONE.indexOf(b.file));
	const shared = suites.filter(({ file }) => !ALONE.includes(file));
	return [
		...alone.map((suite, i) => written(`alone${i}`, [suite])),
		...grouped(
			"edge",
			edges.map((file) => ({ file, onPostgres: false, asEdge: true })),
		),
		...grouped("integration", shared),
		// The shortest, so that no core is left with one of the others at the end.
		...grouped(
			"unit",
			unit.map((file) => ({ file, onPostgres: false })),
		),
	];
}

/** Each of `wanted` that is to be run, in a process of its own. */
function each(kind: string, wanted: readonly string[]): readonly string[] {
	return wanted
		.filter((file) => files.includes(file))
		.map((file, i) => written(`${kind}${i}`, [{ file, onPostgres: false }]));
}

/** Neighbours, which are alike, are spread. */
function grouped(kind: keyof typeof SHARED, suites: readonly Suite[]): readonly string[] {
	const count = Math.ceil(suites.length / SHARED[kind]);
	return Array.from({ length: count }, (_, group) =>
		written(
			`${kind}${group}`,
			suites.filter((_, i) => i % count === group),
		),
	);
}

/** A file that runs `suites` one after another; the same test file may be among them twice. */
function written(name: string, suites: readonly Suite[]): string {
	const path = join(folder, `${name}.test.mjs`);
	const engine = JSON.stringify(new URL("./support/engine.ts", import.meta.url).href);
	const ending = JSON.stringify(new URL("./support/endInTime.ts", import.meta.url).href);
	const limit = `{ timeout: ${FILE_MS} }`;
	const lines = suites.map(({ file, onPostgres }) => {
		const url = pathToFileURL(join(root, file)).href;
		const name = `"${file}" + (isEdge ? " as an edge" : "")`;
		return onPostgres
			? `describe("${file} on PostgreSQL", ${limit}, async () => { before(usePostgres); await import("${url}?postgres"); after(useLmdb); });`
			: `describe(${name}, ${limit}, async () => { await import("${url}"); });`;
	});
	const imports = [
		...(suites.some(({ asEdge }) => asEdge === true) ? [`process.env.${RELAY_AS} = "edge";`] : []),
		`import { after, before, describe } from "node:test";`,
		`import { endInTime } from ${ending};`,
		// Behind the line above, by which it goes.
		`const { isEdge, useLmdb, usePostgres } = await import(${engine});`,
	];
	const end = `after(() => endInTime(${END_MS}));`;
	writeFileSync(path, `${[...imports, ...lines, end].join("\n")}\n`);
	return path;
}
