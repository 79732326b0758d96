// Tests boost's start: what is refused with which message, what is only warned of, that no secret leaks.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BOOST_SETTINGS } from "../../../boost-proxy/config.ts";
import { type Exit, type LaunchedRelay, launchBoost, runBoost } from "../../support/processes.ts";

/** Nobody listens there. */
const NOBODY = "http://127.0.0.1:1";

let folder: string;
let running: LaunchedRelay;
let port: number;
before(async () => {
	folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	running = launchBoost({ env: environment({ PORT: "0", FALLBACK_URL: "http://localhost:1" }) });
	port = Number((await running.logged("listening")).port);
});
after(async () => {
	await running.kill();
	rmSync(folder, { recursive: true, force: true });
});

test("it starts without its upstreams, and says what its operator hardly meant", async () => {
	await running.logged("the fallback may be the relay itself: both names have one address and port");
	const warnings = running.logs().filter(({ level }) => level === 40);
	assert.ok(
		warnings.some(({ msg }) => msg.startsWith("BOOST_SECRET is not set")),
		running.stdout,
	);
	assert.equal((await fetch(`http://127.0.0.1:${port}/livez`)).status, 200);
	assert.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 503);
});

test("what can't be is refused in one line that names the setting", async () => {
	const refusals: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
		[{ FALLBACK_URL: "" }, /^boost: FALLBACK_URL is missing: expected [^\n]+\n$/],
		[{ PORT: String(port), DATA_DIR: join(folder, "other") }, /^boost: [^\n]*\bPORT\b[^\n]*\n$/],
		[{}, /^boost: [^\n]*DATA_DIR[^\n]*\n$/],
	];
	const exits = await Promise.all(refusals.map(([env]) => runBoost({ env: environment(env) })));
	for (const [i, [, expected]] of refusals.entries()) assertRefused(exits[i], expected);
});

test("--print-config prints what is in force, and no secret", async () => {
	const { code, stdout, stderr } = await runBoost({
		args: ["--print-config"],
		env: {
			RELAY_URL: "https://u:secretsecret@relay.example/secretsecret",
			FALLBACK_URL: "https://rpc.example/secretsecret",
			...{ BOOST_SECRET: "secretsecret", ADMIN_TOKEN: "secretsecret" },
		},
	});
	assert.deepEqual([code, stderr], [0, ""]);
	assert.doesNotMatch(stdout, /secretsecret/);
	const names = stdout
		.trimEnd()
		.split("\n")
		.map((line) => line.split("=")[0]);
	assert.deepEqual(names, Object.keys(BOOST_SETTINGS));
});

function environment(over: Readonly<Record<string, string>>): Record<string, string> {
	const usual = { RELAY_URL: NOBODY, FALLBACK_URL: "none", HOST: "127.0.0.1", DATA_DIR: folder, PORT: "0" };
	return { ...usual, ...over };
}

function assertRefused(exit: Exit | undefined, expected: RegExp): void {
	assert.equal(exit?.code, 1);
	assert.match(exit.stderr, expected);
}
