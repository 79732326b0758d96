// A host whose name server says nothing, for real: in a network namespace of its own. A name that
// nobody answers for costs what else boost and the relay talk to nothing; found by Node's own
// look-up it costs boost its healthy relay.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ROOT } from "../../support/documents.ts";
import { sized } from "../../support/length.ts";
import { PATIENCE_MS } from "../../support/until.ts";

let folder: string;
before(() => {
	folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	writeFileSync(join(folder, "resolv.conf"), "nameserver 127.0.0.1\n");
	writeFileSync(join(folder, "hosts"), "127.0.0.1 localhost relay.test\n");
});
after(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Why this machine gives no namespaces; null if it does. Hosts may forbid them to processes in
 * containers.
 */
function refusal(): string | null {
	const tried = spawnSync("unshare", ["-rnm", "true"], { encoding: "utf8" });
	return tried.status === 0 ? null : (tried.error?.message ?? tried.stderr);
}

function runTrial(...args: readonly string[]): Readonly<Record<string, Record<string, unknown>>> {
	const steps = [
		`mount --bind ${folder}/resolv.conf /etc/resolv.conf`,
		`mount --bind ${folder}/hosts /etc/hosts`,
		"ip link set lo up",
		`exec "${process.execPath}" --import ./test/loader/register.mjs test/support/muteNamesTrial.ts ${args.join(" ")}`,
	];
	const printed = execFileSync("unshare", ["-rnm", "sh", "-ec", steps.join(" && ")], {
		...{ cwd: ROOT, encoding: "utf8" as const, timeout: PATIENCE_MS },
		// The tests' database is not in that namespace.
		env: { PATH: process.env.PATH ?? "" },
	});
	return JSON.parse(printed.trim().split("\n").at(-1) ?? "");
}

test("a fallback's name that nobody answers for costs boost nothing, and a builder's the relay nothing", (t) => {
	const why = refusal();
	if (why !== null) {
		// boostOutgoing and unusableBuilders test the same with a name server of their own.
		assert.match(why, /unshare|ENOENT|permitted|denied|not permitted/i);
		return t.skip("this machine gives no network namespaces");
	}
	assert.deepEqual(runTrial(), {
		boost: { answered: 64, relay: "closed", reason: null },
		relay: { mined: 4 },
	});
	// The trial itself is tried in the long form alone.
	if (sized(true, false)) return;
	const { boost } = runTrial("own");
	assert.ok(Number(boost?.answered) < 64, "Node's own look-up would do");
});
