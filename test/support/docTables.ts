// Generates the tables of the documents, and the OpenRPC document, from the code's registries. A
// test compares them with the files; `npm run docs` writes them.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BOOST_SETTINGS } from "../../boost-proxy/config.ts";
import { MAINNET_BUILDERS } from "../../relay/broadcast/mainnet.ts";
import { RELAY_SETTINGS } from "../../relay/config.ts";
import { BUILDER_DOCS } from "../../relay/domain/builder.ts";
import { ENDPOINTS, type EndpointPolicy } from "../../relay/domain/endpoints.ts";
import { METHODS } from "../../relay/ingress/methods/index.ts";
import type { SettingTable } from "../../shared/config.ts";
import { openRpc } from "../../shared/jsonrpc/method.ts";
import { READS } from "../../shared/jsonrpc/reads.ts";
import { PROBLEMS, type ProblemWords } from "../../shared/problems.ts";
import { START_PORTS } from "../devnet/startLayout.ts";
import { documents, OPENRPC, ROOT, textOf } from "./documents.ts";
import { type Message, messages } from "./messages.ts";
import { filesEnding } from "./runner.ts";

/** Which searchers see a transaction. */
const SHARING: Readonly<Record<EndpointPolicy["sharing"], string>> = {
	never: "never",
	likely: "if it emits an event",
	always: "always, at once",
};

let tables: Readonly<Record<string, string>> | null = null;

/** Every generated table by its name. */
export function docTables(): Readonly<Record<string, string>> {
	tables ??= makeTables();
	return tables;
}

function makeTables(): Readonly<Record<string, string>> {
	return {
		endpoints: table(
			[
				"path",
				"simulated first",
				"again each block",
				"shared with searchers",
				"may revert on chain",
				"sent to",
				"as",
			],
			Object.entries<EndpointPolicy>(ENDPOINTS).map(([path, policy]) => [
				`\`/${path}\``,
				yes(policy.simulated),
				policy.resimulated ? "yes; failing stops it" : policy.simulated ? "no, once it has passed" : "never",
				SHARING[policy.sharing],
				yes(policy.mayRevert),
				policy.builders === "all" ? "all builders" : "builders marked `fullPrivacy`, else the first alone",
				policy.form === "bundle" ? "bundle for one block" : "private transaction",
			]),
		),
		methods: table(
			["method", "parameters", "what it does"],
			METHODS.map(({ name, params, summary }) => [
				`\`${name}\``,
				params.map((param) => param.name).join(", "),
				summary,
			]),
		),
		reads: [...READS.keys()].map((name) => `\`${name}\``).join(", "),
		settings: settingsTable(RELAY_SETTINGS),
		boostSettings: settingsTable(BOOST_SETTINGS),
		builders: table(
			["field", "default", "what it says"],
			BUILDER_DOCS.map(({ name, fallback, help }) => [`\`${name}\``, `\`${fallback}\``, help]),
		),
		problems: table(
			["the page says", "do", "alert"],
			Object.values(PROBLEMS).map((row: ProblemWords) => [row.text, row.todo, row.alert ?? ""]),
		),
		ports: table(["process", "default port", "setting"], PORTS),
		mainnet: MAINNET_BUILDERS.map(({ name }) => name).join(", "),
		logMessages: messageTable("log"),
		metricMessages: messageTable("metric"),
		textMessages: messageTable("text"),
		nightly: table(
			["file", "what it shows"],
			filesEnding(".nightly.ts").map((file) => [`\`${file}\``, openingOf(file)]),
		),
	};
}

/** The rows of docs/messages.md of one kind. */
function messageTable(kind: Message["kind"]): string {
	const own = messages().filter((message) => message.kind === kind);
	return table(
		["text", "in"],
		own.map(({ text, files }) => [
			`\`${text.replaceAll("`", "'")}\``,
			files.map((file) => `\`${file}\``).join(", "),
		]),
	);
}

/** The first sentence of a file's opening comment. */
function openingOf(file: string): string {
	const [comment = ""] = /^(\/\/ .*\n)+/.exec(textOf(file)) ?? [];
	const text = comment
		.replaceAll(/^\/\/ /gm, "")
		.replaceAll("\n", " ")
		.trim();
	return /^.*?[^.]\.(?= |$)/.exec(text)?.[0] ?? text;
}

/** Every port that a process may listen on. */
const PORTS: readonly (readonly string[])[] = [
	["relay", RELAY_SETTINGS.PORT.default ?? "", "`PORT`"],
	["relay: the websocket, apart", "on `PORT`", "`SEARCHER_PORT`"],
	["boost", BOOST_SETTINGS.PORT.default ?? "", "`PORT`"],
	["relay, boost: metrics, apart", "on `PORT`, by `METRICS_TOKEN`", "`METRICS_PORT`"],
	...Object.values(START_PORTS).map(([setting, usual, owner]) => [
		`\`npm start\`: ${owner}${owner === START_PORTS.balancer[2] ? " of several relays" : ""}`,
		String(usual),
		`\`${setting}\``,
	]),
];

/** `text` with every generated table put between its markers. */
export function withTables(text: string): string {
	return text.replace(
		/<!-- table:(\w+) -->\n[\s\S]*?<!-- \/table -->/g,
		(_whole, name: string) =>
			`<!-- table:${name} -->\n${docTables()[name] ?? `no table ${name}`}\n<!-- /table -->`,
	);
}

/**
 * The files that are not what the code has, among `files` (each a path and its text), and what they
 * should hold.
 */
export function outOfDate(
	files: readonly (readonly [path: string, text: string])[] = [...documents(), [OPENRPC, textOf(OPENRPC)]],
): ReadonlyMap<string, string> {
	const made = files.map(([path, text]) => [path, text, path === OPENRPC ? openRpcText() : withTables(text)]);
	return new Map(made.flatMap(([path = "", text, right = ""]) => (text === right ? [] : [[path, right]])));
}

/** The answer of `rpc.discover`, as text for the file. */
function openRpcText(): string {
	const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
	const document = openRpc(METHODS, { title: "Leeward relay", version });
	return `${JSON.stringify(document, null, "\t")}\n`;
}

function settingsTable(settings: SettingTable): string {
	return table(
		["setting", "what for", "expected", "default"],
		Object.entries(settings).map(([name, row]) => [
			`\`${name}\``,
			row.help,
			row.expects,
			row.default ?? (row.optional === true ? "" : "required"),
		]),
	);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
	const line = (cells: readonly string[]) =>
		`| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
	return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

function yes(value: boolean): string {
	return value ? "yes" : "no";
}
