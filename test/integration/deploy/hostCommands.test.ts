// Runs the commands of docs/deploy.md in a shell, with fakes of the hosts' programs that record
// their arguments. The settings among these must be accepted by relay and boost.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
	chmodSync,
	copyFileSync,
	existsSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseEnv } from "node:util";
import { readBoostConfig } from "../../../boost-proxy/config.ts";
import { pairEnvironments } from "../../../boost-proxy/supervisor.ts";
import { readRelayConfig } from "../../../relay/config.ts";
import { commitOf } from "../../../shared/version.ts";
import { ALL_SETTINGS as SETTINGS } from "../../support/deploySettings.ts";
import {
	compose,
	flyToml,
	imageStages,
	only,
	ROOT,
	snippet,
	snippets,
	textOf,
	variables,
} from "../../support/documents.ts";
import { KUBERNETES, manifests } from "../../support/kubernetes.ts";

const PROGRAMS = ["heroku", "fly", "docker", "kubectl", "git", "curl", "vi"];
/** Heroku adds a random part to an app's address. */
const WEB = "https://my-leeward-0a1b2c3d4e5f.herokuapp.com/";
const COMMIT = "ab".repeat(20);
/** Records name and arguments with separator bytes, and prints what Heroku prints for an app. */
const NOTES = `#!/bin/sh
{ printf '%s' "\${0##*/}"; printf '\\037%s' "$@"; printf '\\036'; } >> "$CALLS"
case "$*" in
apps:info*--shell*) printf 'addons=\\nweb_url=${WEB}\\n' ;;
"rev-parse HEAD") printf '${COMMIT}\\n' ;;
esac
`;
const RANDOM = `#!/bin/sh
[ "$1 $2" = "rand -hex" ] && head -c "$3" /dev/urandom | od -An -v -tx1 | tr -d ' \\n'
`;

/** The effects of a block of commands. */
interface Run {
	/** Name and arguments of each program, in order. */
	readonly calls: readonly (readonly string[])[];
	/** The .env that it writes, if any. */
	readonly env: Readonly<Record<string, string>>;
}

/** Those of machines of one's own, which systemd.test.ts and backups.nightly.ts run. */
const OTHERS = /^(cd \/opt|sudo|pg_dump|FROM=)/;

const folders: string[] = [];
after(() => {
	for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function run(block: string): Promise<Run> {
	const text = block
		.replaceAll("https://…", "https://node.example")
		.replaceAll("postgresql://…@direct.…", "postgresql://fly-user:secret@direct.0a1b");
	assert.doesNotMatch(text, /…/);
	const folder = mkdtempSync(join(tmpdir(), "leeward-host-"));
	folders.push(folder);
	copyFileSync(join(ROOT, ".env.example"), join(folder, ".env.example"));
	symlinkSync(join(ROOT, "docs"), join(folder, "docs"));
	const programs = [...PROGRAMS.map((name) => [name, NOTES] as const), ["openssl", RANDOM] as const];
	for (const [name, script] of programs) {
		writeFileSync(join(folder, name), script);
		chmodSync(join(folder, name), 0o755);
	}
	const calls = join(folder, "calls");
	const env = { PATH: `${folder}:${process.env.PATH}`, CALLS: calls };
	return new Promise((resolve, reject) => {
		execFile("/bin/sh", ["-euc", text], { cwd: folder, env }, (error, _, stderr) => {
			if (error !== null || stderr !== "") return reject(error ?? new Error(stderr));
			const made = join(folder, ".env");
			resolve({
				calls: readFileSync(calls, "utf8")
					.split("\x1e")
					.slice(0, -1)
					.map((call) => call.split("\x1f")),
				env: existsSync(made) ? (parseEnv(readFileSync(made, "utf8")) as Record<string, string>) : {},
			});
		});
	});
}

const runs = new Map<string, Run>();
before(async () => {
	await Promise.all(
		snippets("docs/deploy.md", "sh")
			.filter((block) => !OTHERS.test(block))
			.map(async (block) => {
				runs.set(block, await run(block));
			}),
	);
});

function runOf(block: string): Run {
	const found = runs.get(block);
	assert.ok(found !== undefined, block);
	return found;
}

/** The calls that begin with `start`, without that beginning. */
function callsOf({ calls }: Run, ...start: readonly string[]): readonly (readonly string[])[] {
	return calls
		.filter((call) => start.every((arg, i) => call[i] === arg))
		.map((call) => call.slice(start.length));
}

/** The settings in the arguments of a call. */
function setBy(call: readonly string[] = []): Record<string, string> {
	const pairs = call.map((arg) => /^([A-Z][A-Z0-9_]*)=(.*)$/s.exec(arg)?.slice(1) ?? []);
	return Object.fromEntries(pairs.filter(([name]) => name !== undefined));
}

/** Without the host's own variables and the database. */
function taken({ PROCESS: _, DATABASE_URL: __, POSTGRES_PASSWORD: ___, ...env }: Record<string, string>) {
	return env;
}

/** The argument after `name`. */
function option(call: readonly string[], name: string): string | undefined {
	return call.includes(name) ? call[call.indexOf(name) + 1] : undefined;
}

test("each variable that is set is a setting, and each named file exists", () => {
	for (const one of runs.values()) {
		const calls = [...callsOf(one, "heroku", "config:set"), ...callsOf(one, "fly", "secrets", "set")];
		for (const call of calls) {
			assert.ok(Object.keys(setBy(call)).length > 1, call.join(" "));
			for (const name of Object.keys(setBy(call))) assert.ok(name === "PROCESS" || name in SETTINGS, name);
		}
		for (const call of callsOf(one, "fly", "deploy")) {
			const file = option(call, "-c") ?? option(call, "--config") ?? "fly.toml";
			assert.ok(existsSync(join(ROOT, file)), file);
		}
		for (const call of callsOf(one, "docker", "compose")) {
			const profile = option(call, "--profile");
			assert.equal(compose().services.chain?.profiles?.includes(profile ?? "dev"), true, profile);
		}
		for (const [address = ""] of callsOf(one, "curl")) assert.equal(new URL(address).pathname, "/readyz");
	}
});

test("the image receives its commit by the argument that the Dockerfile has", () => {
	const one = runOf(snippet("docs/deploy.md", "docker build --build-arg"));
	const [build = []] = callsOf(one, "docker", "build");
	const [name = "", value] = option(build, "--build-arg")?.split("=") ?? [];
	assert.equal(value, COMMIT);
	const image = imageStages().at(-1);
	assert.ok(image !== undefined);
	assert.equal(only(image, "ARG"), name);
	assert.deepEqual(commitOf(variables(image, { [name]: COMMIT }), "/no such folder"), COMMIT);
	for (const { build } of [compose().services.relay, compose().services.boost].map((found) => found ?? {}))
		assert.deepEqual(build, { context: ".", args: { [name]: null } });
});

test("Heroku, one app: the pair accepts its settings, and its address is checked", () => {
	const one = runOf(snippet("docs/deploy.md", "heroku create my-leeward\n"));
	const [set, ...others] = callsOf(one, "heroku", "config:set").map(setBy);
	assert.deepEqual(others, []);
	assert.equal(readRelayConfig(taken(set ?? {})).TRUST_PROXY, 1);
	const made = { RELAY_URL: "http://127.0.0.1:1", BOOST_SECRET: "made by the pair" };
	assert.notEqual(readBoostConfig({ ...taken(set ?? {}), ...made }).fallback, null);
	assert.deepEqual(callsOf(one, "curl"), [[`${WEB}readyz`]]);
});

test("Heroku, two apps: each accepts its settings, and they share secret and address", () => {
	const one = runOf(snippet("docs/deploy.md", "heroku create my-leeward-relay"));
	const [relay = {}, boost = {}] = callsOf(one, "heroku", "config:set").map(setBy);
	assert.deepEqual([relay.PROCESS, boost.PROCESS], ["relay", "boost"]);
	const { BOOST_SECRET } = readRelayConfig(taken(relay));
	assert.match(BOOST_SECRET ?? "", /^[0-9a-f]{64}$/);
	const config = readBoostConfig(taken(boost));
	assert.deepEqual([config.BOOST_SECRET, `${config.RELAY_URL}/`], [BOOST_SECRET, WEB]);
	const [asked = []] = callsOf(one, "heroku", "apps:info");
	assert.equal(option(asked, "-a"), "my-leeward-relay");
});

test("Fly: both accept the settings and fly.toml, with the relay's address for boost", () => {
	const one = runOf(snippet("docs/deploy.md", "fly apps create my-leeward\nfly mpg"));
	const { env, checks, processes } = flyToml() as {
		env: Record<string, string>;
		checks: { relay: { port: number } };
		processes: Record<string, string>;
	};
	const [set = {}] = callsOf(one, "fly", "secrets", "set").map(setBy);
	assert.match(set.DATABASE_URL ?? "", /@direct\./);
	const given = { ...env, ...taken(set) };
	assert.notEqual(readRelayConfig(given).SIGNING_KEY, undefined);
	const [[app = ""] = []] = callsOf(one, "fly", "apps", "create");
	assert.equal(readBoostConfig(given).RELAY_URL, `http://relay.process.${app}.internal:${checks.relay.port}`);
	for (const call of callsOf(one, "fly").filter((call) => call.includes("-a"))) {
		assert.equal(option(call, "-a"), app);
	}
	assert.deepEqual(callsOf(one, "curl"), [[`https://${app}.fly.dev/readyz`]]);
	// Every process group of fly.toml, several machines of each.
	const [scale = []] = callsOf(one, "fly", "scale", "count");
	const counts = scale.flatMap((arg) => (/^(\w+)=([2-9])$/.test(arg) ? [arg.split("=")[0]] : []));
	assert.deepEqual(counts, Object.keys(processes));
});

test("Fly with a volume: the pair accepts the settings and its file, on the checked ports", () => {
	const one = runOf(snippet("docs/deploy.md", "fly apps create my-leeward\nfly secrets"));
	const [set = {}, ...others] = callsOf(one, "fly", "secrets", "set").map(setBy);
	assert.deepEqual(others, []);
	assert.ok(!("DATABASE_URL" in set));
	const [deploy = []] = callsOf(one, "fly", "deploy");
	assert.ok(deploy.includes("--ha=false"));
	const file = flyToml(textOf(option(deploy, "-c") ?? "")) as {
		env: Record<string, string>;
		http_service: { internal_port: number };
		checks: { web: { port: number } };
	};
	const given = { ...file.env, ...taken(set) };
	const { relay, boost } = pairEnvironments(given, { relayPort: 1, secret: "s" });
	const settings = readBoostConfig(boost as Record<string, string>);
	assert.deepEqual(
		[file.http_service.internal_port, file.checks.web.port, settings.HOST, settings.TRUST_PROXY],
		[settings.PORT, settings.PORT, "::", 2],
	);
	const { DATA_DIR, HOST } = readRelayConfig(relay as Record<string, string>);
	assert.deepEqual([DATA_DIR, HOST], ["/data", "127.0.0.1"]);
	const [[app = ""] = []] = callsOf(one, "fly", "apps", "create");
	assert.deepEqual(callsOf(one, "curl"), [[`https://${app}.fly.dev/readyz`]]);
});

test("containers: empty values of .env.example are generated, and relay and boost accept the result", () => {
	const one = runOf(snippet("docs/deploy.md", "sed "));
	const open = [...textOf(".env.example").matchAll(/^([A-Z_]+)=$/gm)].map(([, name = ""]) => name);
	assert.ok(open.length > 0);
	for (const name of open) assert.match(one.env[name] ?? "", /^[0-9a-f]{48,64}$/, name);
	assert.equal(readRelayConfig(taken({ ...one.env })).BOOST_SECRET, one.env.BOOST_SECRET);
	assert.notEqual(
		readBoostConfig({ ...taken({ ...one.env }), RELAY_URL: "http://relay:8080" }).fallback,
		null,
	);
	assert.deepEqual(callsOf(one, "vi"), [[".env"]]);
	const [[address = ""] = []] = callsOf(one, "curl");
	const { port } = new URL(address);
	assert.ok(compose().services.balancer?.ports?.includes(`${port}:${port}`));
});

test("the dev profile: one relay, in whose network the chain is, and relay and boost accept the settings", () => {
	const one = runOf(snippet("docs/deploy.md", "cat > .env"));
	assert.equal(compose().services.chain?.network_mode, "service:relay");
	const { RELAYS, ...env } = one.env;
	assert.equal(RELAYS, "1");
	assert.equal(readRelayConfig(taken(env)).ETH_RPC_URL, "http://127.0.0.1:8545");
	assert.equal(readBoostConfig({ ...taken(env), RELAY_URL: "http://relay:8080" }).fallback, null);
});

test("Kubernetes: every manifest is edited and applied, in a namespace that is made before, and all pods are waited for", () => {
	const one = runOf(snippet("docs/deploy.md", "docker build -t registry"));
	const [[, built] = []] = callsOf(one, "docker", "build");
	assert.deepEqual(callsOf(one, "docker", "push"), [[built]]);
	const files = readdirSync(join(ROOT, KUBERNETES)).sort();
	const [edited = []] = callsOf(one, "vi");
	assert.deepEqual(
		edited.map((path) => path.split("/").at(-1)),
		files,
	);
	const [[namespace = ""] = []] = callsOf(one, "kubectl", "create", "namespace");
	const [create, ...others] = callsOf(one, "kubectl");
	assert.equal(create?.[0], "create");
	for (const call of others) assert.equal(option(call, "-n"), namespace);
	assert.equal(`${option(others[0] ?? [], "-f")}/${files[0]}`, edited[0]);
	const deployments = manifests().filter(({ kind }) => kind === "Deployment");
	assert.deepEqual(
		others[1]?.filter((arg) => arg.startsWith("deployment/")).sort(),
		deployments.map(({ metadata }) => `deployment/${metadata.name}`).sort(),
	);
});
