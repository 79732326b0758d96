// Every text of the code that people may read: log lines, the help of metrics, and errors with the
// words that they are made of. docs/messages.md lists them, so that one can read them all at once.

import { filesOf } from "./sources.ts";

type Kind = "log" | "metric" | "text";

/** A text as the code has it, with `…` for each value in it. */
export interface Message {
	readonly kind: Kind;
	readonly text: string;
	/** Paths of the files that have it. */
	readonly files: readonly string[];
}

const FOLDERS = ["relay", "boost-proxy", "shared"];
/** Strings and comments, in order: a quotation mark within a comment begins no string. */
const STRINGS = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/.*/g;
const VALUE = /\$\{(?:[^{}`]|\{[^{}]*\}|`[^`]*`)*\}/g;
/** Two words at least. */
const PROSE = /[a-z]{2,} [a-z]{2,}/i;
/** SQL, markup, code and patterns. */
const OTHER = /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|SET|LISTEN)\b|[<{;]|\(\?[:!<]/;
/** Other documents list these: settings, methods and their results. */
const LISTED = /(?:\b(?:summary|description|title):|\.describe\()$/;

let all: readonly Message[] | null = null;

/** All messages, sorted by text. */
export function messages(): readonly Message[] {
	all ??= read();
	return all;
}

function read(): readonly Message[] {
	const found = new Map<string, { kind: Kind; text: string; files: string[] }>();
	for (const [path, source] of FOLDERS.flatMap((folder) => [...filesOf(folder)])) {
		// Other tables have the texts of settings.
		if (/onfig\.ts$/.test(path)) continue;
		for (const { kind, text } of textsOf(path, source)) {
			const known = found.get(`${kind} ${text}`);
			if (known === undefined) found.set(`${kind} ${text}`, { kind, text, files: [path] });
			else if (!known.files.includes(path)) known.files.push(path);
		}
	}
	return [...found.values()].sort((a, b) => (a.text < b.text ? -1 : 1));
}

function* textsOf(path: string, source: string): Generator<{ readonly kind: Kind; readonly text: string }> {
	for (const { 0: string, index } of source.matchAll(STRINGS)) {
		if (string.startsWith("/")) continue;
		const text = string.slice(1, -1).replaceAll(VALUE, "…").replaceAll("\\n", " ").trim();
		if (!PROSE.test(text) || OTHER.test(text)) continue;
		const before = source.slice(0, index).trimEnd();
		if (LISTED.test(before)) continue;
		yield { kind: kindOf(path, before), text };
	}
}

function kindOf(path: string, before: string): Kind {
	if (/\.(?:trace|debug|info|warn|error)\($/.test(before)) return "log";
	return /(?:etrics|gauges)\.ts$/.test(path) ? "metric" : "text";
}
