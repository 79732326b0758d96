// The behaviour of whole systems whose relay is an edge, and its core another process: the same test files as those of one relay.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { RELAY_AS } from "../support/engine.ts";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const FOLDERS = ["submit", "auction", "cancel", "chain", "pages", "transport", "boost"];

/** False if one fails. They print their own report. */
export async function longEdges(): Promise<boolean> {
	const files = FOLDERS.map((name) => `test/integration/${name}`);
	const args = ["--import", "./test/loader/register.mjs", "test/run.ts", ...files];
	const env = { ...process.env, [RELAY_AS]: "edge" };
	const [code] = await once(spawn(process.execPath, args, { cwd: ROOT, env, stdio: "inherit" }), "exit");
	return code === 0;
}
