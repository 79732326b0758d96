// The steps of the Dockerfile, performed in folders (its npm ci too), and what they make run as it
// runs it: by a user who may write nothing there. There is no container: what Docker itself does is
// not shown.

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
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
import { isInContext, perform } from "../../support/imageSteps.ts";
import { SUPERVISED } from "../../support/postgresServer.ts";
import { readyStatus } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/**
 * Time that Docker gives it: https://docs.docker.com/reference/cli/docker/container/stop/ with
 * compose.yaml's time.
 */
const STOP_MS = 60_000;
/** The commit that its build receives. */
const COMMIT = "ab".repeat(20);
const { USER = "", HOME = "", PATH = "" } = process.env;

const folder = mkdtempSync(join(tmpdir(), "leeward-image-"));
/** The image's /. */
const root = join(folder, "image");
const app = join(root, "app");
const data = join(root, "data");
const stages = imageStages();
const packages = stages.find(({ name }) => name === "packages") as ImageStage;
const image = stages.at(-1) as ImageStage;
const user = imageUser();
let system: ProcessSystem;

before(async () => {
	const built = join(folder, "packages");
	perform(packages, built, new Map());
	perform(image, root, new Map([["packages", built]]));
	execFileSync("chmod", ["-R", "a+rX,a-w", app]);
	execFileSync("chmod", ["a+rx", folder, root]);
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
	await until("it is ready", async () => ready(url, pair));
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
	// A package that a package of the product needs may be a dev package, too.
	const { packages } = JSON.parse(textOf("package-lock.json")) as {
		packages: Record<string, { readonly dev?: boolean }>;
	};
	const [dev, others] = [true, false].map((isDev) =>
		Object.keys(packages).filter((name) => name !== "" && (packages[name]?.dev === true) === isDev),
	) as [string[], string[]];
	assert.ok(dev.length > 50 && others.length > 50);
	for (const name of dev) assert.ok(!existsSync(join(app, name)), name);
	assert.ok(others.filter((name) => existsSync(join(app, name))).length > 50);
});

test("the image holds what is copied and nothing else, and the stores' folder is the user's alone", () => {
	const names = [
		"LICENSE",
		"boost-proxy",
		"node_modules",
		"package.json",
		"relay",
		"shared",
		"tsconfig.json",
	];
	assert.deepEqual(readdirSync(app).sort(), names);
	assert.equal(statSync(data).mode & 0o777, 0o700);
	const [uid] = only(image, "USER").split(":").map(Number);
	if (process.getuid?.() === 0) assert.equal(statSync(data).uid, uid);
});

test("what .dockerignore does not let through can't be copied", () => {
	for (const path of ["relay/main.ts", "package.json", "test/devnet/chain.ts"])
		assert.equal(isInContext(path), true, path);
	for (const path of [".env", ".git/HEAD", "node_modules/ws/index.js", "test/run.ts", "data/relay/data.mdb"])
		assert.equal(isInContext(path), false, path);
	const stage = { from: "", name: "", instructions: [{ name: "COPY", rest: ".env.example ./" }] };
	assert.throws(() => perform(stage, join(folder, "ignored"), new Map()), /\.env\.example is not there/);
});

test("the development image prints a relay's settings, serves it, and ends with 0", async (t) => {
	const dev = stages.find(({ name }) => name === "dev") as ImageStage;
	const place = join(folder, "dev");
	for (const name of copied(dev)) cpSync(join(ROOT, name), join(place, name), { recursive: true });
	symlinkSync(join(ROOT, "node_modules"), join(place, "node_modules"));
	const ports = { CHAIN_PORT: String(await freePort()), BUILDER_PORT: String(await freePort()) };
	const env = { PATH, HOME, TMPDIR: folder, ...ports, SLOT_SECONDS: "1" };
	const chain = start(JSON.parse(only(dev, "CMD")) as string[], { cwd: place, env, user: {} });
	t.after(() => chain.child.kill("SIGKILL"));
	const told = await until("it says its settings", () => chain.said().endsWith("SLOT_SECONDS=1\n"));
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
	/** Its output so far, on stdout and stderr. */
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

/** The image's environment, with our folder in the place of its own, the only one to write to. */
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

/** The image's user where we may become him and he may run node; else ourselves. */
function imageUser(): User {
	if (process.getuid?.() !== 0) return {};
	const [uid = 0, gid = 0] = only(image, "USER").split(":").map(Number);
	const canRun = spawnSync(process.execPath, ["--version"], { cwd: "/", uid, gid }).status === 0;
	return canRun ? { uid, gid } : {};
}
