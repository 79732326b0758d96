// The commit that a build names: as git's files have it, as git itself says it, and as hosts tell
// it where there is no git.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { commitOf } from "../../../shared/version.ts";
import { ROOT } from "../../support/documents.ts";

const [LOOSE, PACKED, OTHER] = ["a1", "b2", "c3"].map((two) => two.repeat(20)) as [string, string, string];
const PACKED_REFS = `# pack-refs with: peeled fully-peeled sorted\n${OTHER} refs/heads/mainly\n${PACKED} refs/heads/main\n`;

/** The files of the folder by path, and the commit. */
const LAYOUTS: Readonly<Record<string, readonly [files: Readonly<Record<string, string>>, commit: string]>> =
	{
		"a branch": [
			{ "app/.git/HEAD": "ref: refs/heads/main\n", "app/.git/refs/heads/main": `${LOOSE}\n` },
			LOOSE,
		],
		"a packed branch": [
			{ "app/.git/HEAD": "ref: refs/heads/main\n", "app/.git/packed-refs": PACKED_REFS },
			PACKED,
		],
		"a branch that has moved since it was packed": [
			{
				"app/.git/HEAD": "ref: refs/heads/main\n",
				"app/.git/packed-refs": PACKED_REFS,
				"app/.git/refs/heads/main": `${LOOSE}\n`,
			},
			LOOSE,
		],
		"no branch": [{ "app/.git/HEAD": `${OTHER}\n` }, OTHER],
		"a further working tree": [
			{
				"app/.git": "gitdir: ../main/.git/worktrees/app\n",
				"main/.git/worktrees/app/HEAD": "ref: refs/heads/topic\n",
				"main/.git/worktrees/app/commondir": "../..\n",
				"main/.git/refs/heads/topic": `${LOOSE}\n`,
				"main/.git/HEAD": `${OTHER}\n`,
			},
			LOOSE,
		],
		"a repository around the folder": [{ ".git/HEAD": `${OTHER}\n`, "app/package.json": "{}" }, "unknown"],
		"a repository without a commit": [{ "app/.git/HEAD": "ref: refs/heads/main\n" }, "unknown"],
		nonsense: [{ "app/.git/HEAD": "ref: ../../../etc/passwd\n" }, "unknown"],
	};

for (const [name, [files, commit]] of Object.entries(LAYOUTS)) {
	test(`${name}: ${commit === "unknown" ? "no commit" : "its commit"}`, (t) => {
		const folder = mkdtempSync(join(tmpdir(), "leeward-git-"));
		t.after(() => rmSync(folder, { recursive: true }));
		for (const [path, text] of Object.entries(files)) {
			mkdirSync(dirname(join(folder, path)), { recursive: true });
			writeFileSync(join(folder, path), text);
		}
		assert.equal(commitOf({}, join(folder, "app")), commit);
		// A commit in the folder takes precedence over the environment.
		const expected = commit === "unknown" ? PACKED : commit;
		assert.equal(commitOf({ SOURCE_VERSION: PACKED }, join(folder, "app")), expected);
	});
}

test("without git, takes it from the image's build or Heroku, and shows no text that is not a commit", () => {
	const nowhere = join(tmpdir(), "leeward-no-such-folder");
	for (const name of ["SOURCE_VERSION", "HEROKU_BUILD_COMMIT", "HEROKU_SLUG_COMMIT"]) {
		assert.equal(commitOf({ [name]: ` ${LOOSE.toUpperCase()}\n` }, nowhere), LOOSE, name);
		for (const text of ["", "main", "https://key@host/", "a1a1a1", `${LOOSE}${LOOSE}`])
			assert.equal(commitOf({ [name]: text }, nowhere), "unknown", text);
	}
	assert.equal(commitOf({ SOURCE_VERSION: "", HEROKU_SLUG_COMMIT: LOOSE }, nowhere), LOOSE);
});

const asked = spawnSync("git", ["rev-parse", "HEAD"], { cwd: ROOT, encoding: "utf8" });

test("it is what git says of this folder", {
	skip: asked.status !== 0 && "no git here, or no repository",
}, () => {
	assert.equal(commitOf({}), asked.stdout.trim());
});
