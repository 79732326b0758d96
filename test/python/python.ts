// Python with packages of its own, for tests: programs that run to their end, and a library whose
// functions a test calls one by one. `npm run test:python` installs them; where it did not, its
// tests are skipped.

import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { systemClock, withDeadline } from "../../shared/clock.ts";

const FOLDER = dirname(fileURLToPath(import.meta.url));
const ROOT = dirname(dirname(FOLDER));

/** A virtual environment. */
export interface Environment {
	/** The file that lists its packages. */
	readonly requirements: string;
	readonly folder: string;
	/** The requirements that are installed; written when they are. */
	readonly installed: string;
	readonly python: string;
	/** Why a test that needs it is skipped, for its `skip`; false: it is not. */
	readonly absent: string | false;
}

function environment(name: string): Environment {
	const folder = join(FOLDER, ".venv", name);
	const installed = join(folder, "installed.txt");
	return {
		requirements: join(FOLDER, `${name}.txt`),
		folder,
		installed,
		python: join(folder, "bin", "python"),
		absent: existsSync(installed) ? false : "npm run test:python installs Python",
	};
}

/** Flashbots' library needs web3.py 6, and the examples run on what is newest. */
export const FLASHBOTS = environment("flashbots");
export const NEWEST = environment("newest");

/**
 * The longest that a program, or one answer of it, may take, in ms: importing web3 takes seconds on
 * a busy machine.
 */
const ANSWER_MS = 60_000;

/** How a program ended. */
export interface Ended {
	readonly code: number | null;
	readonly stdout: string;
	readonly stderr: string;
}

/**
 * Runs the program at `path` (from the root of the repository, or absolute) to its end, which must
 * come within 60 s. It gets `env` and no other setting of this process.
 */
export async function runPython(
	{ python }: Environment,
	path: string,
	args: readonly string[] = [],
	env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
	const child = start(python, path, args, env);
	child.stdin.end();
	const [stdout, stderr] = [textOf(child.stdout), textOf(child.stderr)];
	const code = await within(child, path, () => endOf(child));
	return { code, stdout: await stdout, stderr: await stderr };
}

/** A program that answers each line of JSON with one, such as library.py. */
export class PythonCalls {
	readonly #child: ChildProcessWithoutNullStreams;
	readonly #lines: AsyncIterator<string>;
	readonly #stderr: Promise<string>;
	readonly #ended: Promise<number | null>;

	constructor({ python }: Environment, path: string, args: readonly string[]) {
		this.#child = start(python, path, args, {});
		this.#child.stdin.on("error", () => {});
		this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
		this.#stderr = textOf(this.#child.stderr);
		this.#ended = endOf(this.#child);
	}

	/**
	 * The answer to `request`. Throws with what the program wrote to its standard error if it ended
	 * instead.
	 */
	async ask(request: unknown): Promise<unknown> {
		this.#child.stdin.write(`${JSON.stringify(request)}\n`);
		const { value, done } = await within(this.#child, "an answer", () => this.#lines.next());
		if (done === true) throw new Error(`Python ended: ${await this.#stderr}`);
		return JSON.parse(value as string);
	}

	/** Ends it; it must end well. */
	async stop(): Promise<void> {
		this.#child.stdin.end();
		const code = await within(this.#child, "the end of Python", () => this.#ended);
		assert.equal(code, 0, await this.#stderr);
	}
}

function start(python: string, path: string, args: readonly string[], env: Readonly<Record<string, string>>) {
	const { PATH = "", HOME = "" } = process.env;
	const settings = { PATH, HOME, PYTHONUNBUFFERED: "1", PYTHONDONTWRITEBYTECODE: "1", ...env };
	return spawn(python, [path, ...args], { cwd: ROOT, env: settings });
}

/** Its exit code, null where a signal ended it. */
function endOf(child: ChildProcessWithoutNullStreams): Promise<number | null> {
	return new Promise((resolve, reject) => {
		child.once("error", reject);
		child.once("close", (code) => resolve(code));
	});
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
	const parts: string[] = [];
	for await (const part of stream.setEncoding("utf8")) parts.push(String(part));
	return parts.join("");
}

/** Kills the program where `what` does not come in time. */
async function within<T>(
	child: ChildProcessWithoutNullStreams,
	what: string,
	wait: () => Promise<T>,
): Promise<T> {
	try {
		return await withDeadline(systemClock, what, ANSWER_MS, wait);
	} catch (thrown) {
		child.kill("SIGKILL");
		throw thrown;
	}
}
