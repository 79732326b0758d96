// `npm run test:long [-- --seed N]`: nothing or a seed comes in, the tests that take minutes are run, and what they say
// goes out; the exit code is 1 where one fails. `--path` and `--replay` have a failure again, as its report says.

import { parseArgs } from "node:util";
import { longControl } from "./long/control.ts";

/** Seeds are 31 bits. */
const SEEDS = 2 ** 31;

const { values } = parseArgs({
	options: {
		seed: { type: "string", default: String(Math.floor(Math.random() * SEEDS)) },
		sequences: { type: "string", default: "300" },
		steps: { type: "string", default: "30" },
		path: { type: "string" },
		replay: { type: "string" },
	},
});
const { path, replay } = values;
const fine = await longControl({
	seed: Number(values.seed),
	sequences: Number(values.sequences),
	steps: Number(values.steps),
	...(path === undefined ? {} : { path }),
	...(replay === undefined ? {} : { replay }),
	say: (line) => process.stdout.write(`${line}\n`),
});
process.exitCode = fine ? 0 : 1;
