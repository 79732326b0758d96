// `npm run test:long [-- --seed N]`: runs the tests that take minutes, and exits with 1 where one
// fails. `--path` and `--replay` repeat a failure, as its report says; `--only NAME` runs one of
// them, `--minutes N` shortens boost, attacks and scale, `--write` puts the tables of boost and
// slots into docs/.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readCommand } from "../shared/commandLine.ts";
import { type Figures, figuresTable, withFigures } from "./faults/figures.ts";
import { longAlerts } from "./long/alerts.ts";
import { longAttacks } from "./long/attacks.ts";
import { longBoost } from "./long/boost.ts";
import { longControl } from "./long/control.ts";
import { longFiles } from "./long/files.ts";
import { longRolling } from "./long/rolling.ts";
import { longScale } from "./long/scale.ts";
import { longSlots } from "./long/slots.ts";
import { longSuspensions } from "./long/suspensions.ts";
import { TEST_DATABASE } from "./support/engine.ts";
import { startPostgres } from "./support/postgresServer.ts";

/** Seeds are 31 bits. */
const SEEDS = 2 ** 31;

const COMMAND = {
	name: "npm run test:long",
	about: [
		"runs the tests that take minutes; CONTRIBUTING.md says what each part does, and how long it takes",
	],
	options: {
		seed: { type: "string", default: String(Math.floor(Math.random() * SEEDS)) },
		sequences: { type: "string", default: "300" },
		steps: { type: "string", default: "30" },
		minutes: { type: "string", default: "10" },
		suspensions: { type: "string", default: "1000" },
		only: { type: "string" },
		write: { type: "boolean", default: false },
		path: { type: "string" },
		replay: { type: "string" },
	},
	optionsHelp: {
		seed: "of control, boost, scale and suspensions, to repeat a run",
		sequences: "random sequences of control",
		steps: "steps of each sequence",
		minutes: "of boost, attacks and scale",
		suspensions: "of suspensions",
		only: "one part: control, boost, attacks, slots, scale, suspensions, rolling, files or alerts",
		write: "puts the tables of boost and slots into docs/benchmarks.md and docs/searchers.md",
		path: "with --seed and --replay: a failure of control, as its report says",
		replay: "see --path",
	},
} as const;
const asked = readCommand(COMMAND, process.argv.slice(2));
if (asked === null) process.exit();
const { values } = asked;
const { path, replay, only } = values;
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const control = () =>
	longControl({
		seed: Number(values.seed),
		sequences: Number(values.sequences),
		steps: Number(values.steps),
		...(path === undefined ? {} : { path }),
		...(replay === undefined ? {} : { replay }),
		say,
	});
/** Puts a table into a document, if that is asked for. */
const writeTo =
	(document: string, name: string) =>
	(table: string): void => {
		const file = join(dirname(dirname(fileURLToPath(import.meta.url))), document);
		if (values.write) writeFileSync(file, withFigures(readFileSync(file, "utf8"), name, table));
	};
const boost = () => {
	const write = writeTo("docs/benchmarks.md", "faults");
	const to = { say, write: (rows: readonly Figures[]) => write(figuresTable(rows)) };
	return longBoost({ seed: Number(values.seed), minutes: Number(values.minutes), ...to });
};
const slots = () => longSlots({ say, write: writeTo("docs/searchers.md", "slots") });
const attacks = () => longAttacks({ minutes: Number(values.minutes), say });
const scale = () => longScale({ seed: Number(values.seed), minutes: Number(values.minutes), say });
const suspensions = () =>
	longSuspensions({ seed: Number(values.seed), suspensions: Number(values.suspensions), say });
const rolling = () => longRolling(say);
const files = () => longFiles(say);
const alerts = () => longAlerts(say);
const parts = Object.entries({
	control,
	boost,
	attacks,
	slots,
	scale,
	suspensions,
	rolling,
	files,
	alerts,
}).filter(([name]) => only === undefined || name === only);
if (parts.length === 0)
	throw new Error("--only is control, boost, attacks, slots, scale, suspensions, rolling, files or alerts");
// One for all parts, so that it can be stopped: it would keep this process alive.
const postgres = await startPostgres({ connections: 200 });
process.env[TEST_DATABASE] = await postgres.newDatabase();
let fine = true;
try {
	for (const [, run] of parts) fine = (await run()) && fine;
} finally {
	await postgres.stop();
}
process.exitCode = fine ? 0 : 1;
