// The command's process: arguments and environment come in, lines and an exit code go out. What it does is in command.ts.

import { systemClock } from "../../clock.ts";
import { runStoreCommand } from "./command.ts";

// Whoever reads it may have read enough: `--help | head`.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
// The clock's timers do not keep a process up, and between two connections nothing else does: an open port does.
const open = new MessageChannel().port1;
open.on("message", () => {});

const code = await runStoreCommand({
	args: process.argv.slice(2),
	env: process.env,
	clock: systemClock,
	say: (line) => process.stdout.write(`${line}\n`),
	complain: (line) => process.stderr.write(`store: ${line}\n`),
});
process.exit(code);
