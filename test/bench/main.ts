// `npm run bench [-- --write]`: prints the benchmarks' figures, a line each. They are ratios of
// things measured in one run: absolute times say more of the machine than of our own code. With
// --write they are put into docs/benchmarks.json, and how costs grow and compare into
// docs/benchmarks.svg.

import { writeFileSync } from "node:fs";
import { readCommand } from "../../shared/commandLine.ts";
import { benchBoost } from "./boost.ts";
import { benchGeth } from "./geth.ts";
import { benchHeadGrowth } from "./headGrowth.ts";
import { benchHeads } from "./heads.ts";
import type { Figure } from "./load.ts";
import { plotOf } from "./plot.ts";
import { benchScale } from "./scale.ts";
import { benchStart } from "./start.ts";
import { benchEngines, benchSubmissions } from "./submissions.ts";

const DOCUMENTS = new URL("../../docs/", import.meta.url);

const BENCHES = [
	...[benchSubmissions, benchGeth, benchEngines, benchHeads, benchHeadGrowth],
	...[benchStart, benchBoost, benchScale],
];

const COMMAND = {
	name: "npm run bench",
	about: [
		"prints how fast relay and boost are, as ratios of what was measured in the same run; some minutes",
	],
	options: { write: { type: "boolean" } },
	optionsHelp: {
		write: "puts the figures into docs/benchmarks.json, and how they grow into docs/benchmarks.svg",
	},
} as const;

const asked = readCommand(COMMAND, process.argv.slice(2));
const figures: Figure[] = [];
for (const bench of asked === null ? [] : BENCHES) {
	for (const figure of await bench()) {
		figures.push(figure);
		process.stdout.write(`${figure.name.padEnd(64)} ${figure.value.padStart(10)}\n`);
	}
}
if (asked?.values.write === true) {
	let group = "";
	const rows = figures.map(({ name, value }) => {
		const isPart = name.startsWith(" ");
		if (!isPart) group = name;
		return {
			name: isPart ? `${group}: ${name.trim()}` : name,
			value: Number.parseFloat(value),
			unit: unitOf(value),
		};
	});
	writeFileSync(new URL("benchmarks.json", DOCUMENTS), `${JSON.stringify(rows, null, "\t")}\n`);
	const points = figures.flatMap(({ value, growth }) =>
		growth === undefined ? [] : [{ ...growth, value: Number.parseFloat(value), unit: unitOf(value) }],
	);
	const bars = figures.flatMap(({ value, bar }) =>
		bar === undefined ? [] : [{ ...bar, value: Number.parseFloat(value), unit: unitOf(value) }],
	);
	writeFileSync(new URL("benchmarks.svg", DOCUMENTS), plotOf(points, bars));
}

function unitOf(value: string): string {
	return value.split(" ").slice(1).join(" ");
}
