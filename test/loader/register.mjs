// Loads TypeScript for the tests, `npm start` and `npm run demo`, as tsx does for the other commands, at a third of its cost:
// a test run starts hundreds of processes, `npm start` four, and tsx takes 0.8 s of CPU more in each. Used by `node --import`.

import { register } from "node:module";

register("./hooks.mjs", import.meta.url);
process.setSourceMapsEnabled(true);
// Node 24's test runner gives its processes every option with its default value. This one turns reports on in the processes that
// tests start with the same flags: a report on SIGUSR2 looks up the names of all peers, for 0.1 s each.
process.execArgv = process.execArgv.filter((flag) => !flag.startsWith("--report-signal="));
