// The product's version, as package.json has it.

import { createRequire } from "node:module";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };

export const VERSION: string = version;
