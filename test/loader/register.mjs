// Loads TypeScript for the tests, `npm start` and `npm run demo`, used with `node --import`. The other commands use tsx, which
// takes 0.8 s of CPU time more in each process. A test run starts hundreds of processes, `npm start` four.

import { register } from "node:module";

register("./hooks.mjs", import.meta.url);
process.setSourceMapsEnabled(true);
// Node 24's test runner passes every option with its default value to its processes. This option enables reports on SIGUSR2 in
// processes that tests start with the same flags, and a report looks up the names of all peers, 0.1 s each.
process.execArgv = process.execArgv.filter((flag) => !flag.startsWith("--report-signal="));
