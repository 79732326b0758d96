// `npm run docs`: writes the generated tables into the documents, and the OpenRPC document, as the
// code has them.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { outOfDate } from "./docTables.ts";
import { ROOT } from "./documents.ts";

for (const [path, text] of outOfDate()) writeFileSync(join(ROOT, path), text);
