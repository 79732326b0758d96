// The same files run on Node 24 without tsx: NODE24 names such a Node, or it is the one of the
// tests.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

/** Whether a Node runs TypeScript by itself; the versions before 22.18 do not. */
const { typescript } = process.features as { readonly typescript?: unknown };
const STRIPS = typescript !== undefined && typescript !== false;
const node = process.env.NODE24 ?? (STRIPS ? process.execPath : null);
const skip = node === null ? "this Node runs no TypeScript by itself; NODE24 names one that does" : false;

for (const [entry, env] of [
	["relay/main.ts", { ETH_RPC_URL: "http://127.0.0.1:1", BUILDERS: "mainnet" }],
	["boost-proxy/main.ts", { RELAY_URL: "http://127.0.0.1:1", FALLBACK_URL: "none" }],
] as const) {
	test(`${entry} prints its settings on Node 24 without tsx`, { skip }, async () => {
		const args = [entry, "--print-config"];
		const { stdout } = await promisify(execFile)(node ?? "", args, {
			env: { ...env, NODE_NO_WARNINGS: "1" },
		});
		for (const [name, value] of Object.entries(env)) assert.ok(stdout.includes(`${name}=${value}`), name);
	});
}
