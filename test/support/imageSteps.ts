// Performs the steps of the Dockerfile below a folder that stands for /, without Docker: COPY of
// what .dockerignore lets through, RUN by the shell, WORKDIR. The base image, users and layers are
// not there: commands run on this machine, as this user.

import { spawnSync } from "node:child_process";
import {
	chmodSync,
	cpSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { type ImageStage, ROOT, textOf } from "./documents.ts";

/** Those without an effect on files. */
const DECLARES = ["ARG", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "CMD"];

/**
 * Whether Docker's build sees the file, by .dockerignore: the last pattern that matches it, or a
 * folder that it is in, counts. Only `*`, whole paths and `!` are known here.
 * https://docs.docker.com/build/concepts/context/#dockerignore-files
 */
export function isInContext(path: string, ignored: string = textOf(".dockerignore")): boolean {
	let isIn = true;
	for (const line of ignored.split("\n")) {
		if (line === "" || line.startsWith("#")) continue;
		const pattern = line.replace(/^!/, "");
		if (/[*?[]/.test(pattern) && pattern !== "*") throw new Error(`the tests don't know ${line}`);
		if (pattern === "*" || path === pattern || path.startsWith(`${pattern}/`)) isIn = line.startsWith("!");
	}
	return isIn;
}

/**
 * Performs `stage` below `root`; `earlier`: the roots of the stages before by name. Throws where a
 * step fails.
 */
export function perform(stage: ImageStage, root: string, earlier: ReadonlyMap<string, string>): void {
	let place = root;
	mkdirSync(root, { recursive: true });
	for (const { name, rest } of stage.instructions) {
		if (name === "WORKDIR") {
			place = join(root, rest);
			mkdirSync(place, { recursive: true });
		} else if (name === "COPY") copy(rest, place, earlier);
		else if (name === "RUN") run(rest, place, root);
		else if (!DECLARES.includes(name)) throw new Error(`the tests don't know ${name}`);
	}
}

function copy(rest: string, place: string, earlier: ReadonlyMap<string, string>): void {
	const [, stage, paths = ""] = /^(?:--from=(\w+) )?(.*)$/.exec(rest) ?? [];
	const names = paths.split(" ");
	const target = join(place, names.pop() ?? "");
	for (const name of names) {
		const from = join(stage === undefined ? ROOT : (earlier.get(stage) ?? ""), name);
		const isSeen = stage !== undefined || isInContext(name);
		if (!isSeen || !existsSync(from)) throw new Error(`COPY ${rest}: ${name} is not there`);
		const filter = (path: string) => stage !== undefined || isInContext(relative(ROOT, path));
		// A folder's contents are copied, a file itself.
		const isFolder = statSync(from).isDirectory();
		cpSync(from, isFolder ? target : join(target, basename(name)), {
			recursive: true,
			verbatimSymlinks: true,
			filter,
		});
	}
}

function run(command: string, place: string, root: string): void {
	const bin = mkdtempSync(join(tmpdir(), "leeward-bin-"));
	// Nobody but root gives files away.
	if (process.getuid?.() !== 0) {
		writeFileSync(join(bin, "chown"), "#!/bin/sh\n");
		chmodSync(join(bin, "chown"), 0o755);
	}
	const here = command.replaceAll(/(?<= )\/(?=\w)/g, `${root}/`);
	const { status, stderr } = spawnSync("/bin/sh", ["-euc", here], {
		cwd: place,
		encoding: "utf8",
		env: {
			PATH: `${bin}:${process.env.PATH}`,
			HOME: process.env.HOME ?? "",
			// Packages that were installed for the tests need not be fetched again. The rest is no part
			// of the test.
			npm_config_prefer_offline: "true",
			npm_config_audit: "false",
			npm_config_update_notifier: "false",
		},
	});
	rmSync(bin, { recursive: true });
	if (status !== 0) throw new Error(`RUN ${command}: ${stderr}`);
}
