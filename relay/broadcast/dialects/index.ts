// The dialects by the names that rows of BUILDERS use.

import type { BuilderRow } from "../../domain/builder.ts";
import { bundleDialect } from "./bundle.ts";
import type { Dialect } from "./dialect.ts";
import { mevShareDialect } from "./mevShare.ts";

export const DIALECTS: Readonly<Record<BuilderRow["dialect"], Dialect>> = {
	bundle: bundleDialect,
	"mev-share": mevShareDialect,
};
