// `npm run docs`: writes the generated tables into the README, as the code has them.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withTables } from "./readmeTables.ts";

const file = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "README.md");
writeFileSync(file, withTables(readFileSync(file, "utf8")));
