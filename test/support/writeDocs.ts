// `npm run docs`: writes the generated tables into the documents, and the OpenRPC document, as the code has them.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openRpcText, withTables } from "./docTables.ts";
import { documents, OPENRPC, ROOT } from "./documents.ts";

for (const [path, text] of documents()) {
	const written = withTables(text);
	if (written !== text) writeFileSync(join(ROOT, path), written);
}
writeFileSync(join(ROOT, OPENRPC), openRpcText());
