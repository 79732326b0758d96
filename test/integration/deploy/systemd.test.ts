// docs/deploy/systemd: what the units run, set and allow, by systemd itself where it is installed,
// and the commands that install them and upgrade, in a shell with fakes of the programs that change
// a machine.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
	chmodSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseEnv } from "node:util";
import { readBoostConfig } from "../../../boost-proxy/config.ts";
import { readRelayConfig } from "../../../relay/config.ts";
import { DEPLOY_SETTINGS, STOP_MS } from "../../support/deploySettings.ts";
import { ROOT, snippet, textOf } from "../../support/documents.ts";
import { lineOf } from "../../support/processes.ts";

const NAMES = ["relay", "boost"] as const;
const UNITS = "docs/deploy/systemd";
/** Not ours: what node and tsx take. */
const FOREIGN = ["NODE_ENV", "TSX_DISABLE_CACHE"];
/** A score out of ten: the units of most distributions' own services have over nine. */
const MOST_EXPOSURE = 2;
const HAS_SYSTEMD = spawnSync("systemd-analyze", ["--version"]).error === undefined;
const skip = HAS_SYSTEMD ? false : "no systemd-analyze here";

const folder = mkdtempSync(join(tmpdir(), "leeward-systemd-"));
after(() => rmSync(folder, { recursive: true }));

function unitOf(name: string): string {
	return textOf(join(UNITS, `leeward-${name}.service`));
}

/** The values of a setting of a unit, in order. */
function all(unit: string, setting: string): readonly string[] {
	return [...unit.matchAll(new RegExp(`^${setting}=(.*)$`, "gm"))].map(([, value = ""]) => value);
}

function only(unit: string, setting: string): string {
	const [value, ...others] = all(unit, setting);
	assert.ok(value !== undefined && others.length === 0, setting);
	return value;
}

/** The environment that a unit sets before its file. */
function environment(name: string): Record<string, string> {
	const text = only(unitOf(name), "Environment").replaceAll("%S", "/var/lib");
	return Object.fromEntries(text.split(" ").map((pair) => pair.split("=") as [string, string]));
}

for (const name of NAMES) {
	const unit = unitOf(name);

	test(`${name}: the Procfile's command, settings that exist, and time to stop`, () => {
		assert.equal(only(unit, "ExecStart"), lineOf(name).replace("exec node", "/usr/bin/node"));
		for (const setting of Object.keys(environment(name)))
			assert.ok(setting in DEPLOY_SETTINGS[name] || FOREIGN.includes(setting), setting);
		assert.equal(environment(name).DATA_DIR, `/var/lib/${only(unit, "StateDirectory")}`);
		assert.ok(Number(only(unit, "TimeoutStopSec")) * 1_000 >= STOP_MS);
		assert.equal(only(unit, "EnvironmentFile"), `/etc/leeward/${name}.env`);
	});

	test(`${name}: it comes back however it ends, and may have the files that the operators' guide counts`, () => {
		assert.deepEqual([only(unit, "Restart"), only(unit, "StartLimitIntervalSec")], ["always", "0"]);
		const [, relay, boost] =
			/to\s+([\d,]+) at a\s+relay and ([\d,]+) at boost/.exec(textOf("docs/operators.md")) ?? [];
		const files = { relay, boost }[name]?.replace(",", "");
		assert.equal(only(unit, "LimitNOFILE"), files);
	});
}

test("boost is stopped before the relay on its machine", () => {
	assert.ok(only(unitOf("boost"), "After").split(" ").includes("leeward-relay.service"));
});

test("systemd takes the units without a word, and finds them closed", { skip }, () => {
	for (const name of NAMES) {
		const file = join(folder, `leeward-${name}.service`);
		// The path of the machine's own node. Boost's unit names the relay's, which need not be known.
		writeFileSync(file, unitOf(name).replace("/usr/bin/node", process.execPath));
	}
	for (const name of NAMES) {
		const file = join(folder, `leeward-${name}.service`);
		const verified = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" });
		assert.deepEqual([verified.status, verified.stderr], [0, ""], name);
		const options = ["security", "--offline=true", `--threshold=${MOST_EXPOSURE * 10}`, file];
		const { status, stdout } = spawnSync("systemd-analyze", options, { encoding: "utf8" });
		assert.equal(status, 0, stdout);
	}
});

test("a misspelt setting of a unit is found", { skip }, () => {
	const file = join(folder, "leeward-misspelt.service");
	writeFileSync(file, unitOf("relay").replace("RestartSec=", "RestartSecs="));
	const { stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" });
	assert.match(stderr, /RestartSecs/);
});

/** Records what is called; `sudo` runs it. */
const FAKES: Readonly<Record<string, string>> = {
	sudo: 'exec "$@"',
	openssl: `head -c "$3" /dev/urandom | od -An -v -tx1 | tr -d ' \\n'`,
	...Object.fromEntries(
		["npm", "git", "systemctl", "curl"].map((name) => [name, `echo "${name} $*" >> "$CALLS"`]),
	),
};

/** Runs a block of the guide below a folder in the place of /. Returns what was called. */
function run(block: string, root: string): readonly string[] {
	const app = join(root, "opt/leeward");
	for (const path of ["bin", "opt/leeward", "etc/systemd/system"])
		mkdirSync(join(root, path), { recursive: true });
	if (!existsSync(join(app, "docs"))) symlinkSync(join(ROOT, "docs"), join(app, "docs"));
	for (const [name, text] of Object.entries(FAKES)) {
		writeFileSync(join(root, "bin", name), `#!/bin/sh\n${text}\n`);
		chmodSync(join(root, "bin", name), 0o755);
	}
	const text = block
		.replaceAll("https://…", "https://node.example")
		.replaceAll(/(?<=[ "])\/(opt|etc)\//g, `${root}/$1/`);
	assert.doesNotMatch(text, /…/);
	const calls = join(root, "calls");
	writeFileSync(calls, "");
	const env = { PATH: `${join(root, "bin")}:${process.env.PATH}`, CALLS: calls };
	execFileSync("/bin/sh", ["-euc", text], { cwd: root, env });
	return readFileSync(calls, "utf8").trimEnd().split("\n");
}

test("the commands install both: units, and settings that relay and boost accept, for root's eyes alone", () => {
	const root = join(folder, "install");
	const calls = run(snippet("docs/deploy.md", "cd /opt/leeward && sudo npm ci"), root);
	assert.deepEqual(calls, [
		"npm ci --omit=dev",
		"systemctl daemon-reload",
		"systemctl enable --now leeward-relay leeward-boost",
		"curl http://127.0.0.1:8081/readyz",
	]);
	const given = Object.fromEntries(
		NAMES.map((name) => {
			assert.equal(
				readFileSync(join(root, `etc/systemd/system/leeward-${name}.service`), "utf8"),
				unitOf(name),
			);
			const file = join(root, `etc/leeward/${name}.env`);
			assert.equal(statSync(file).mode & 0o777, 0o600);
			const settings = parseEnv(readFileSync(file, "utf8")) as Record<string, string>;
			for (const setting of Object.keys(settings)) assert.ok(setting in DEPLOY_SETTINGS[name], setting);
			return [name, { ...environment(name), ...settings }];
		}),
	);
	const relay = readRelayConfig(given.relay ?? {});
	const boost = readBoostConfig(given.boost ?? {});
	assert.match(relay.SIGNING_KEY ?? "", /^0x[0-9a-f]{64}$/);
	assert.deepEqual(
		[boost.BOOST_SECRET, boost.RELAY_URL],
		[relay.BOOST_SECRET, `http://127.0.0.1:${relay.PORT}`],
	);
	assert.equal(statSync(join(root, "etc/leeward")).mode & 0o777, 0o700);
});

test("the commands of an upgrade stop both, boost first, and wait until boost is ready", () => {
	const calls = run(
		snippet("docs/deploy.md", "sudo systemctl stop leeward-boost leeward-relay\n"),
		join(folder, "upgrade"),
	);
	assert.deepEqual(calls, [
		"systemctl stop leeward-boost leeward-relay",
		"git pull --ff-only",
		"npm ci --omit=dev",
		"systemctl start leeward-relay leeward-boost",
		"curl -fsS http://127.0.0.1:8081/readyz",
	]);
});
