// A folder that can't be used: relay and boost both end with 1 and one line that names DATA_DIR,
// the folder and what to do, as the user of a container sees it whose volume belongs to root or is
// full.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { after, before, test } from "node:test";
import { IN_FOLDER } from "../../support/engine.ts";
import { sized } from "../../support/length.ts";
import { type Exit, launchBoost, launchRelay, runBoost, runRelay } from "../../support/processes.ts";

/** Nobody's id on Linux. */
const NOBODY = 65_534;
const NO_NODE = "http://127.0.0.1:1";
const BUILDERS = JSON.stringify([{ name: "a", url: NO_NODE }]);
const NAMES = ["relay", "boost"] as const;
/**
 * Whether another user may read the project, which root may keep in a folder that only root may
 * open.
 */
const isOpen = [process.cwd(), process.execPath].every((path) => {
	for (let at = path; at !== dirname(at); at = dirname(at))
		if ((statSync(at).mode & 0o001) === 0) return false;
	return true;
});
/** Root may write everywhere, so its processes run as nobody. */
const UID = process.getuid?.() === 0 && isOpen ? NOBODY : process.getuid?.();

let root: string;
before(() => {
	root = mkdtempSync(join(tmpdir(), "leeward-test-"));
	chmodSync(root, 0o755);
});
after(() => rmSync(root, { recursive: true, force: true }));

interface Case {
	readonly what: string;
	/** Makes the folder for DATA_DIR and returns its path. */
	readonly make: (at: string) => string;
	/** Parts of the line besides "DATA_DIR can't be used"; `uid` is the user of the process. */
	readonly says: (dataDir: string, name: string, uid: number) => readonly string[];
	readonly under?: string;
	/** Whether root would not see it. */
	readonly isOfUsers?: boolean;
}

const CASES: readonly Case[] = [
	{
		what: "a volume that belongs to root",
		isOfUsers: true,
		make(at) {
			mkdirSync(at);
			chmodSync(at, 0o555);
			return at;
		},
		says: (at, name, uid) => [
			`user ${uid} may not write ${join(at, name)} (${at} belongs to user ${statSync(at).uid})`,
			`chown -R ${uid} ${at}\n`,
		],
	},
	{
		what: "a store that another user has made",
		isOfUsers: true,
		make(at) {
			for (const name of NAMES) {
				const folder = join(at, name);
				mkdirSync(folder, { recursive: true });
				chmodSync(folder, 0o777);
				writeFileSync(join(folder, "data.mdb"), "");
				chmodSync(join(folder, "data.mdb"), 0o444);
			}
			return at;
		},
		says: (at, name, uid) => [
			`user ${uid} may not write ${join(at, name, "data.mdb")} `,
			`chown -R ${uid} ${at}\n`,
		],
	},
	{
		what: "a folder that is a file",
		make(at) {
			writeFileSync(at, "");
			return at;
		},
		says: (at, name) => [`${join(at, name)} is or is below a file`, "for example DATA_DIR="],
	},
	{
		what: "a full disk",
		make(at) {
			mkdirSync(at);
			chmodSync(at, 0o777);
			return at;
		},
		// Writes beyond the limit fail as on a full disk.
		under: "ulimit -f 8",
		says: (at, name) => [`the disk of ${join(at, name)} is full`, "16 MiB of free space"],
	},
];

// As root, cases that root would not see are tested in dataFolder.test.ts of the unit tests alone.
for (const [i, { what, make, says, under }] of CASES.filter((one) => UID !== 0 || !one.isOfUsers).entries()) {
	// Both check it by the same code.
	const names = sized<readonly (typeof NAMES)[number][]>(NAMES.slice(i % 2, (i % 2) + 1), NAMES);
	test(`${what}: ${names.join(" and ")} say so in one line`, async () => {
		const at = make(join(root, String(i)));
		const uid = UID ?? 0;
		const exits = await Promise.all(names.map((name) => run(name, { DATA_DIR: at }, under)));
		for (const [n, name] of names.entries()) {
			const { code, signal, stderr } = exits[n] as Exit;
			assert.deepEqual([code, signal], [1, null], stderr);
			assert.match(stderr, new RegExp(`^${name}: DATA_DIR can't be used: [^\\n]+: expected [^\\n]+\\n$`));
			for (const part of says(at, name, uid)) assert.ok(stderr.includes(part), `${stderr} lacks ${part}`);
		}
	});
}

test("a relative path with a space is made where the process was started", async () => {
	const folder = join(root, "my data");
	const DATA_DIR = relative(process.cwd(), folder);
	const boost = launchBoost({ env: { ...settings("boost"), DATA_DIR } });
	await boost.logged("listening");
	await boost.kill();
	const relay = launchRelay({ env: { ...settings("relay"), DATA_DIR } });
	await relay.logged("waiting for the node of ETH_RPC_URL");
	await relay.kill();
	for (const name of NAMES) assert.equal(statSync(join(folder, name)).mode & 0o777, 0o700);
});

function run(name: "relay" | "boost", over: Readonly<Record<string, string>>, under?: string): Promise<Exit> {
	const options = {
		env: { ...settings(name), ...over },
		...(under === undefined ? {} : { under }),
		...(UID === undefined || UID === process.getuid?.() ? {} : { uid: UID }),
	};
	return name === "relay" ? runRelay(options) : runBoost(options);
}

function settings(name: "relay" | "boost"): Readonly<Record<string, string>> {
	const common = { ...IN_FOLDER, HOST: "127.0.0.1", PORT: "0" };
	return name === "relay"
		? { ...common, ETH_RPC_URL: NO_NODE, BUILDERS }
		: { ...common, RELAY_URL: NO_NODE, FALLBACK_URL: "none", BOOST_SECRET: "shared by both" };
}
