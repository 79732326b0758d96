// Compiles the Solidity sources beside this file to creation code and interfaces. The compiler's
// output is kept by the hash of its input and of its version: loading it and compiling takes two
// seconds.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Interface, type InterfaceAbi } from "ethers";

/** A compiled contract. */
export interface Contract {
	/** Creation code, 0x hex; a constructor's arguments are appended to it. */
	readonly code: string;
	/** Code of the created contract, 0x hex. */
	readonly runtime: string;
	readonly abi: Interface;
}

/** All contracts by name. */
export type Contracts = Readonly<Record<"Token" | "WrappedEther" | "Pair" | "Arbitrage", Contract>>;

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), "contracts");
const KEPT = fileURLToPath(new URL("../../node_modules/.cache/leeward/", import.meta.url));
const require = createRequire(import.meta.url);

interface CompiledContract {
	readonly abi: InterfaceAbi;
	readonly evm: Readonly<Record<"bytecode" | "deployedBytecode", { readonly object: string }>>;
}

/**
 * The fields of solc's output that are used.
 * https://docs.soliditylang.org/en/latest/using-the-compiler.html
 */
interface Compiled {
	readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[];
	/** By file and name. */
	readonly contracts?: Readonly<Record<string, Readonly<Record<string, CompiledContract>>>>;
}

/** Compiles the contracts beside this file. Throws like {@link compileFolder}. */
export function compileContracts(): Contracts {
	const contract = compileFolder(FOLDER);
	return {
		Token: contract("Token"),
		WrappedEther: contract("WrappedEther"),
		Pair: contract("Pair"),
		Arbitrage: contract("Arbitrage"),
	};
}

/**
 * Compiles the Solidity files of a folder, and returns the contracts by name. `bare`: without the
 * hash of their source behind the code. Throws the compiler's messages, also if there are only
 * warnings.
 */
export function compileFolder(folder: string, bare = false): (name: string) => Contract {
	const files = readdirSync(folder).filter((name) => name.endsWith(".sol"));
	const input = {
		language: "Solidity",
		sources: Object.fromEntries(
			files.map((name) => [name, { content: readFileSync(join(folder, name), "utf8") }]),
		),
		settings: {
			optimizer: { enabled: true, runs: 200 },
			// The oldest fork of the dev chain must be able to run the code.
			evmVersion: "cancun",
			...(bare ? { metadata: { appendCBOR: false } } : {}),
			outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
		},
	};
	const output = JSON.parse(compiled(JSON.stringify(input))) as Compiled;
	const said = (output.errors ?? []).map(({ formattedMessage }) => formattedMessage);
	if (said.length > 0) throw new Error(`the contracts do not compile cleanly:\n${said.join("\n")}`);
	const found = new Map(Object.values(output.contracts ?? {}).flatMap((file) => Object.entries(file)));
	return (name) => {
		const one = found.get(name);
		if (one === undefined) throw new Error(`no contract ${name} in ${folder}`);
		const { bytecode, deployedBytecode } = one.evm;
		const [code, runtime] = [`0x${bytecode.object}`, `0x${deployedBytecode.object}`];
		return { code, runtime, abi: Interface.from(one.abi) };
	};
}

/** The compiler's output for its JSON input. */
function compiled(input: string): string {
	const { version } = require("solc/package.json") as { readonly version: string };
	const kept = join(KEPT, `${createHash("sha256").update(`${version} ${input}`).digest("hex")}.solc.json`);
	try {
		return readFileSync(kept, "utf8");
	} catch {
		const { compile } = require("solc") as { readonly compile: (input: string) => string };
		const output = compile(input);
		keep(kept, output);
		return output;
	}
}

function keep(path: string, text: string): void {
	const draft = `${path}.${process.pid}`;
	try {
		mkdirSync(KEPT, { recursive: true });
		writeFileSync(draft, text);
		// Others read and write it at the same time.
		renameSync(draft, path);
	} catch {
		// In a folder that may not be written to each process compiles.
	}
}
