// `npm run bench`: prints the benchmarks' figures, a line each. They are ratios of things measured in one run:
// absolute times say more of the machine than of our own code.

import { benchBoost } from "./boost.ts";
import { benchHeads } from "./heads.ts";
import { benchScale } from "./scale.ts";
import { benchEngines, benchSubmissions } from "./submissions.ts";

for (const { name, value } of [
	...(await benchSubmissions()),
	...(await benchEngines()),
	...(await benchHeads()),
	...(await benchBoost()),
	...(await benchScale()),
]) {
	process.stdout.write(`${name.padEnd(64)} ${value.padStart(10)}\n`);
}
