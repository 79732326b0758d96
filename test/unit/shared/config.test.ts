// Settings: reading, refusing and printing them, with secrets in every possible place.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	databaseUrlRow,
	integer,
	maskUrls,
	misspelled,
	oneOf,
	printedConfig,
	readSettings,
	type SettingTable,
	text,
	traceRows,
	url,
} from "../../../shared/config.ts";

const TABLE = {
	PORT: {
		help: "where to listen",
		expects: "a port",
		example: "8080",
		default: "80",
		parse: integer(0, 65_535),
	},
	NODE: { help: "the node", expects: "a URL", example: "http://x", parse: url("http:", "https:") },
	MODE: { help: "how", expects: "a or b", example: "a", optional: true, parse: oneOf(["a", "b"]) },
	KEY: { help: "the key", expects: "any text", example: "k", optional: true, secret: true, parse: text },
} as const satisfies SettingTable;

test("values, defaults and absent options are read into a frozen object", () => {
	const settings = readSettings(TABLE, { NODE: " https://n/ ", PORT: "", OTHER: "x" });
	assert.deepEqual(settings, { PORT: 80, NODE: "https://n/", MODE: undefined, KEY: undefined });
	assert.ok(Object.isFrozen(settings));
	assert.deepEqual(readSettings(TABLE, { NODE: "http://n", PORT: "0", MODE: "b", KEY: "s" }), {
		...{ PORT: 0, NODE: "http://n", MODE: "b", KEY: "s" },
	});
});

const NO_NODE = "NODE is missing: expected a URL, for example NODE=http://x";
const NO_PORT = "PORT is not valid: expected a port, for example PORT=8080";
const NO_MODE = "MODE is not valid: expected a or b, for example MODE=a";
const WRONG: readonly [env: Record<string, string>, message: string][] = [
	[{}, NO_NODE],
	[{ NODE: "  " }, NO_NODE],
	[{ NODE: "s3cret" }, "NODE is not valid: expected a URL, for example NODE=http://x"],
	[{ NODE: "http://x", PORT: "s3cret" }, NO_PORT],
	[{ NODE: "http://x", MODE: "s3cret" }, NO_MODE],
	// Quoted if it can't be a secret, with the value that was probably meant.
	[{ NODE: "http://x", PORT: "80a" }, `${NO_PORT}; given 80a`],
	[{ NODE: "http://x", PORT: "-1" }, `${NO_PORT}; given -1`],
	[{ NODE: "http://x", MODE: "B" }, `${NO_MODE}; given B, did you mean b?`],
	[{ NODES: "http://s3cret" }, `${NO_NODE}; NODES is set, did you mean NODE?`],
	[{ NODE: " ", NODES: "http://x", PORT: "x" }, `${NO_PORT}\n${NO_NODE}; NODES is set, did you mean NODE?`],
	[{ PORT: "x", MODE: "c" }, `${NO_PORT}\n${NO_NODE}\n${NO_MODE}; given c, did you mean a?`],
];

test("each missing or bad setting is named with what was expected and an example; possible secrets are not quoted", () => {
	for (const [env, message] of WRONG) {
		assert.throws(() => readSettings(TABLE, env), { code: "SETTING", name: "SettingError", message });
	}
});

test("misspelt setting names are noticed", () => {
	const env = { PORTS: "1", NODE: "http://x", NODES: "y", MODF: "a", PATH: "/bin", HOME: "/" };
	assert.deepEqual(misspelled(TABLE, env), [
		["PORTS", "PORT"],
		["MODF", "MODE"],
	]);
});

test("of a URL only scheme, host and port are shown", () => {
	for (const [given, shown] of [
		["http://127.0.0.1:8545", "http://127.0.0.1:8545"],
		["http://127.0.0.1:8545/", "http://127.0.0.1:8545/"],
		["https://rpc.example/v3/s3cret", "https://rpc.example/***"],
		["https://rpc.example?key=s3cret", "https://rpc.example/***"],
		["https://rpc.example#s3cret", "https://rpc.example/***"],
		["https://s3cret@rpc.example", "https://rpc.example/***"],
		["https://user:s3cret@rpc.example:1/x", "https://rpc.example:1/***"],
		["wss://rpc.example/s3cret", "wss://rpc.example/***"],
		["postgres://u:s3cret@db.example:5432/leeward", "postgres://db.example:5432/***"],
		["postgresql://u:s3cret@db.example/leeward", "postgresql://db.example/***"],
		["a https://x.example/s3cret b http://y.example c", "a https://x.example/*** b http://y.example c"],
		["not a URL", "not a URL"],
	] as const) {
		assert.equal(maskUrls(given), shown);
	}
});

/** URLs that parsers accept, with a secret in the user, path or query. */
const SECRET_URLS = [
	...["HTTPS://user:s3cret@rpc.example/", "Https://rpc.example/s3cret", "https://user:a,s3cret@rpc.example"],
	...[
		"https://user:a'b s3cret@rpc.example",
		'https://user:a"s3cret@rpc.example',
		"https://a@s3cret@rpc.example",
	],
	...["https://rpc.example/a,s3cret", "https://rpc.example/a's3cret", "https://rpc.example/a?x='s3cret"],
	...["https:rpc.example/s3cret", "https:/rpc.example/s3cret", "https:\\\\rpc.example\\s3cret"],
	...["https://rpc.example/a s3cret", "ht\ntps://rpc.example/s3cret", "https://user:\ts3cret@rpc.example"],
];
test("no secret in a URL is printed, however it is written", () => {
	for (const given of SECRET_URLS) {
		// A refused setting can't be printed either.
		if (url("http:", "https:")(given) === undefined) continue;
		const printed = printedConfig(TABLE, { NODE: given });
		assert.ok(!printed.includes("s3cret"), printed);
		assert.ok(printed.includes("rpc.example"), printed);
	}
});

const SECRET_ROWS = [
	'[{"name":"a","url":"https://u:s3cret@a.example/s3cret"},{"name":"b","url":"https://b.example/s3cret"}]',
	'[{"name":"a","url":"https:\\/\\/a.example\\/s3cret"}]',
	'[{"name":"a","url":"\\u0068ttps://a.example/s3cret"}]',
	'[{"name":"a","url":"https://u:a,s3cret@a.example"}]',
	'[{"name":"a","url":"https://a.example/a\'s3cret"}]',
	'[ {"url" : "https://a.example/\\"s3cret" } ]',
];
test("no secret in JSON is printed", () => {
	const table = { ROWS: { help: "rows", expects: "JSON", example: "[]", parse: text } };
	for (const rows of SECRET_ROWS) {
		const printed = printedConfig(table, { ROWS: rows });
		assert.ok(!printed.includes("s3cret"), printed);
	}
});

test("whole numbers are plain digits within bounds", () => {
	const parse = integer(10, 1_000);
	assert.deepEqual(["10", "1000", "010", "0000000000000999"].map(parse), [10, 1_000, 10, undefined]);
	for (const bad of ["9", "1001", "-10", "+10", "1e2", "0x10", "10.0", "1_0", " 10", "ten", "", "١٠"]) {
		assert.equal(parse(bad), undefined, bad);
	}
});

test("choices, URLs and texts", () => {
	assert.deepEqual(["a", "A", "", "c"].map(oneOf(["a", "b"])), ["a", undefined, undefined, undefined]);
	const parse = url("http:", "https:");
	assert.deepEqual(
		["http://a", "https://a/", "https://a/b/", "https://a/?q=1", "ws://a", "a", "", "http://"].map(parse),
		["http://a", "https://a/", "https://a/b/", "https://a/?q=1", undefined, undefined, undefined, undefined],
	);
	assert.deepEqual(["", "x"].map(text), [undefined, "x"]);
});

test("headers to a collector are written as OpenTelemetry's settings have them", () => {
	const { parse } = traceRows("it").OTEL_EXPORTER_OTLP_HEADERS;
	assert.deepEqual(parse("authorization=Bearer%20a%2Cb, x-team = 7 ,,y=a=b"), {
		authorization: "Bearer a,b",
		"x-team": "7",
		y: "a=b",
	});
	for (const bad of ["a", "=b", "a b=c", "a=%", "a=%0a", "a=%c3%a9"])
		assert.equal(parse(bad), undefined, bad);
});

test("the part of traces that is kept is a number from 0 to 1", () => {
	const { parse } = traceRows("it").OTEL_TRACES_SAMPLER_ARG;
	assert.deepEqual(["0", "1", ".25", "0.25", "1.0", "1.5", "2", "-0.5", "1e-1", "a"].map(parse), [
		...[0, 1, 0.25, 0.25, 1],
		...Array(5).fill(undefined),
	]);
});

test("a database has one host: a list is refused with what to use in its place", () => {
	const table = { DATABASE_URL: databaseUrlRow("the store") };
	const read = (DATABASE_URL: string) => readSettings(table, { DATABASE_URL });
	for (const url of [
		"postgres://u:p@one/db?target_session_attrs=read-write",
		"postgres://u:s3cr,et@[::1]:5432/db",
		"postgres:///db?host=/var/run/postgresql",
	]) {
		assert.equal(read(url).DATABASE_URL, url);
	}
	for (const url of [
		"postgres://u:s3cret@one,two:5432/db",
		"postgres://u:s3cret@one:5432,two:5432/db",
		"postgres://u:s3cret@one%2Ctwo/db",
		"postgres://u:s3cret@[::1],[::2]/db?target_session_attrs=primary",
		"postgres://u:s3cret@/db?host=one,two&port=5432",
		"postgres://u:s3cret@one/db?port=5432,5433",
	]) {
		assert.throws(() => read(url), {
			message:
				"DATABASE_URL is not valid: expected a postgres:// URL of one host (for several servers a DNS name or balancer that leads to the primary), for example DATABASE_URL=postgres://user:password@host:5432/name",
		});
	}
});
