// Loads TypeScript for the tests, `npm start` and `npm run demo`, as tsx does for the other commands, at a third of its cost:
// a test run starts hundreds of processes, `npm start` four, and tsx takes 0.8 s of CPU more in each. Used by `node --import`.

import { register } from "node:module";

register("./hooks.mjs", import.meta.url);
process.setSourceMapsEnabled(true);
