// The start: a missing or bad setting is refused by name, with what was expected and an example,
// and no value is ever printed that could be a secret; `--help`, `--print-config` and `--version`;
// a node of another chain, ports and folders that are taken, and ports of their own for websockets
// and metrics.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { RELAY_SETTINGS, readRelayConfig } from "../../../relay/config.ts";
import { SettingError } from "../../../shared/config.ts";
import { commitOf, VERSION } from "../../../shared/version.ts";
import { freePort } from "../../devnet/freePort.ts";
import { startRelayHere } from "../../faults/world.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import { sized } from "../../support/length.ts";
import { type RelayProcess, readyStatus, runBoost, runRelay } from "../../support/processes.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";

const CURVE_ORDER = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
const BUILDER = { name: "a", url: "http://127.0.0.1:1" };
const GOOD = { ETH_RPC_URL: "http://127.0.0.1:1", BUILDERS: JSON.stringify([BUILDER]) };

/** Values that must be refused, by setting; null: the setting is left out. */
const BAD: Readonly<Record<keyof typeof RELAY_SETTINGS, readonly (string | null)[]>> = {
	PORT: ["http", "65536", "-1", "80.5", "0x50", "8080,8081"],
	// Whether it is an address of this machine only listening tells.
	HOST: [],
	SEARCHER_PORT: ["x", "70000"],
	METRICS_PORT: ["x", "70000"],
	METRICS_TOKEN: ["sécret", "a\nb"],
	ADMIN_TOKEN: ["sécret", "a\nb"],
	MAX_CONNECTIONS_PER_CLIENT: ["0", "10001", "many"],
	ETH_RPC_URL: [
		null,
		"",
		" ",
		"localhost:8545",
		"ws://127.0.0.1:8545",
		"file:///node",
		"http://u:100%@host/",
	],
	ETH_WS_URL: ["http://127.0.0.1:8545", "127.0.0.1"],
	BEACON_URL: ["ws://127.0.0.1:5052", "127.0.0.1:5052", "http://u:100%@host/"],
	PUBLIC_URL: [
		"relay.example",
		"ws://relay.example",
		"https://relay.example/path",
		"https://relay.example?a",
		"https://user@relay.example",
	],
	INTERNAL_URL: ["10.0.0.7:8080", "ws://10.0.0.7"],
	CANARY_KEY: ["0x12", `0x${"0".repeat(64)}`],
	CANARY_PER_DAY: ["0", "1441", "1.5", "many"],
	CORE_TIMEOUT_MS: ["199", "60001", "1s"],
	HEAD_POLL_MS: ["9", "60001", "1s"],
	ACCOUNT_TIMEOUT_MS: ["199", "60001", "1s"],
	CHAIN_ID: ["0", "mainnet", "0x1", "-5"],
	SLOT_MS: ["0", "249", "30001", "450.5", "450ms"],
	SLOT_SECONDS: ["0", "61", "1.5"],
	BUILDERS: [
		null,
		"",
		"[]",
		"{}",
		"[{",
		"no-such-file.json",
		"https://rpc.titanbuilder.xyz",
		builders({ url: undefined }),
		builders({ url: "http://builder.example/secretsecret" }),
		builders({ url: "http://127.0.0.1.builder.example" }),
		builders({ url: "builder" }),
		builders({ name: "" }),
		builders({ name: "a b" }),
		builders({ fullPrivcy: true }),
		builders({ fullPrivacy: "yes" }),
		builders({ dialect: "flashbots" }),
		builders({ cancel: "maybe" }),
		builders({ privateMethod: "eth_sendTransaction" }),
		builders({ maxRefundPercent: 101 }),
		builders({ refundGas: -1 }),
		JSON.stringify([BUILDER, BUILDER]),
	],
	SIGNING_KEY: ["secretsecret", `0x${"0".repeat(64)}`, CURVE_ORDER, "ab".repeat(32)],
	FEE_RECIPIENT: ["0x12", "vitalik.eth"],
	REFUND_PERCENT: ["101", "-1", "90%"],
	BIDS_PER_TARGET: ["3", "33", "all"],
	TX_TTL_BLOCKS: ["0", "1001"],
	DRAIN_SECONDS: ["-1", "301", "0.5", "20s"],
	SUBSCRIPTION_ALIASES: ["a,", "two words", "newHeads"],
	// Whether it is a folder only opening it tells: see dataFolder.test.ts.
	DATA_DIR: [],
	DATABASE_URL: [
		"db.example/relay",
		"mysql://user:secretsecret@db.example/relay",
		"postgres://user:secret%secret@db.example/relay",
	],
	DATABASE_VERIFY: ["yes", "1", "TRUE"],
	TRUST_PROXY: ["true", "11"],
	CANCEL_POLICY: ["anyone", "Origin"],
	// Any text will do.
	BOOST_SECRET: [],
	MAX_BODY_BYTES: ["10", "2MiB"],
	MAX_BATCH: ["0", "10001"],
	RATE_LIMIT_RPS: ["-1", "fast"],
	POOL_MAX_BYTES: ["33554431", "256MiB"],
	MAX_HEAD_AGE_S: ["0", "86401"],
	SIGNATURE_THREAD: ["yes", "1"],
	SIGNATURE_HIDING: ["never", "Always"],
	EXPLORER_URL: ["etherscan.io", "ftp://etherscan.io", "https://key@etherscan.io", "https://etherscan.io/?a"],
	PUBLIC_STATS: ["no", "0"],
	OTEL_EXPORTER_OTLP_ENDPOINT: ["127.0.0.1:4318", "grpc://127.0.0.1:4317"],
	OTEL_EXPORTER_OTLP_HEADERS: ["secretsecret", "a b=secretsecret", "authorization=%secretsecret"],
	OTEL_SERVICE_NAME: ["caf\u00e9"],
	OTEL_TRACES_SAMPLER: ["on", "parentbased_jaeger_remote"],
	OTEL_TRACES_SAMPLER_ARG: ["1.1", "-1", "10%"],
	LOG_LEVEL: ["verbose", "INFO"],
};

for (const [name, values] of Object.entries(BAD)) {
	if (values.length === 0) continue;
	test(`${name}: each bad value is refused by name, with what was expected and an example`, () => {
		for (const value of values) {
			assert.throws(
				() => readRelayConfig(environment(name, value)),
				(thrown) => {
					assert.ok(thrown instanceof SettingError, `${value}: ${String(thrown)}`);
					assert.match(thrown.message, refusalOf(name));
					assert.doesNotMatch(thrown.message, /secretsecret/);
					return true;
				},
				`${name}=${value} was taken`,
			);
		}
	});
}

test("BUILDERS that is misspelt gets its hint: the list, or the file that was meant", (t) => {
	const at = mkdtempSync(join(tmpdir(), "leeward-builders-"));
	t.after(() => rmSync(at, { recursive: true }));
	const file = join(at, "builders.json");
	writeFileSync(file, "[]");
	for (const [value, hint] of [
		["mainet", ": did you mean mainnet?"],
		["Mainnet", ": did you mean mainnet?"],
		[join(at, "buildres.json"), `: did you mean ${file}?`],
		[join(at, "other.json"), ""],
		[join(at, "none", "builders.json"), ""],
		["https://user:secretsecret@rpc.titanbuilder.xyz", ""],
	] as const) {
		assert.throws(
			() => readRelayConfig(environment("BUILDERS", value)),
			({ message }: Error) =>
				message.startsWith(`BUILDERS is not valid (the file can't be read${hint}): expected `),
			value,
		);
	}
});

/** Refused settings, with a value or null if missing, to test output and exit code. */
const REFUSED: readonly (readonly [string, string | null])[] = [
	["SIGNING_KEY", "secretsecret"],
	...sized([], [["ETH_RPC_URL", null] as const]),
];

const MASKED = {
	ETH_RPC_URL: "HTTPS://user:secretsecret@Node.example/v2/secretsecret",
	ETH_WS_URL: "wss://u:secretsecret,it's@ws.example:8546/secretsecret?key=secretsecret",
	BUILDERS: builders({ url: "https://u:secretsecret,it's@builder.example/secretsecret" }),
	SIGNING_KEY: `0x${"5e".repeat(32)}`,
	CANARY_KEY: `0x${"5e".repeat(32)}`,
	BOOST_SECRET: "secretsecret",
	DATABASE_URL: "postgres://user:secretsecret@db.example/relay",
	TX_TTL_BLOCKS: "7",
};

for (const [name, value] of REFUSED) {
	test(`the process ends with 1 and one line on stderr for ${name}=${value ?? "(missing)"}`, async () => {
		const { code, stdout, stderr } = await runRelay({ env: environment(name, value) });
		assert.deepEqual([code, stdout], [1, ""]);
		assert.match(stderr, /^relay: [^\n]+\n$/);
		assert.match(stderr.slice("relay: ".length).trimEnd(), refusalOf(name));
		assert.doesNotMatch(stderr, /secretsecret/);
	});
}

test("--help needs no setting and lists all: purpose, expected value, example", async () => {
	const { code, stdout, stderr } = await runRelay({ env: {}, args: ["--help"] });
	assert.deepEqual([code, stderr], [0, ""]);
	for (const [name, row] of Object.entries(RELAY_SETTINGS)) {
		const at = stdout.indexOf(`  ${name}\n`);
		assert.ok(at > 0, `${name} is missing`);
		const entry = stdout.slice(at, stdout.indexOf("\n  ", stdout.indexOf("e.g.", at)));
		for (const part of [row.help, row.expects, row.example])
			assert.ok(entry.includes(part), `${name}: ${part}`);
	}
	assert.match(stdout, /--print-config/);
});

test("--print-config prints the settings in force without secrets: keys, and user, path and query of URLs", async () => {
	const { code, stdout, stderr } = await runRelay({ env: MASKED, args: ["--print-config"] });
	assert.deepEqual([code, stderr], [0, ""]);
	const rows = new Map(
		stdout
			.trimEnd()
			.split("\n")
			.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
	);
	assert.deepEqual([...rows.keys()], Object.keys(RELAY_SETTINGS));
	assert.equal(rows.get("TX_TTL_BLOCKS"), "7");
	assert.equal(rows.get("MAX_BATCH"), RELAY_SETTINGS.MAX_BATCH.default);
	assert.doesNotMatch(stdout, /secretsecret|5e5e|it's|user/);
	for (const [name, host] of [
		["ETH_RPC_URL", "node.example"],
		["ETH_WS_URL", "ws.example:8546"],
		["BUILDERS", "builder.example"],
	] as const) {
		assert.ok(rows.get(name)?.toLowerCase().includes(host), `${name} does not tell its host`);
	}
});

test("--version prints the version and the commit, which /info has, too", async () => {
	const commit = commitOf({});
	const SOURCE_VERSION = "ab".repeat(20);
	for (const program of sized([runRelay], [runRelay, runBoost])) {
		const { code, stdout } = await program({ env: { SOURCE_VERSION }, args: ["--version"] });
		const expected = commit === "unknown" ? SOURCE_VERSION : commit;
		assert.deepEqual([code, stdout], [0, `${VERSION} (commit ${expected})\n`]);
	}
	const info = (await (await fetch(`${running.url}/info`)).json()) as Record<string, unknown>;
	assert.deepEqual([info.version, info.commit], [VERSION, commit]);
});

test("an unknown option is refused", async () => {
	const { code, stdout, stderr } = await runRelay({ env: GOOD, args: ["--halp", "secretsecret"] });
	assert.deepEqual([code, stdout], [1, ""]);
	assert.equal(
		stderr,
		"relay: unknown option --halp: expected --help, --print-config, --version, --salvage\n",
	);
});

function builders(over: Readonly<Record<string, unknown>>): string {
	return JSON.stringify([{ ...BUILDER, ...over }]);
}

function environment(name: string, value: string | null): Record<string, string> {
	const env: Record<string, string> = { ...GOOD };
	if (value === null) delete env[name];
	else env[name] = value;
	return env;
}

function refusalOf(name: string): RegExp {
	return new RegExp(`^${name} is (missing|not valid).*: expected .+, for example ${name}=`);
}

let system: ProcessSystem;
/** Its data folder, and its ports for websockets and metrics. */
const own = { data: "", searchers: 0, metrics: 0 };
let running: RelayProcess;
before(async () => {
	system = await startProcessSystem();
	const file = join(system.folder, "builders.json");
	writeFileSync(file, system.env.BUILDERS ?? "");
	own.data = join(system.folder, "running");
	mkdirSync(own.data);
	[own.searchers, own.metrics] = [await freePort(), await freePort()];
	running = await system.start({
		...IN_FOLDER,
		DATA_DIR: own.data,
		BUILDERS: file,
		CHAIN_ID: "31337",
		SEARCHER_PORT: String(own.searchers),
		METRICS_PORT: String(own.metrics),
	});
});
after(() => system.stop());

test("a node of CHAIN_ID is accepted, and one of another chain refused at once", async () => {
	const ETH_RPC_URL = system.chain.url.replace("//", "//user:secretsecret@");
	const env = { ...system.env, ...folder("chain"), CHAIN_ID: "1", ETH_RPC_URL };
	const { code, stdout, stderr } = await runRelay({ env });
	assert.equal(code, 1);
	assert.doesNotMatch(`${stderr}${stdout}`, /secretsecret/);
	assert.match(stderr, /^relay: [^\n]*31337[^\n]*CHAIN_ID[^\n]*\b1\b[^\n]*\n$/);
	assert.equal(await running.client.call("eth_chainId", []), "0x7a69");
});

test("a taken port is named, with the setting that changes it", async () => {
	const taken = String(running.port);
	// takenPorts.test.ts has the others.
	for (const name of sized(["PORT", "METRICS_PORT"], ["PORT", "METRICS_PORT", "SEARCHER_PORT"])) {
		const own = await freePort();
		const { code, message } = await refusal({ ...folder("port"), PORT: String(own), [name]: taken });
		assert.equal(await opened(`ws://127.0.0.1:${own}`), `connect ECONNREFUSED 127.0.0.1:${own}`);
		assert.equal(code, "LISTEN");
		assert.match(message, /^[^\n]+$/);
		assert.match(message, new RegExp(`\\b${name}\\b`), name);
		assert.match(message, new RegExp(`\\b${taken}\\b`), name);
	}
	assert.equal(await readyStatus(running.url), 200);
});

test("an address of another machine is refused, with the name of the setting", async () => {
	for (const HOST of sized(["192.0.2.1"], ["192.0.2.1", "no host at all"])) {
		const { code, message } = await refusal({ ...folder("host"), HOST });
		assert.equal(code, "LISTEN");
		assert.match(message, /^HOST is not valid[^\n]*: expected [^\n]+, for example HOST=[^\n]*$/);
	}
});

test("BUILDERS may be a file; websockets and metrics move to ports of their own; the store is its owner's", async () => {
	const { data, searchers, metrics } = own;
	assert.equal(await opened(`ws://127.0.0.1:${searchers}/fast`), "open");
	assert.notEqual(await opened(`ws://127.0.0.1:${running.port}/fast`), "open");
	assert.equal((await fetch(`http://127.0.0.1:${searchers}/`)).status, 200, "what balancers ask");
	const [feed, history] = ["/mev-share", "/mev-share/api/v1/history/info"];
	const feedStatus = async (port: number) => {
		const stream = await EventStreamReader.open(`http://127.0.0.1:${port}${feed}`);
		stream.leave();
		return stream.status;
	};
	assert.deepEqual([await feedStatus(searchers), await feedStatus(running.port)], [200, 404]);
	assert.equal((await fetch(`http://127.0.0.1:${searchers}${history}`)).status, 200);
	assert.match(await metricsOf(`http://127.0.0.1:${metrics}`), /^relay_head_number \d+$/m);
	assert.equal((await fetch(`${running.url}/metrics`)).status, 404);
	assert.equal(statSync(join(data, "relay")).mode & 0o777, 0o700);
});

test("the log at the start says whether the native code is loaded", () => {
	const lines = running.logs().filter(({ msg }) => msg.includes("native code"));
	assert.deepEqual(lines.map(({ task, native }) => `${task} ${native}`).sort(), [
		"keccak true",
		"kzg true",
		"secp256k1 true",
	]);
});

/** Why a relay, here in the test's process, does not start. */
async function refusal(env: Readonly<Record<string, string>>): Promise<{ code: unknown; message: string }> {
	const thrown = await startRelayHere({ ...system.env, ...env }).then(
		() => assert.fail("it started"),
		(reason) => reason,
	);
	return { code: thrown.code, message: thrown.message };
}

function folder(name: string): { DATA_DIR: string } {
	return { DATA_DIR: join(system.folder, name) };
}

/** "open", or how it was refused. */
function opened(url: string): Promise<string> {
	return new Promise((resolve) => {
		const socket = new WebSocket(url);
		socket.once("open", () => {
			socket.terminate();
			resolve("open");
		});
		socket.once("error", (error) => resolve(error.message));
	});
}
