// Parses the files that hosts read (Dockerfile, compose.yaml, fly.toml, .env.example). It judges nothing.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv, type ValidateFunction } from "ajv";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";

/** The folder that they are in. */
export const ROOT: string = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** One instruction of a Dockerfile: its name in capitals, and the rest of its line. */
export interface Instruction {
	readonly name: string;
	readonly rest: string;
}

/** What a FROM begins. */
export interface ImageStage {
	readonly from: string;
	/** "" where it has none. */
	readonly name: string;
	readonly instructions: readonly Instruction[];
}

/** A service of compose.yaml: what the tests ask of it. */
export interface ComposeService {
	readonly command?: readonly string[];
	/** Null: taken from the environment and .env. */
	readonly environment?: Readonly<Record<string, string | null>>;
	readonly ports?: readonly string[];
	readonly profiles?: readonly string[];
	readonly build?: string | { readonly context: string; readonly target: string };
	readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
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

/** The Dockerfile's stages in their order; the last one is built unless another is named. */
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

/** What stands behind the only instruction `name` of a stage; "" where there is none. */
export function only(stage: ImageStage, name: string): string {
	const found = stage.instructions.filter((one) => one.name === name);
	if (found.length > 1) throw new Error(`${name} stands there ${found.length} times`);
	return found[0]?.rest ?? "";
}

/** What a stage takes of this folder, by name. */
export function copied(stage: ImageStage): readonly string[] {
	return stage.instructions
		.filter(({ name, rest }) => name === "COPY" && !rest.startsWith("--from="))
		.flatMap(({ rest }) => rest.split(" ").slice(0, -1));
}

/** compose.yaml, anchors and merges worked out, variables not. */
export function compose(): { readonly services: Readonly<Record<string, ComposeService>> } {
	return parseYaml(textOf("compose.yaml"), { merge: true });
}

/** fly.toml. */
export function flyToml(text: string = textOf("fly.toml")): Readonly<Record<string, unknown>> {
	return parseToml(text);
}

/** Every setting in .env.example, the optional ones behind a # too, as `NAME=value`. */
export function envExample(): readonly { readonly line: string; readonly isSet: boolean }[] {
	return [...textOf(".env.example").matchAll(/^(# )?([A-Z][A-Z0-9_]*=.*)$/gm)].map(([, mark, line = ""]) => ({
		line,
		isSet: mark === undefined,
	}));
}

/** A schema that comes in a package: `file` is its path in node_modules. */
export function schemaOf(file: string): ValidateFunction {
	const schema = JSON.parse(textOf(join("node_modules", file))) as Record<string, unknown>;
	// It is draft-07, by an address that ajv does not know.
	delete schema.$schema;
	return new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
}
