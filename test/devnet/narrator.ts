// Turns the logs of relay and boost into readable lines about transactions and boost's breakers,
// with colours on a terminal.

import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { styleText } from "node:util";

/** The fields of a log line that are used. */
interface LogLine {
	readonly level?: number;
	readonly msg?: string;
	readonly hash?: string;
	readonly path?: string;
	readonly block?: number;
	readonly ms?: number;
	readonly code?: string | number;
	readonly reason?: string;
	readonly upstream?: string;
	readonly fault?: { readonly code?: string; readonly host?: string; readonly reason?: string };
}

export interface Narration {
	print(text: string): void;
	readonly colour: boolean;
	/** Words for each reason that boost's breakers open for. */
	readonly reasons: Readonly<Record<string, string>>;
}

type Style = "dim" | "green" | "red" | "yellow" | "cyan";

const WARN = 40;
const STYLES: readonly (readonly [RegExp, Style])[] = [
	[/mined|closed|taken by/, "green"],
	[/refused|reverted|fails|opened|expired|dropped/, "red"],
	[/cancelled|replaced|forwarded/, "yellow"],
];
/** Whether to use colours on `stream`. https://no-color.org */
export function usesColour(stream: NodeJS.WriteStream): boolean {
	return stream.isTTY === true && (process.env.NO_COLOR ?? "") === "";
}

/**
 * The text of a line of `who`'s log ("the relay", "the fallback", "boost 2"); null if it is of no
 * interest.
 */
function told(who: string, text: string, reasons: Narration["reasons"]): string | null {
	const line = parsed(text);
	if (line === null) return text === "" ? null : `${who}: ${text}`;
	const { level = 0, msg = "", hash, path, block, ms, code, upstream, reason } = line;
	const at = upstream === "fallback" ? "the fallback" : "the relay";
	const isBoost = who.startsWith("boost");
	if (msg === "breaker opened")
		return `${who}: the breaker of ${at} has opened (${reasons[reason ?? ""] ?? reason})`;
	if (msg === "breaker closed") return `${who}: the breaker of ${at} has closed: it serves again`;
	if (hash !== undefined && msg.startsWith("transaction")) {
		if (isBoost && msg === "transaction ended") return null;
		const what = isBoost && msg === "transaction accepted" ? `taken by ${at}` : msg.slice(12);
		const parts = [
			...(path === undefined ? [] : [`/${path}`]),
			...(block === undefined ? [] : [`block ${block}`]),
			...(ms === undefined ? [] : [`${(ms / 1000).toFixed(1)} s`]),
			...(code === undefined ? [] : [String(code)]),
			...(isBoost && msg === "transaction forwarded" ? [`to ${at}`] : []),
		];
		return `${hash.slice(0, 10)}…  ${who}: ${what} (${parts.join(", ")})`;
	}
	if (level < WARN) return null;
	const { host, reason: cause } = line.fault ?? {};
	const more = reason ?? [cause ?? line.fault?.code, host].filter((one) => one !== undefined).join(", ");
	return `${who}: ${msg}${more === "" ? "" : ` (${more})`}`;
}

/** Prints the narrated lines of `stream`, with the time, until it ends. */
export function narrate(who: string, stream: Readable, { print, colour, reasons }: Narration): void {
	createInterface({ input: stream }).on("line", (text) => {
		const line = told(who, text, reasons);
		if (line === null) return;
		const style = STYLES.find(([words]) => words.test(line))?.[1];
		const time = new Date().toTimeString().slice(0, 8);
		print(`${painted(time, "dim", colour)}  ${style === undefined ? line : painted(line, style, colour)}`);
	});
}

/** `text` in a colour if colours are used. */
export function painted(text: string, style: Style, colour: boolean): string {
	return colour ? styleText(style, text, { validateStream: false }) : text;
}

function parsed(text: string): LogLine | null {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === "object" && value !== null ? value : null;
	} catch {
		return null;
	}
}
