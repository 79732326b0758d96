// The product's version from package.json, and the commit that this folder or image was built from.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };

export const VERSION: string = version;

/** The version and the commit of a process. */
export interface Build {
	readonly version: string;
	/** "unknown" if the commit can't be found. */
	readonly commit: string;
}

/** The build of a process that does not know its commit. */
export const UNKNOWN_BUILD: Build = { version: VERSION, commit: "unknown" };

/**
 * Variables that name the commit if there is no git: those of an image's build, and those that
 * Heroku sets with runtime-dyno-metadata.
 */
const VARIABLES = ["SOURCE_VERSION", "HEROKU_BUILD_COMMIT", "HEROKU_SLUG_COMMIT"];
const COMMIT = /^[0-9a-f]{7,64}$/;
const HERE = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * The commit that is checked out in `folder`, else the commit that `env` names, else "unknown".
 * Reads git's files itself, since git may not be installed and refuses a folder of another user.
 */
export function commitOf(env: Readonly<Record<string, string | undefined>>, folder: string = HERE): string {
	const named = VARIABLES.map((name) => env[name]?.trim().toLowerCase() ?? "");
	return [checkedOut(join(folder, ".git")), ...named].find((one) => COMMIT.test(one)) ?? UNKNOWN_BUILD.commit;
}

/**
 * The commit of HEAD by a repository's `.git`; "" if it can't be read.
 * https://git-scm.com/docs/gitrepository-layout
 */
function checkedOut(git: string): string {
	// In an additional working tree .git is a file that names the folder.
	const linked = /^gitdir: (.+)/.exec(textOf(git))?.[1];
	const own = linked === undefined ? git : resolve(dirname(git), linked);
	const common = resolve(own, textOf(join(own, "commondir")).trim());
	const head = textOf(join(own, "HEAD")).trim();
	const ref = /^ref: (refs\/[\w./-]+)$/.exec(head)?.[1];
	if (ref === undefined) return head;
	const loose = textOf(join(common, ref)).trim();
	if (loose !== "") return loose;
	const packed = textOf(join(common, "packed-refs")).split("\n");
	return packed.find((line) => line.endsWith(` ${ref}`))?.split(" ")[0] ?? "";
}

/** A file's text; "" if there is none. */
function textOf(path: string): string {
	try {
		return readFileSync(path, "utf8");
	} catch {
		return "";
	}
}
