// The project's documents, the blocks of code in them, and the files that hosts read (Dockerfile,
// compose.yaml, fly.toml, .env.example), parsed. The tests decide what must be true of them.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv, type ValidateFunction } from "ajv";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";

/** The project's folder. */
export const ROOT: string = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The file with the answer of `rpc.discover`. */
export const OPENRPC = "docs/openrpc.json";

/** The text of each document by its path from the root. */
export function documents(): ReadonlyMap<string, string> {
	const isMarkdown = (name: string) => name.endsWith(".md");
	const below = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" });
	const paths = [
		...readdirSync(ROOT).filter(isMarkdown),
		...below.filter(isMarkdown).map((name) => `docs/${name}`),
	];
	return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
}

/**
 * A JSON example with its name: `<!-- example:name -->`, an empty line or none, and a block of
 * JSON.
 */
export function examplesOf(text: string): ReadonlyMap<string, unknown> {
	const found = text.matchAll(/<!-- example:(\w+) -->\n+```json\n([\s\S]*?)\n```/g);
	return new Map([...found].map(([, name = "", json = ""]) => [name, JSON.parse(json)]));
}

/** A block of code in a document. */
export interface Snippet {
	readonly document: string;
	/** Number of its first line. */
	readonly line: number;
	/** "" if none is named. */
	readonly language: string;
	readonly text: string;
	/** Whether it is one of {@link examplesOf}. */
	readonly isExample: boolean;
}

/** Every block of code of a document, in order. */
export function snippetsOf(document: string, text: string): readonly Snippet[] {
	const found = text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm);
	return [...found].map(({ index, 1: indent = "", 2: language = "", 3: block = "" }) => {
		const before = text.slice(0, index);
		return {
			document,
			line: before.split("\n").length + 1,
			language,
			text: block.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
			isExample: language === "json" && /<!-- example:\w+ -->\n+$/.test(before),
		};
	});
}

/**
 * The text of the only block of `document` that begins with `start`; throws if there is not exactly
 * one. By calling it a test claims to run the block: test/snippets.test.ts demands such a test for
 * every block.
 */
export function snippet(document: string, start: string): string {
	const all = snippetsOf(document, documents().get(document) ?? "");
	const [found, ...others] = all.filter(({ text }) => text.startsWith(start));
	if (found === undefined || others.length > 0)
		throw new Error(
			`${document} has ${found === undefined ? "no" : "more than one"} block that begins with ${start}`,
		);
	return found.text;
}

/** The texts of all of `document`'s blocks in `language`, which the test that calls this runs. */
export function snippets(document: string, language: string): readonly string[] {
	const all = snippetsOf(document, documents().get(document) ?? "");
	return all.filter((one) => one.language === language).map(({ text }) => text);
}

/**
 * Replaces placeholders in `text`, in order. Throws if one is missing from the text, or one is left
 * in it.
 */
export function filled(
	text: string,
	...values: readonly (readonly [placeholder: string, value: string])[]
): string {
	const whole = values.reduce((open, [placeholder, value]) => {
		if (!open.includes(placeholder)) throw new Error(`no ${placeholder} in ${open}`);
		return open.replace(placeholder, () => value);
	}, text);
	if (/…|"(0x)?<[^"]*>"/.test(whole)) throw new Error(`there is more to fill in: ${whole}`);
	return whole;
}

/** One instruction of a Dockerfile: its name in capitals, and the rest of its line. */
interface Instruction {
	readonly name: string;
	readonly rest: string;
}

/** A stage of a Dockerfile, from one FROM to the next. */
export interface ImageStage {
	readonly from: string;
	/** "" if it has none. */
	readonly name: string;
	readonly instructions: readonly Instruction[];
}

/** A service of compose.yaml, with the fields that tests read. */
interface ComposeService {
	readonly command?: readonly string[];
	/** A null value is taken from the environment and .env. */
	readonly environment?: Readonly<Record<string, string | null>>;
	readonly ports?: readonly string[];
	readonly profiles?: readonly string[];
	readonly build?: {
		readonly context: string;
		readonly target?: string;
		readonly args?: Readonly<Record<string, null>>;
	};
	readonly depends_on?: Readonly<Record<string, { readonly condition: string }>> | readonly string[];
	readonly deploy?: { readonly replicas: string };
	readonly image?: string;
	readonly configs?: readonly { readonly source: string; readonly target: string }[];
	readonly network_mode?: string;
	readonly read_only?: boolean;
	readonly stop_grace_period?: string;
	readonly healthcheck?: { readonly test: readonly string[] };
	readonly volumes?: readonly string[];
}

/** A file's text. */
export function textOf(name: string): string {
	return readFileSync(join(ROOT, name), "utf8");
}

/** The Dockerfile's stages in order; docker builds the last one by default. */
export function imageStages(text: string = textOf("Dockerfile")): readonly ImageStage[] {
	const stages: (ImageStage & { instructions: Instruction[] })[] = [];
	for (const line of text.split("\n")) {
		const [, name = "", rest = ""] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
		if (name === "FROM") {
			const [from = "", , stage = ""] = rest.split(" ");
			stages.push({ from, name: stage, instructions: [] });
		} else if (name !== "") stages.at(-1)?.instructions.push({ name, rest });
	}
	return stages;
}

/** The arguments of the only instruction `name` of a stage; "" if there is none. */
export function only(stage: ImageStage, name: string): string {
	const found = stage.instructions.filter((one) => one.name === name);
	if (found.length > 1) throw new Error(`${name} stands there ${found.length} times`);
	return found[0]?.rest ?? "";
}

/** The environment variables that a stage sets, if its build was given `args`. */
export function variables(
	stage: ImageStage,
	args: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
	const pairs = stage.instructions
		.filter(({ name }) => name === "ENV")
		.flatMap(({ rest }) => rest.split(" "));
	return Object.fromEntries(
		pairs.map((pair) => {
			const [name = "", value = ""] = pair.split("=");
			return [name, value.replace(/\$\{(\w+)\}/, (_, arg: string) => args[arg] ?? "")];
		}),
	);
}

/** The names that a stage copies from this folder. */
export function copied(stage: ImageStage): readonly string[] {
	return stage.instructions
		.filter(({ name, rest }) => name === "COPY" && !rest.startsWith("--from="))
		.flatMap(({ rest }) => rest.split(" ").slice(0, -1));
}

/** compose.yaml with anchors and merges resolved, but not variables. */
export function compose(): {
	readonly services: Readonly<Record<string, ComposeService>>;
	readonly configs: Readonly<Record<string, { readonly file: string }>>;
} {
	return parseYaml(textOf("compose.yaml"), { merge: true });
}

/** fly.toml. */
export function flyToml(text: string = textOf("fly.toml")): Readonly<Record<string, unknown>> {
	return parseToml(text);
}

/** Every setting in .env.example as `NAME=value`, also those that are commented out. */
export function envExample(): readonly { readonly line: string; readonly isSet: boolean }[] {
	return [...textOf(".env.example").matchAll(/^(# )?([A-Z][A-Z0-9_]*=.*)$/gm)].map(([, mark, line = ""]) => ({
		line,
		isSet: mark === undefined,
	}));
}

/** A schema that comes in a package: `file` is its path in node_modules. */
export function schemaOf(file: string): ValidateFunction {
	const schema = JSON.parse(textOf(join("node_modules", file))) as Record<string, unknown>;
	// The schema is draft-07, but names it by an address that ajv does not know.
	delete schema.$schema;
	return new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
}
