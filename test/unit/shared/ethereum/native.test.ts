// Whether the native packages are loaded is told truthfully, both ways: the second way in a process of its own, in
// which no native add-on can be loaded.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { nativeBindings } from "../../../../shared/process.ts";

const run = promisify(execFile);
const source = new URL("../../../../shared/process.ts", import.meta.url).href;

/** Where both packages bring a binary; elsewhere they are built at the install, if there is a compiler. */
const shipped = ["linux-x64", "win32-x64"].includes(`${process.platform}-${process.arch}`);

test("both packages are native where they bring binaries", { skip: !shipped }, () => {
	assert.deepEqual(nativeBindings(), { secp256k1: true, keccak: true });
});

test("tells of the JavaScript fallbacks where add-ons cannot be loaded", async () => {
	const script = `const { nativeBindings } = await import(${JSON.stringify(source)});
		process.stdout.write(JSON.stringify(nativeBindings()));`;
	const flags = ["--no-addons", ...process.execArgv, "--input-type=module", "--eval", script];
	const { stdout } = await run(process.execPath, flags, { timeout: 20_000 });
	assert.deepEqual(JSON.parse(stdout), { secp256k1: false, keccak: false });
});
