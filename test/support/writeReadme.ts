// `npm run docs`: puts the generated tables into the README. What comes in is the README, what goes out is the same
// file with every table as the code has it.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withTables } from "./readmeTables.ts";

const file = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "README.md");
writeFileSync(file, withTables(readFileSync(file, "utf8")));
