// The anvil of the dev network: the binary of its npm package itself.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type NodeProcess, nodeFolder, startNode } from "./nodeProcess.ts";

/** A running anvil. */
export type AnvilProcess = NodeProcess;

/**
 * Starts anvil with `args` and waits until it listens; `port` 0 takes a free one.
 * Throws when it ends instead, with what it said (a port in use, an unknown option).
 */
export function startAnvil(port: number, args: readonly string[]): Promise<AnvilProcess> {
	const folder = nodeFolder("anvil");
	return startNode({
		name: "anvil",
		binary: anvilBinary(),
		folder,
		args: ["--host", "127.0.0.1", "--port", String(port), "--cache-path", folder, ...args],
		listening: /Listening on [\d.]+:(\d+)/,
	});
}

function anvilBinary(): string {
	const require = createRequire(import.meta.url);
	const cpu = process.arch === "x64" ? "amd64" : process.arch;
	const name = `@foundry-rs/anvil-${process.platform}-${cpu}`;
	// The platform's package is a dependency of anvil's, so it is looked for from there.
	const fromAnvil = createRequire(require.resolve("@foundry-rs/anvil/package.json"));
	let folder: string;
	try {
		folder = dirname(fromAnvil.resolve(`${name}/package.json`));
	} catch {
		throw new Error(`${name} is not installed: anvil has no binary for this platform, or npm left it out`);
	}
	return join(folder, "bin", process.platform === "win32" ? "anvil.exe" : "anvil");
}
