// Tests the layout against tables: which file may import which, and what no file may hold. The
// checker is pure, and must fail on made-up files before it reads the real ones.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { filesOf, type Imported, importsOf } from "./support/sources.ts";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const FOLDERS = ["relay", "boost-proxy", "shared", "test"];
const MAX_LINES = 500;
/** Columns, with two for a tab as Biome counts. */
const MAX_COMMENT = 100;
const MAX_CODE = 110;

/**
 * A target as a path, or a folder with a slash behind it; `type:` before it allows its types alone.
 */
type Allowed = readonly string[];
const PER_REQUEST_AND_BLOCK: Allowed = [
	...["relay/domain/", "shared/", "relay/admission/", "type:relay/transactions/", "type:relay/inclusion/"],
	...["type:relay/broadcast/", "type:relay/senderRunner.ts", "relay/senderPlan.ts"],
];
const PER_BUNDLE: Allowed = [
	...["relay/domain/", "shared/", "relay/admission/", "relay/auction/"],
	...["type:relay/transactions/", "type:relay/broadcast/", "type:relay/inclusion/"],
];
const BOOST: Allowed = ["boost-proxy/domain/", "shared/", "type:boost-proxy/rows/rows.ts"];

const FORKS = ["shared/ethereum/forks.ts", "shared/ethereum/forkSchedule.ts"];
/** The imports that a file may have beside its own folder. The first row for its path counts. */
const IMPORTS: readonly (readonly [RegExp, Allowed])[] = [
	[/^shared\//, ["shared/"]],
	[/^relay\/domain\//, ["shared/"]],
	// The searchers' side: its own folder, and the folders below it.
	[/^relay\/market\//, PER_BUNDLE],
	// All stages answer clients. The transactions make builders forget one.
	[/^relay\/ingress\//, ["relay/domain/", "shared/", "type:relay/"]],
	[/^relay\/transactions\//, ["relay/domain/", "shared/", "type:relay/broadcast/"]],
	// The stages: each its own folder, never each other.
	[/^relay\/[\w-]+\//, ["relay/domain/", "shared/"]],
	[/^relay\/(pipeline|senderRunner|senderPlan|blockLoop)\.ts$/, PER_REQUEST_AND_BLOCK],
	// A client of the pipeline.
	[/^relay\/canaries\.ts$/, [...PER_REQUEST_AND_BLOCK, "type:relay/pipeline.ts"]],
	[/^relay\/metrics\.ts$/, ["relay/domain/", "shared/"]],
	[/^relay\/resources\.ts$/, ["shared/", "type:relay/config.ts"]],
	[/^relay\/config\.ts$/, ["relay/domain/", "shared/", "relay/broadcast/mainnet.ts"]],
	[
		/^relay\/(relay|servers|readiness|modules|gauges|figures|core\w+|operator\w+|make\w+)\.ts$/,
		["relay/", "shared/"],
	],
	[/^relay\/main\.ts$/, ["relay/relay.ts", "relay/config.ts", "shared/"]],
	// Boost's rooms, each above those that it may import, so that there is no circle among them.
	[/^boost-proxy\/domain\//, ["shared/"]],
	[/^boost-proxy\/(dialects|journal|reconcile|subscriptions)\//, BOOST],
	[/^boost-proxy\/(rows|homes)\//, [...BOOST, "boost-proxy/journal/"]],
	[/^boost-proxy\/upstream\//, [...BOOST, "boost-proxy/dialects/"]],
	[/^boost-proxy\/health\//, [...BOOST, "boost-proxy/upstream/verdict.ts"]],
	[
		/^boost-proxy\/requests\//,
		[...BOOST, "type:boost-proxy/reconcile/asks.ts", "type:boost-proxy/reconcile/reconciler.ts"],
	],
	[/^boost-proxy\/views\//, [...BOOST, "boost-proxy/requests/failover.ts"]],
	[
		/^boost-proxy\/ingress\//,
		[
			...[...BOOST, "boost-proxy/requests/", "boost-proxy/subscriptions/", "boost-proxy/views/"],
			"boost-proxy/upstream/verdict.ts",
		],
	],
	[/^boost-proxy\/config\.ts$/, [...BOOST, "boost-proxy/dialects/"]],
	[/^boost-proxy\//, ["boost-proxy/", "shared/"]],
	// The dev network judges the relay, so it shares only time, command lines and the table of forks.
	[/^test\/devnet\/main\.ts$/, ["test/", "relay/", "shared/", "boost-proxy/"]],
	[/^test\/devnet\//, ["shared/clock.ts", "shared/commandLine.ts", ...FORKS]],
	[/^test\//, ["test/", "relay/", "shared/", "boost-proxy/", "docs/examples/"]],
];

/** Folders with one file that makes the others. Outside, only that file and types are imported. */
const DOORS: readonly (readonly [folder: string, door: string])[] = [
	["relay/transactions/", "relay/transactions/transactions.ts"],
];

/** Folders whose `index.ts` is a list of what is registered there. */
const REGISTRIES = ["relay/ingress/methods", "relay/simulation/engines"];

const PRODUCT = /^(relay|shared|boost-proxy)\//;
/** The files that are run: each process, the pair behind one port, and `npm run why`. */
const MAIN = /^(relay\/main|boost-proxy\/(main|pair)|shared\/why\/main)\.ts$/;

/** The methods of the pool for readers. All others change it. */
const POOL_READS = /PoolReader = Pick<([^>]*)>/
	.exec(readFileSync(join(ROOT, "relay/transactions/pool.ts"), "utf8"))?.[1]
	?.match(/\w+(?=")/g);

/** The writer of transactions, and files outside the relay. */
const mayChangeTransactions = (path: string) =>
	!path.startsWith("relay/") || path.startsWith("relay/transactions/");

/** The file that makes all outgoing requests, by undici. */
const HTTP_CLIENT = "shared/outgoing/httpClient.ts";
const ONE_CLIENT = `only ${HTTP_CLIENT} makes requests by undici`;

/** A pattern that no code may contain, apart from texts and comments; excused files; the rule. */
const CODE: readonly (readonly [RegExp, (path: string) => boolean, string])[] = [
	[
		/\bprocess\.(env|exit)\b/,
		(path) => MAIN.test(path) || path.startsWith("test/"),
		"only main.ts and pair.ts read the environment or end the process",
	],
	// shared/process.ts has one interval, which keeps the process up before it listens.
	[
		/(?<!\.)\bset(Timeout|Interval)\s*\(/,
		(path) => TIMERS.test(path),
		"timers are set through the Clock, and no test sleeps",
	],
	[
		/\b(Date|performance)\.now\b/,
		(path) => !PRODUCT.test(path) || path === "shared/clock.ts",
		"the time is read through the Clock",
	],
	[/\benum\s+\w+\s*\{/, () => false, "no enums: types are erased, not compiled"],
	[/\b(namespace|module)\s+[\w.]+\s*\{/, () => false, "no namespaces: types are erased, not compiled"],
	// Node's own fetch is undici too.
	[/(?<![.#\w])fetch\s*\(/, (path) => !PRODUCT.test(path), ONE_CLIENT],
	[
		/\bnew WebSocket\b/,
		(path) => path === "shared/link/link.ts" || !PRODUCT.test(path),
		"only shared/link/link.ts opens websockets",
	],
	[
		/\bconsole\./,
		(path) => path.startsWith("test/bench/"),
		"programs log by shared/log.ts, and a test speaks by its assertions: nothing writes to the console",
	],
	[/\b(test|describe|it)\.(only|skip|todo)\b/, () => false, "no test is left out"],
	[/:\s*any\b|\bas\s+any\b|<any>/, () => false, "no any"],
	// Node's own emitters are named so.
	[
		/(?<!\b(emitter|signal))\??\.emit\s*\(/,
		mayChangeTransactions,
		"only relay/transactions/ emits: what happens to a transaction has a verb there",
	],
	[
		/\bfold\s*\(/,
		(path) => mayChangeTransactions(path) || path === "relay/domain/record.ts",
		"only relay/transactions/ changes a record",
	],
	// A consensus node's connections are a pool too.
	[
		new RegExp(`\\bpool\\??\\.(?!(${POOL_READS?.join("|")})\\b)\\w`),
		(path) => mayChangeTransactions(path) || path === "relay/chain/beaconNode.ts",
		"only relay/transactions/ changes the pool",
	],
];
const TIMERS =
	/^(shared\/(clock|process)\.ts|test\/(support|bench)\/.*(?<!\.test)\.ts|test\/devnet\/main\.ts)$/;

/** Every rule that the file at `path` (from the root, with slashes) breaks. */
function violations(path: string, text: string): string[] {
	const found: string[] = [];
	const lines = text.replace(/\n$/, "").split("\n");
	if (lines.length > MAX_LINES) found.push(`${lines.length} lines, ${MAX_LINES} at most`);
	// Biome breaks code, but neither comments, texts nor patterns.
	const code = text.replace(TEXTS, (one) => one.replace(/[^\n]+/g, "")).split("\n");
	for (const [i, line] of lines.entries()) {
		const isComment = /^\s*(?:\/\/|\/?\*)/.test(line);
		const [width, most] = isComment ? [widthOf(line), MAX_COMMENT] : [widthOf(code[i] ?? ""), MAX_CODE];
		if (width > most && !UNBREAKABLE.test(line))
			found.push(`line ${i + 1} has ${width} columns, ${most} at most`);
	}
	if (!/^\/\/ \S/.test(text)) found.push("the file does not open with a // comment");
	const name = posix.basename(path);
	if (/^(utils?|helpers?|common|types)\b/i.test(name)) found.push(`${name} says nothing of what is in it`);
	if (name === "index.ts" && !REGISTRIES.includes(posix.dirname(path)))
		found.push("index.ts is for registries");
	// This file spells out what it forbids.
	const searched = path === "test/architecture.test.ts" ? "" : withoutTexts(text);
	for (const [pattern, excused, rule] of CODE) if (pattern.test(searched) && !excused(path)) found.push(rule);
	for (const imported of importsOf(text)) {
		const fault = importFault(path, imported);
		if (fault !== null) found.push(fault);
	}
	return found;
}

function importFault(path: string, { from, typesOnly }: Imported): string | null {
	if (!from.startsWith(".")) {
		const [first = "", second = ""] = from.split("/");
		const name = first.startsWith("@") ? `${first}/${second}` : first;
		if (first.startsWith("node:") || !PRODUCT.test(path)) return null;
		if (name === "undici" && path !== HTTP_CLIENT) return ONE_CLIENT;
		if (DEPENDENCIES.has(name)) return null;
		return `${from} is no dependency of the product, or lacks node:`;
	}
	if (!/\.(ts|json)$/.test(from)) return `${from}: expected the whole name of a file`;
	const target = posix.join(posix.dirname(path), from);
	const door = PRODUCT.test(path) ? doorOf(path, target) : target;
	if (door !== target && !typesOnly) return `imports ${target}: only ${door} is for others`;
	const allowed = IMPORTS.find(([pattern]) => pattern.test(path))?.[1];
	if (allowed === undefined) return `${path} has no row in the table of imports`;
	const own = path.startsWith("relay/") ? path.split("/").slice(0, 2).join("/") : posix.dirname(path);
	if (target.startsWith(`${own}/`)) return null;
	const fits = (rule: string) => (rule.endsWith("/") ? target.startsWith(rule) : target === rule);
	if (allowed.some(fits)) return null;
	if (typesOnly && allowed.some((rule) => rule.startsWith("type:") && fits(rule.slice(5)))) return null;
	return `imports ${target}: beside its own folder it may import ${allowed.join(", ")} (IMPORTS of this test)`;
}

/** The file by which `target` is to be reached from `path`. */
function doorOf(path: string, target: string): string {
	const behind = DOORS.find(([folder]) => target.startsWith(folder) && !path.startsWith(folder));
	return behind?.[1] ?? target;
}

const DEPENDENCIES = new Set(
	Object.keys(
		(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { dependencies: object }).dependencies,
	),
);

/** Comments, and what stands in quotation marks. */
const TEXTS = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/.*/g;

/** A comment of one address, or a line with a long regular expression. */
const UNBREAKABLE = /^\s*(?:\/\/|\*) \S+$|^\s*\/[^/*]|\/\S.{60,}\/[dgimsuy]*[,;.)]/;

/** The code alone; lines and columns stay. */
function withoutTexts(text: string): string {
	return text.replace(TEXTS, (one) => one.replace(/[^\n]/g, " "));
}

function widthOf(line: string): number {
	return line.replaceAll("\t", "  ").length;
}

/** Made-up files, each with the expected complaint. */
const OPENING = "// Its purpose.\n";
const imports = (...names: readonly string[]) =>
	OPENING + names.map((name) => `import { x } from "${name}";\n`).join("");
const BROKEN: readonly (readonly [string, string, RegExp])[] = [
	[
		"shared/a.ts",
		imports("../relay/domain/chain.ts"),
		/^imports relay\/domain\/chain\.ts: .* may import shared\//,
	],
	["shared/kv/a.ts", imports("../../boost-proxy/policy.ts"), /^imports boost-proxy/],
	["relay/domain/a.ts", imports("../transactions/pool.ts"), /^imports relay\/transactions/],
	[
		"relay/domain/a.ts",
		`${OPENING}import type { Pool } from "../transactions/pool.ts";\n`,
		/^imports relay\/transactions/,
	],
	["relay/transactions/a.ts", imports("../status/report.ts"), /^imports relay\/status/],
	[
		"relay/status/a.ts",
		`${OPENING}import type { Pool } from "../transactions/pool.ts";\n`,
		/^imports relay\/transactions/,
	],
	["relay/ingress/methods/a.ts", imports("../../transactions/pool.ts"), /^imports relay\/transactions/],
	["relay/simulation/engines/a.ts", imports("../../senderRunner.ts"), /^imports relay\/senderRunner/],
	["relay/admission/a.ts", imports("../relay.ts"), /^imports relay\/relay\.ts/],
	["relay/pipeline.ts", imports("./broadcast/fanout.ts"), /^imports relay\/broadcast/],
	["relay/pipeline.ts", imports("./transactions/pool.ts"), /^imports relay\/transactions/],
	[
		"relay/senderRunner.ts",
		`${OPENING}import { type Pool, NOBODY } from "./transactions/pool.ts";\n`,
		/^imports relay\/transactions/,
	],
	[
		"relay/blockLoop.ts",
		`${OPENING}export { report } from "./status/report.ts";\n`,
		/^imports relay\/status/,
	],
	["relay/config.ts", imports("./broadcast/fanout.ts"), /^imports relay\/broadcast/],
	["relay/main.ts", imports("./pipeline.ts"), /^imports relay\/pipeline/],
	["relay/relay.ts", imports("../test/support/until.ts"), /^imports test/],
	["relay/newThing.ts", imports("./domain/chain.ts"), /no row in the table of imports/],
	["boost-proxy/a.ts", imports("../relay/domain/chain.ts"), /^imports relay/],
	["boost-proxy/domain/a.ts", imports("../rows/rows.ts"), /^imports boost-proxy\/rows/],
	["boost-proxy/reconcile/a.ts", imports("../requests/cancels.ts"), /^imports boost-proxy\/requests/],
	["boost-proxy/upstream/a.ts", imports("../health/rules.ts"), /^imports boost-proxy\/health/],
	[
		"relay/chain/a.ts",
		`${OPENING}const x = await import(${JSON.stringify("../transactions/pool.ts")});\n`,
		/^imports relay\/transactions/,
	],
	["relay/chain/a.ts", `${OPENING}import "../transactions/pool.ts";\n`, /^imports relay\/transactions/],
	[
		"relay/chain/a.ts",
		`${OPENING}import {\n\tx,\n\ty,\n} from "../transactions/pool.ts";\n`,
		/^imports relay\/transactions/,
	],
	["test/devnet/a.ts", imports("../../relay/domain/chain.ts"), /^imports relay/],
	["test/devnet/a.ts", imports("../../shared/ethereum/rlp.ts"), /^imports shared\/ethereum/],
	["relay/transactions/a.ts", imports("./pool"), /expected the whole name/],
	["relay/transactions/a.ts", imports("fs"), /no dependency of the product/],
	["shared/a.ts", imports("viem"), /viem is no dependency/],
	["shared/a.ts", imports("@noble/hashes/sha3"), /no dependency/],
	["relay/transactions/a.ts", OPENING + "x;\n".repeat(MAX_LINES), /^501 lines/],
	["test/unit/a.test.ts", OPENING + "x;\n".repeat(MAX_LINES), /^501 lines/],
	["relay/transactions/a.ts", "import x;\n", /does not open with/],
	["relay/transactions/a.ts", "/* What comes in. */\n", /does not open with/],
	["relay/transactions/a.ts", "//\n", /does not open with/],
	["relay/transactions/utils.ts", OPENING, /says nothing/],
	["test/support/helpers.ts", OPENING, /says nothing/],
	["shared/common.ts", OPENING, /says nothing/],
	["relay/domain/types.ts", OPENING, /says nothing/],
	["relay/transactions/index.ts", OPENING, /for registries/],
	["relay/relay.ts", `${OPENING}const url = process.env.URL;\n`, /only main\.ts/],
	["relay/pair.ts", `${OPENING}const url = process.env.URL;\n`, /only main\.ts/],
	["shared/process.ts", `${OPENING}process.exit(1);\n`, /only main\.ts/],
	["boost-proxy/supervisor.ts", `${OPENING}process.exit(1);\n`, /only main\.ts/],
	["relay/main.ts", `${OPENING}setInterval(f, 1);\n`, /through the Clock/],
	["shared/a.ts", `${OPENING}process.exit(1);\n`, /only main\.ts/],
	["relay/transactions/a.ts", `${OPENING}setTimeout(f, 1);\n`, /through the Clock/],
	["test/unit/a.test.ts", `${OPENING}await new Promise((r) => setTimeout(r, 5));\n`, /no test sleeps/],
	["relay/transactions/a.ts", `${OPENING}const at = Date.now();\n`, /read through the Clock/],
	["shared/a.ts", `${OPENING}const at = performance.now();\n`, /read through the Clock/],
	["relay/transactions/a.ts", `${OPENING}export enum Stage {\n\tA,\n}\n`, /no enums/],
	["relay/transactions/a.ts", `${OPENING}declare namespace A.B {}\n`, /no namespaces/],
	["relay/transactions/a.ts", `${OPENING}console.log(1);\n`, /log by shared/],
	["test/unit/a.test.ts", `${OPENING}test.only("x", f);\n`, /left out/],
	["relay/transactions/a.ts", `${OPENING}const x = y as any;\n`, /no any/],
	[
		"relay/relay.ts",
		imports("./transactions/pool.ts"),
		/only relay\/transactions\/transactions\.ts is for others/,
	],
	["relay/servers.ts", imports("./transactions/records.ts"), /is for others/],
	["relay/senderRunner.ts", `${OPENING}transactions.records.emit(hash, event);\n`, /transactions\/ emits/],
	["relay/market/a.ts", `${OPENING}this.#records?.emit(hash, event);\n`, /transactions\/ emits/],
	["relay/broadcast/a.ts", `${OPENING}this.#events\n\t.emit(hash, event);\n`, /transactions\/ emits/],
	["relay/status/a.ts", `${OPENING}fold(record, event);\n`, /changes a record/],
	["relay/blockLoop.ts", `${OPENING}transactions.pool.rewind(block);\n`, /changes the pool/],
	["relay/market/a.ts", `${OPENING}this.#dependencies.pool.remove(entry);\n`, /changes the pool/],
	["relay/senderRunner.ts", `${OPENING}const used = pool.setAccount(account);\n`, /changes the pool/],
	["relay/senderRunner.ts", `${OPENING}pool.markSent(entry, 1, []);\n`, /changes the pool/],
	["relay/chain/a.ts", imports("undici"), /makes requests by undici/],
	["boost-proxy/upstream/a.ts", imports("undici"), /makes requests by undici/],
	["shared/jsonrpc/client.ts", imports("undici"), /makes requests by undici/],
	[
		"shared/outgoing/a.ts",
		`${OPENING}import type { Dispatcher } from "undici";\n`,
		/makes requests by undici/,
	],
	[
		"relay/chain/a.ts",
		`${OPENING}const { Pool } = await import(${JSON.stringify("undici")});\n`,
		/makes requests by undici/,
	],
	["relay/chain/a.ts", `${OPENING}const answer = await fetch(url);\n`, /makes requests by undici/],
];

for (const [path, text, expected] of BROKEN) {
	test(`the checker sees it: ${path}, ${expected.source}`, () => {
		const found = violations(path, text);
		assert.deepEqual([found.length, expected.test(found[0] ?? "")], [1, true], found.join("; "));
	});
}

const SOUND: readonly (readonly [string, string])[] = [
	["relay/pipeline.ts", `${OPENING}import { type A, type B } from "./transactions/pool.ts";\n`],
	["relay/relay.ts", imports("./transactions/transactions.ts")],
	[
		"relay/transactions/a.ts",
		`${OPENING}records.emit(hash, event); pool.remove(entry); fold(record, event);\n`,
	],
	["relay/senderRunner.ts", `${OPENING}pool.get(hash); transactions.pool.transactionsOf(sender); pool;\n`],
	["relay/status/a.ts", `${OPENING}this.#emitter.emit(hash, record); signal.emit("abort");\n`],
	["relay/domain/record.ts", `${OPENING}export function fold(record, event) {}\n`],
	["boost-proxy/a.ts", `${OPENING}socket.emit("x"); pool.remove(one);\n`],
	[
		"relay/pipeline.ts",
		imports("./admission/rules.ts", "./domain/chain.ts", "../shared/clock.ts", "node:fs", "zod"),
	],
	["relay/ingress/a.ts", `${OPENING}import type { A } from "../transactions/pool.ts";\n`],
	["relay/ingress/methods/a.ts", imports("../methodDependencies.ts", "./b.ts", "../../domain/ports.ts")],
	["relay/relay.ts", imports("./pool/pool.ts", "./blockLoop.ts", "../shared/kv/lmdb.ts")],
	["relay/main.ts", `${imports("./relay.ts")}process.exit(Number(process.env.X));\n`],
	["boost-proxy/main.ts", `${imports("./proxy.ts", "../shared/process.ts")}process.exit(1);\n`],
	["boost-proxy/pair.ts", `${imports("./supervisor.ts")}process.exit(Number(process.env.X));\n`],
	["shared/process.ts", `${OPENING}setInterval(f, 1);\n`],
	["shared/clock.ts", `${OPENING}setTimeout(f, 1); Date.now(); performance.now();\n`],
	[
		"relay/transactions/a.ts",
		`${OPENING}// process.env, enum A {, setTimeout(\nconst s = "console.log(1)"; socket.setTimeout(1);\n`,
	],
	["relay/transactions/a.ts", `${OPENING}process.exitCode = 1;\n${"x;\n".repeat(MAX_LINES - 2)}`],
	["test/devnet/a.ts", imports("./b.ts", "../../shared/clock.ts", "viem")],
	["test/unit/a.test.ts", imports("../../relay/transactions/pool.ts", "../support/until.ts", "ethers")],
	["relay/ingress/methods/index.ts", OPENING],
	["shared/outgoing/httpClient.ts", imports("undici", "../clock.ts")],
	["relay/chain/a.ts", `${OPENING}this.#fetch(x); heads.fetch(y);\n`],
	["test/support/a.ts", `${imports("undici")}await fetch(url);\n`],
];

test("the checker leaves sound files alone", () => {
	for (const [path, text] of SOUND) assert.deepEqual(violations(path, text), [], path);
});

/** Methods of transactions that change none. */
const QUESTIONS = [
	...["record", "archived", "chainOf", "clientOf", "exclusively"],
	...["cancelLimitRejection", "lastSoftCancellable", "revivableWithSameNonce"],
];

/** The public methods of the classes in a text. */
function methodsOf(text: string): string[] {
	return [...text.matchAll(/^\t(?:async )?([a-z]\w*)\(/gm)].map(([, name = ""]) => name);
}

const VERBS = (() => {
	const text = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");
	const table = /^\| what happens \| verbs \| called by \|\n.*\n((?:\|.*\n)+)/m.exec(text)?.[1] ?? "";
	const ticked = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, one = ""]) => one);
	return table
		.trim()
		.split("\n")
		.map((row) => row.split(" | "))
		.map(([, verbs, callers]) => ({
			verbs: ticked(verbs).filter((one) => !one.includes("/")),
			callers: ticked(callers),
		}));
})();

test("the document lists each verb that changes a transaction, and no other", () => {
	const written = ["transactions.ts", "clientChanges.ts"].flatMap((name) =>
		methodsOf(readFileSync(join(ROOT, "relay/transactions", name), "utf8")),
	);
	const verbs = written.filter((name) => name !== "constructor" && !QUESTIONS.includes(name));
	assert.deepEqual(VERBS.flatMap((row) => row.verbs).sort(), verbs.sort());
});

for (const { verbs, callers } of VERBS) {
	test(`the document says who calls ${verbs.join(", ")}`, () => {
		const call = new RegExp(`\\btransactions\\.(changes\\.)?(${verbs.join("|")})\\(`);
		const files = [...filesOf("relay")].filter(([, text]) => call.test(withoutTexts(text)));
		const called = files.map(([path]) => callers.find((one) => path.startsWith(one)) ?? path);
		assert.deepEqual([...new Set(called)].sort(), [...callers].sort());
	});
}

test("every file keeps the rules", () => {
	const files = new Map(FOLDERS.flatMap((folder) => [...filesOf(folder)]));
	assert.ok(files.size > 100, "the files were not found");
	const broken = [...files].flatMap(([path, text]) =>
		violations(path, text).map((rule) => `${path}: ${rule}`),
	);
	assert.deepEqual(broken, []);
});
