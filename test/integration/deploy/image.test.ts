// What the Dockerfile copies into its images, in folders, and run as it runs it: by a user who may write nothing there,
// with the packages that are no dev packages. There is no container: what Docker itself does is not shown.

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseEnv } from "node:util";
import { freePort } from "../../devnet/freePort.ts";
import {
	copied,
	type ImageStage,
	imageStages,
	only,
	ROOT,
	textOf,
	variables,
} from "../../support/documents.ts";
import { SUPERVISED } from "../../support/postgresServer.ts";
import { readyStatus } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const READY_MS = 30_000;
/** What Docker gives it: https://docs.docker.com/reference/cli/docker/container/stop/ with compose.yaml's time. */
const STOP_MS = 60_000;
/** Its build is given it. */
const COMMIT = "ab".repeat(20);
const { USER = "", HOME = "", PATH = "" } = process.env;

const folder = mkdtempSync(join(tmpdir(), "leeward-image-"));
const app = join(folder, "app");
const data = join(folder, "data");
const stages = imageStages();
const image = stages.at(-1) as ImageStage;
const user = imageUser();
let system: ProcessSystem;

before(async () => {
	copy(image, app);
	for (const name of productionPackages()) cpSync(join(ROOT, name), join(app, name), { recursive: true });
	mkdirSync(data, { mode: 0o700 });
	if ("uid" in user) chownSync(data, user.uid, user.gid);
	execFileSync("chmod", ["-R", "a+rX,a-w", app]);
	execFileSync("chmod", ["a+rx", folder]);
	system = await startProcessSystem();
});
after(async () => {
	await system.stop();
	execFileSync("chmod", ["-R", "u+w", app]);
	rmSync(folder, { recursive: true, force: true });
});

test("the image's command serves, its HEALTHCHECK tells whether it is up, and SIGTERM ends it in time with 0", async (t) => {
	const env = { ...system.env, ...imageEnv(), PORT: String(await freePort()), FALLBACK_URL: "none" };
	assert.equal(healthOf(env).status, 1, "nothing is up yet");
	const pair = start(JSON.parse(only(image, "CMD")) as string[], { cwd: app, env, user });
	t.after(() => pair.child.kill("SIGKILL"));
	const url = `http://127.0.0.1:${env.PORT}`;
	await until("it is ready", async () => ready(url, pair), READY_MS);
	assert.equal(await new RelayClient(url).call("eth_chainId", []), "0x7a69");
	const info = (await (await fetch(`${url}/info`)).json()) as { commit: string };
	assert.equal(info.commit, COMMIT);
	const health = healthOf(env);
	assert.deepEqual([health.status, String(health.stderr)], [0, ""]);
	for (const task of ["secp256k1", "keccak"]) {
		assert.match(pair.said(), new RegExp(`"task":"${task}","native":true`));
	}
	pair.child.kill("SIGTERM");
	assert.deepEqual(await pair.ended(STOP_MS), [0, null], pair.said().slice(-2_000));
	assert.equal(healthOf(env).status, 1, "nothing is up any more");
});

test("the image's user can write nothing in it, and it has no dev package", () => {
	const script = `require("fs").writeFileSync("relay/x", "")`;
	const written = spawnSync(process.execPath, ["-e", script], { cwd: app, ...user });
	assert.match(String(written.stderr), /EACCES/);
	const { devDependencies } = JSON.parse(textOf("package.json")) as {
		devDependencies: Record<string, string>;
	};
	// What a package of the product needs itself may be one of them.
	const needed = productionPackages();
	const others = Object.keys(devDependencies).filter((name) => !needed.includes(`node_modules/${name}`));
	assert.ok(others.length > 10);
	for (const name of others) assert.ok(!existsSync(join(app, "node_modules", name)), name);
});

test("the development image prints a relay's settings, serves it, and ends with 0", async (t) => {
	const dev = stages.find(({ name }) => name === "dev") as ImageStage;
	const place = join(folder, "dev");
	copy(dev, place);
	symlinkSync(join(ROOT, "node_modules"), join(place, "node_modules"));
	const ports = { CHAIN_PORT: String(await freePort()), BUILDER_PORT: String(await freePort()) };
	const env = { PATH, HOME, TMPDIR: folder, ...ports, SLOT_SECONDS: "1" };
	const chain = start(JSON.parse(only(dev, "CMD")) as string[], { cwd: place, env, user: {} });
	t.after(() => chain.child.kill("SIGKILL"));
	const told = await until("it says its settings", () => chain.said().endsWith("SLOT_SECONDS=1\n"), READY_MS);
	assert.equal(told, true);
	const { ETH_RPC_URL, BUILDERS = "[]" } = parseEnv(chain.said()) as Record<string, string>;
	assert.equal(ETH_RPC_URL, `http://127.0.0.1:${ports.CHAIN_PORT}`);
	const [builder] = JSON.parse(BUILDERS) as { url: string }[];
	assert.equal(builder?.url, `http://127.0.0.1:${ports.BUILDER_PORT}`);
	const node = new RelayClient(ETH_RPC_URL);
	await until("it builds blocks", async () => Number(await node.call("eth_blockNumber", [])) >= 1);
	chain.child.kill("SIGTERM");
	assert.deepEqual(await chain.ended(STOP_MS), [0, null], chain.said());
});

interface Started {
	readonly child: ChildProcess;
	/** What it has printed, on both. */
	said(): string;
	/** Code and signal. */
	ended(ms: number): Promise<readonly [number | null, NodeJS.Signals | null]>;
}

/** Empty: ourselves. */
type User = { readonly uid: number; readonly gid: number } | Record<string, never>;

/** Runs a command of the Dockerfile as node's, without a shell that stays. */
function start(
	[node, ...args]: readonly string[],
	{ cwd, env, user: by }: { cwd: string; env: Readonly<Record<string, string>>; user: User },
): Started {
	assert.equal(node, "node");
	const child = spawn("/bin/sh", ["-c", SUPERVISED, process.execPath, ...args], { cwd, env, ...by });
	child.stdin.on("error", () => {});
	child.once("exit", () => child.stdin.end("\n"));
	let said = "";
	for (const stream of [child.stdout, child.stderr]) {
		stream.setEncoding("utf8").on("data", (text: string) => {
			said += text;
		});
	}
	const ended = async (ms: number): ReturnType<Started["ended"]> => {
		await until("it ends", () => child.exitCode !== null || child.signalCode !== null, ms);
		return [child.exitCode, child.signalCode];
	};
	return { child, said: () => said, ended };
}

/** The HEALTHCHECK's command, run beside what it asks. */
function healthOf(env: Readonly<Record<string, string>>): SpawnSyncReturns<Buffer> {
	const words = /CMD (\[.*\])$/.exec(only(image, "HEALTHCHECK"))?.[1] ?? "[]";
	const [node, ...args] = JSON.parse(words) as string[];
	assert.equal(node, "node");
	return spawnSync(process.execPath, args, { cwd: app, env, ...user });
}

async function ready(url: string, { child, said }: Started): Promise<boolean> {
	if (child.exitCode !== null) throw new Error(`it ended at its start: ${said().slice(-2_000)}`);
	return (await readyStatus(url)) === 200;
}

/** What the image sets, with the folder in the place of its own, and none that could be written but that. */
function imageEnv(): Record<string, string> {
	return {
		...variables(image, { SOURCE_VERSION: COMMIT }),
		PATH,
		USER,
		HOME: app,
		TMPDIR: app,
		DATA_DIR: data,
	};
}

function copy(stage: ImageStage, to: string): void {
	for (const name of copied(stage)) cpSync(join(ROOT, name), join(to, name), { recursive: true });
}

/** The folders of what `npm ci --omit=dev` installs here. */
function productionPackages(): readonly string[] {
	const { packages } = JSON.parse(textOf("package-lock.json")) as {
		packages: Record<string, { readonly dev?: boolean }>;
	};
	return Object.entries(packages).flatMap(([name, { dev }]) =>
		name !== "" && dev !== true && existsSync(join(ROOT, name)) ? [name] : [],
	);
}

/** The image's user where we may become him and he may run node; else ourselves. */
function imageUser(): User {
	if (process.getuid?.() !== 0) return {};
	const [uid = 0, gid = 0] = only(image, "USER").split(":").map(Number);
	const canRun = spawnSync(process.execPath, ["--version"], { cwd: "/", uid, gid }).status === 0;
	return canRun ? { uid, gid } : {};
}
