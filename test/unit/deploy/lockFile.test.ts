// Tests the lock files: they pin the bytes tested here, to be fetched from the user's own npm registry.

import assert from "node:assert/strict";
import { test } from "node:test";
import { textOf } from "../../support/deployFiles.ts";

interface Entry {
	readonly version?: string;
	readonly integrity?: string;
	readonly resolved?: string;
	readonly link?: boolean;
	readonly dev?: boolean;
	readonly optional?: boolean;
}

/**
 * Development tools' binaries for other platforms than x64 Linux: no registry within reach had them when the lock file was
 * made. No other digest may be missing. `npm view NAME@VERSION dist.integrity` tells what to put in.
 */
const UNKNOWN = [
	...["android-arm64", "android-x64", "darwin-arm64", "darwin-x64", "linux-arm64-musl", "linux-x64-musl"].map(
		(platform) => `@biomejs/cli-${platform}@2.6.8`,
	),
	...["win32-arm64", "win32-x64"].map((platform) => `@biomejs/cli-${platform}@2.6.8`),
	...["anvil", "cast"].flatMap((tool) =>
		["darwin-amd64", "darwin-arm64", "linux-arm64", "win32-amd64"].map(
			(platform) => `@foundry-rs/${tool}-${platform}@1.7.1`,
		),
	),
];

const FILES = ["package-lock.json", "test/metamask/package-lock.json"];

type Packages = Readonly<Record<string, Entry>>;

function packagesOf(file: string): Packages {
	return (JSON.parse(textOf(file)) as { packages: Packages }).packages;
}

/** All that comes from a registry: not this package itself, and no link to a folder. */
const entries = FILES.flatMap((file) => Object.entries(packagesOf(file))).filter(
	([path, { link }]) => path !== "" && link !== true,
);

function nameOf([path, { version }]: readonly [string, Entry]): string {
	return `${path.split("node_modules/").at(-1)}@${version}`;
}

test("each entry has the digest of its bytes, but for tools of other platforms that are not known", () => {
	assert.ok(entries.length > 100, `${entries.length} entries`);
	const without = entries.filter(([, { integrity = "" }]) => !/^sha512-[\w+/]{86}==$/.test(integrity));
	assert.deepEqual(without.map(nameOf).sort(), [...UNKNOWN].sort());
	for (const [path, { dev, optional }] of without) assert.deepEqual([dev, optional], [true, true], path);
});

for (const file of FILES) {
	test(`${file} names no host: each npm asks its own registry`, () => {
		const { "": root, ...others } = packagesOf(file);
		assert.ok(root !== undefined);
		for (const [path, { resolved }] of Object.entries(others)) assert.equal(resolved, undefined, path);
		assert.doesNotMatch(textOf(file), /"(resolved|registry)":|\b(localhost|127\.0\.0\.1)\b/);
	});
}
