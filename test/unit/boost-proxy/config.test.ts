// Boost's settings: documented defaults, refused values and contradictions, what a dialect implies
// for a fallback.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	BOOST_SETTINGS,
	readBoostConfig,
	sameUpstream,
	sameUpstreamWarning,
	startWarnings,
	unfitPaths,
} from "../../../boost-proxy/config.ts";
import { SettingError } from "../../../shared/config.ts";
import { ManualClock } from "../../support/manualClock.ts";

type Name = keyof typeof BOOST_SETTINGS;

const BOOST_SECRET = "shared by both";
const NEEDED = { RELAY_URL: "http://127.0.0.1:8080", FALLBACK_URL: "https://rpc.example", BOOST_SECRET };

test("every optional setting has its documented default", () => {
	assert.deepEqual(readBoostConfig(NEEDED), {
		...{ PORT: 8081, HOST: "0.0.0.0", METRICS_PORT: undefined, RELAY_URL: "http://127.0.0.1:8080" },
		...{ BOOST_SECRET, FALLBACK_URL: "https://rpc.example", FALLBACK_FAST_URL: undefined },
		...{ FALLBACK_NOREVERTS_URL: undefined, FALLBACK_STATUS_URL: undefined, FALLBACK_DIALECT: "mevblocker" },
		...{ FALLBACK_PRIVATE: undefined, FALLBACK_REVERT_PROTECTED: undefined, ETH_RPC_URL: undefined },
		...{
			DATA_DIR: "./data",
			DATABASE_URL: undefined,
			DATABASE_VERIFY: false,
			TX_TTL_BLOCKS: 25,
			SLOT_MS: undefined,
			SLOT_SECONDS: undefined,
			TRUST_PROXY: 0,
		},
		...{ ADMIN_TOKEN: undefined, REQUEST_BUDGET_MS: 10_000, MAX_BODY_BYTES: 2_097_152, MAX_BATCH: 1_000 },
		...{ MAX_CONNECTIONS_PER_CLIENT: 256, METRICS_TOKEN: undefined },
		...{ RATE_LIMIT_RPS: 100, BREAKER_FAULTS: 3, BREAKER_STORM: 5, BREAKER_HOLD_MS: 2_000 },
		...{ BREAKER_HOLD_MAX_MS: 60_000, PROBE_INTERVAL_MS: 1_000, PROBE_TIMEOUT_MS: 500, PROBE_SUCCESSES: 3 },
		...{
			MAX_HEAD_LAG: 3,
			SIGNATURE_HIDING: "always",
			EXPLORER_URL: undefined,
			PUBLIC_STATS: true,
			DRAIN_SECONDS: 20,
			LOG_LEVEL: "info",
		},
		...{ OTEL_EXPORTER_OTLP_ENDPOINT: undefined, OTEL_EXPORTER_OTLP_HEADERS: undefined },
		...{ OTEL_SERVICE_NAME: "leeward-boost", OTEL_TRACES_SAMPLER: "parentbased_always_on" },
		OTEL_TRACES_SAMPLER_ARG: 1,
		fallback: {
			...{ dialect: "mevblocker", baseUrl: "https://rpc.example", statusUrl: null },
			...{ wholeUrls: { fast: null, noreverts: null }, isPrivate: true, isRevertProtected: true },
		},
	});
});

const MARK = "s3cret";
const UNSAFE = ["http://rpc.example", "http://127.0.0.1.rpc.example", "http://8.8.8.8", "http://fallback"];
const BAD_URLS = ["rpc.example", "ws://rpc.example", "https://", `https://u:100%@${MARK}/`, MARK];
const BAD: Readonly<Record<Name, readonly string[]>> = {
	...{ PORT: ["65536", "-1", MARK], METRICS_PORT: ["65536", MARK] },
	...{ HOST: [], DATA_DIR: [] },
	RELAY_URL: [...BAD_URLS, `http://relay/?key=${MARK}`, `http://relay/#${MARK}`],
	BOOST_SECRET: [`${MARK}\u00e9`, `${MARK}\nX-Other: 1`],
	FALLBACK_URL: [...BAD_URLS, ...UNSAFE, "None", "null", `https://rpc.example/#${MARK}`],
	FALLBACK_FAST_URL: [...BAD_URLS, ...UNSAFE, "none"],
	FALLBACK_NOREVERTS_URL: [...BAD_URLS, ...UNSAFE, "none"],
	FALLBACK_STATUS_URL: [...BAD_URLS, ...UNSAFE],
	FALLBACK_DIALECT: ["Flashbots", "protect", MARK],
	...{ FALLBACK_PRIVATE: ["yes", "1", "True", MARK], FALLBACK_REVERT_PROTECTED: ["no", "0", MARK] },
	ETH_RPC_URL: ["ws://127.0.0.1", "127.0.0.1:8545", MARK],
	DATABASE_URL: [`mysql://u:${MARK}@db/x`, `postgres://u:${MARK}%@db/x`, MARK],
	DATABASE_VERIFY: ["yes", "1", MARK],
	...{
		TX_TTL_BLOCKS: ["0", "1001"],
		SLOT_MS: ["0", "249", "30001", "450ms"],
		SLOT_SECONDS: ["0", "61"],
		TRUST_PROXY: ["true", "11"],
	},
	...{ ADMIN_TOKEN: [`${MARK}\u00e9`], METRICS_TOKEN: [`${MARK}\u00e9`] },
	MAX_CONNECTIONS_PER_CLIENT: ["0", "10001", MARK],
	REQUEST_BUDGET_MS: ["99", "60001", "10s"],
	...{ MAX_BODY_BYTES: ["1023", "2MiB"], MAX_BATCH: ["0"], RATE_LIMIT_RPS: ["-1"] },
	...{ BREAKER_FAULTS: ["0", "101"], BREAKER_STORM: ["0", "1001"], PROBE_SUCCESSES: ["0", "101"] },
	...{ BREAKER_HOLD_MS: ["4", "2s"], BREAKER_HOLD_MAX_MS: ["4", "2s"], MAX_HEAD_LAG: ["0", "1001"] },
	...{ PROBE_INTERVAL_MS: ["4", "1s"], PROBE_TIMEOUT_MS: ["4", "60001"], LOG_LEVEL: ["Info", MARK] },
	...{ EXPLORER_URL: ["etherscan.io", "https://key@etherscan.io", "https://etherscan.io/?a", MARK] },
	...{ OTEL_EXPORTER_OTLP_ENDPOINT: ["127.0.0.1:4318", MARK], OTEL_SERVICE_NAME: [`${MARK}\u00e9`] },
	OTEL_EXPORTER_OTLP_HEADERS: [MARK, `a b=${MARK}`, `authorization=%${MARK}`],
	...{ OTEL_TRACES_SAMPLER: ["on", MARK], OTEL_TRACES_SAMPLER_ARG: ["1.1", "-1", MARK] },
	...{
		PUBLIC_STATS: ["no", "0", MARK],
		SIGNATURE_HIDING: ["never", MARK],
		DRAIN_SECONDS: ["-1", "301", "0.5", MARK],
	},
};

test("each bad value is refused by name, with what was expected and an example", () => {
	for (const [name, values] of Object.entries(BAD)) {
		for (const value of values) {
			const read = () => readBoostConfig({ ...NEEDED, [name]: value });
			assert.throws(read, refusing(name as Name, "is not valid"), `${name}=${value}`);
		}
	}
});

/** Settings that are missing, or that contradict another one. */
const WRONG: readonly (readonly [Readonly<Record<string, string>>, Name, string])[] = [
	[{ BOOST_SECRET, FALLBACK_URL: "none" }, "RELAY_URL", "is missing"],
	[{ BOOST_SECRET, RELAY_URL: "http://r" }, "FALLBACK_URL", "is missing"],
	[{ BOOST_SECRET, RELAY_URL: "http://r", FALLBACK_DIALECT: "plain" }, "FALLBACK_URL", "is missing"],
	...[
		"http://relay.example",
		"https://relay.example/base",
		"http://127.0.0.1:8080",
		"http://relay.internal",
	].map((RELAY_URL) => [{ ...NEEDED, RELAY_URL, BOOST_SECRET: "" }, "BOOST_SECRET", "is missing"] as const),
	[{ ...NEEDED, BOOST_SECRET: " " }, "BOOST_SECRET", "is missing"],
	[
		{ BOOST_SECRET, RELAY_URL: "http://r", FALLBACK_URL: "none", FALLBACK_FAST_URL: "https://f" },
		"FALLBACK_URL",
		"is none beside FALLBACK_FAST_URL or FALLBACK_NOREVERTS_URL",
	],
	[
		{ ...NEEDED, SLOT_MS: "450", SLOT_SECONDS: "12" },
		"SLOT_MS",
		"is 450 beside SLOT_SECONDS=12, which is 12000: set one of them",
	],
	[{ ...NEEDED, BREAKER_HOLD_MS: "60001" }, "BREAKER_HOLD_MAX_MS", "is below BREAKER_HOLD_MS"],
];
for (const [env, name, problem] of WRONG) {
	test(`${JSON.stringify(env)}: ${name} ${problem}`, () => {
		assert.throws(() => readBoostConfig(env), refusing(name, problem));
	});
}

test("http is allowed in private networks, and to our own relay anywhere", () => {
	for (const FALLBACK_URL of [
		...[
			"http://127.0.0.1:8082",
			"http://localhost:1",
			"http://[::1]:8082",
			"http://10.1.2.3",
			"http://172.16.0.1",
		],
		...[
			"http://172.31.255.255",
			"http://192.168.1.1",
			"http://169.254.0.1",
			"http://[fdaa::3]",
			"http://[fe80::1]",
		],
		...["http://relay.process.my-app.internal:8080", "http://my-app.flycast", "http://a.localhost"],
	]) {
		assert.equal(readBoostConfig({ ...NEEDED, FALLBACK_URL }).fallback?.baseUrl, FALLBACK_URL, FALLBACK_URL);
	}
	for (const FALLBACK_URL of [
		...[
			"http://172.15.0.1",
			"http://172.32.0.1",
			"http://192.169.1.1",
			"http://11.0.0.1",
			"http://[2001:db8::1]",
		],
		...[
			"http://[fe00::1]",
			"http://xinternal",
			"http://internal.example",
			"http://fd00.example",
			"http://100.64.0.1",
		],
	]) {
		assert.throws(() => readBoostConfig({ ...NEEDED, FALLBACK_URL }), SettingError, FALLBACK_URL);
	}
	const { RELAY_URL } = readBoostConfig({ ...NEEDED, RELAY_URL: "http://relay.example/base//" });
	assert.equal(RELAY_URL, "http://relay.example/base");
});

test("whole URLs are used unchanged, with or without a base", () => {
	const FALLBACK_FAST_URL = "https://rpc.example/fast/?key=1";
	const only = readBoostConfig({
		...{ BOOST_SECRET, RELAY_URL: "http://r" },
		...{ FALLBACK_FAST_URL, FALLBACK_DIALECT: "flashbots" },
	});
	assert.deepEqual(only.fallback, {
		...{ dialect: "flashbots", baseUrl: null, statusUrl: null, isPrivate: true, isRevertProtected: true },
		wholeUrls: { fast: FALLBACK_FAST_URL, noreverts: null },
	});
	const both = readBoostConfig({
		...NEEDED,
		...{ FALLBACK_FAST_URL, FALLBACK_NOREVERTS_URL: "https://n.example" },
		FALLBACK_STATUS_URL: "https://s.example/tx/",
	});
	assert.deepEqual(both.fallback, {
		...{ dialect: "mevblocker", baseUrl: NEEDED.FALLBACK_URL, statusUrl: "https://s.example/tx/" },
		...{ isPrivate: true, isRevertProtected: true },
		wholeUrls: { fast: FALLBACK_FAST_URL, noreverts: "https://n.example" },
	});
});

/** Settings of a fallback, and why /fast and /noreverts may not go there. */
const UNFIT: readonly (readonly [Readonly<Record<string, string>>, string | null, string | null])[] = [
	[{}, null, null],
	[{ FALLBACK_URL: "none" }, "there is no fallback", "there is no fallback"],
	[{ FALLBACK_DIALECT: "flashbots" }, null, null],
	[{ FALLBACK_DIALECT: "plain" }, "the fallback is not private", "the fallback is not private"],
	[
		{ FALLBACK_DIALECT: "plain", FALLBACK_PRIVATE: "true" },
		null,
		"the fallback does not protect from reverts",
	],
	[{ FALLBACK_DIALECT: "plain", FALLBACK_PRIVATE: "true", FALLBACK_REVERT_PROTECTED: "true" }, null, null],
	[{ FALLBACK_PRIVATE: "false" }, "the fallback is not private", "the fallback is not private"],
	[{ FALLBACK_REVERT_PROTECTED: "false" }, null, "the fallback does not protect from reverts"],
	[
		{ FALLBACK_URL: "", FALLBACK_FAST_URL: "https://f.example" },
		null,
		"the fallback has no address for /noreverts",
	],
	[
		{ FALLBACK_URL: "", FALLBACK_NOREVERTS_URL: "https://n.example" },
		"the fallback has no address for /fast",
		null,
	],
];
for (const [env, fast, noreverts] of UNFIT) {
	test(`what ${JSON.stringify(env)} means for what may be forwarded`, () => {
		assert.deepEqual(unfitPaths(readBoostConfig({ ...NEEDED, ...env }).fallback), { fast, noreverts });
	});
}

function refusing(name: Name, problem: string): (thrown: unknown) => true {
	return (thrown) => {
		assert.ok(thrown instanceof SettingError, String(thrown));
		const { expects, example } = BOOST_SETTINGS[name];
		const [told] = thrown.message.split("; given ");
		assert.equal(told, `${name} ${problem}: expected ${expects}, for example ${name}=${example}`);
		assert.ok(!thrown.message.includes(MARK), thrown.message);
		return true;
	};
}

const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
	"relay.example": ["192.0.2.1", "192.0.2.2"],
	"alias.example": ["192.0.2.2"],
	"other.example": ["192.0.2.9"],
	"192.0.2.1": ["192.0.2.1"],
	localhost: ["::1", "127.0.0.1"],
	"::1": ["::1"],
};

const clock = new ManualClock();
function addressesOf(name: string): Promise<readonly string[]> {
	const found = ADDRESSES[name];
	return found === undefined ? Promise.reject(new Error("ENOTFOUND")) : Promise.resolve(found);
}

const CASES: readonly (readonly [string, Readonly<Record<string, string>>, "url" | "address" | null])[] = [
	["https://relay.example", { FALLBACK_URL: "https://relay.example" }, "url"],
	["https://relay.example", { FALLBACK_URL: "HTTPS://Relay.example:443/?key=1" }, "url"],
	["https://relay.example/base", { FALLBACK_URL: "https://u:p@relay.example/base/" }, "url"],
	["https://relay.example", { FALLBACK_FAST_URL: "https://relay.example/fast" }, "url"],
	["https://relay.example", { FALLBACK_NOREVERTS_URL: "https://relay.example/noreverts?x=1" }, "url"],
	["https://relay.example", { FALLBACK_URL: "https://alias.example/rpc" }, "address"],
	["https://alias.example", { FALLBACK_URL: "https://192.0.2.1" }, null],
	["http://localhost:8080", { FALLBACK_URL: "http://[::1]:8080" }, "address"],
	["http://localhost:8080", { FALLBACK_URL: "http://[::1]:8082" }, null],
	["http://relay.example", { FALLBACK_URL: "https://alias.example" }, null],
	["https://relay.example", { FALLBACK_URL: "https://other.example" }, null],
	["https://relay.example", { FALLBACK_URL: "https://unknown.example" }, null],
	["https://relay.example", { FALLBACK_URL: "none" }, null],
];
for (const [RELAY_URL, fallback, expected] of CASES) {
	test(`${RELAY_URL} and ${JSON.stringify(fallback)}: ${expected}`, async () => {
		const config = readBoostConfig({ BOOST_SECRET, RELAY_URL, ...fallback });
		assert.equal(await sameUpstream(config, { clock, addressesOf }), expected);
	});
}

test("the warnings at the start", () => {
	const warnings = (env: Readonly<Record<string, string>>): readonly string[] =>
		startWarnings(readBoostConfig({ RELAY_URL: "http://r", BOOST_SECRET: "s", ...env }));
	assert.deepEqual(warnings({ FALLBACK_URL: "https://f.example" }), []);
	assert.deepEqual(warnings({ FALLBACK_URL: "none" }), [
		"while the relay is down nothing of /fast can be forwarded: there is no fallback",
		"while the relay is down nothing of /noreverts can be forwarded: there is no fallback",
	]);
	assert.deepEqual(warnings({ FALLBACK_URL: "https://f.example", FALLBACK_DIALECT: "plain" }), [
		"while the relay is down nothing of /fast can be forwarded: the fallback is not private",
		"while the relay is down nothing of /noreverts can be forwarded: the fallback is not private",
	]);
	assert.match(sameUpstreamWarning("url"), /is the relay itself/);
	assert.match(sameUpstreamWarning("address"), /may be the relay itself/);
});
