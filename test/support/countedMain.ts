// Runs the process whose entry, a path from the project's root, is the first argument, and counts
// what its main thread does: on SIGUSR2 it logs how often it has done each since it was asked last.
// Counts are the same on each machine, unlike times.

import { createHook } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import createKeccakHash from "keccak";
import secp256k1 from "secp256k1";
import { GroupCommit } from "../../shared/kv/groupCommit.ts";

const NAMES = [
	...["recoveries", "signatures", "hashes", "parsed", "serialized"],
	...["writes", "toNode", "toOthers", "timers"],
] as const;
type Counts = Record<(typeof NAMES)[number], number>;

const { ETH_RPC_URL: node } = process.env;
const none = () => Object.fromEntries(NAMES.map((name) => [name, 0])) as Counts;
let counts = none();

/** Counts the calls of a method of `owner` under `name`. */
function count<Owner>(owner: Owner, method: keyof Owner, name: keyof Counts): void {
	const original = owner[method] as (...args: unknown[]) => unknown;
	owner[method] = function counted(this: unknown, ...args: unknown[]) {
		counts[name] += 1;
		return original.apply(this, args);
	} as Owner[keyof Owner];
}

count(secp256k1, "ecdsaRecover", "recoveries");
count(secp256k1, "ecdsaSign", "signatures");
count(Object.getPrototypeOf(createKeccakHash("keccak256")), "digest", "hashes");
count(JSON, "parse", "parsed");
count(JSON, "stringify", "serialized");
count(GroupCommit.prototype, "write", "writes");
// https://nodejs.org/docs/latest-v20.x/api/diagnostics_channel.html; undici's are in its documents.
subscribe("undici:request:create", (message) => {
	const { origin } = (message as { request: { origin: string | URL } }).request;
	counts[node !== undefined && new URL(origin).origin === new URL(node).origin ? "toNode" : "toOthers"] += 1;
});
createHook({
	init(_id, type) {
		if (type === "Timeout") counts.timers += 1;
	},
}).enable();

const [entry = ""] = process.argv.splice(2, 1);
process.on("SIGUSR2", () => {
	const line = { msg: "counts", level: 30, ...counts };
	process.stdout.write(`${JSON.stringify(line)}\n`);
	counts = none();
});
// By its files, as it is read: put together with all that it imports, it would have a GroupCommit
// of its own.
await import(new URL(`../../${entry}?counted`, import.meta.url).href);
