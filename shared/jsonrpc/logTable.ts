// The logs of one block, indexed by address and topics. Each is made into JSON once, for all
// readers. The cost of a filter is bounded by the number of logs, however many addresses and topics
// it names.

import { nextTurn } from "../clock.ts";
import { JsonText } from "./answers.ts";
import type { Log, LogFilter } from "./logs.ts";
import { firstEntry, isList, isListEnd, listStart, nextEntry } from "./scan.ts";

/** The logs that one filter selects, in order. */
export interface SelectedLogs {
	/** Each as JSON, without the end of its object. */
	readonly heads: readonly string[];
	/** The end of each, which tells whether its block has left the chain. */
	readonly tail: string;
	/** Bytes of all of them together, with their ends. */
	readonly bytes: number;
}

/** The elements of a list, with commas between them. */
export function elementsOf({ heads, tail, bytes }: SelectedLogs): Buffer {
	const elements = Buffer.allocUnsafeSlow(bytes + heads.length);
	let at = 0;
	for (const head of heads) {
		at += elements.write(head, at);
		at += elements.write(tail, at, "latin1");
		at += elements.write(",", at, "latin1");
	}
	return elements.subarray(0, Math.max(0, at - 1));
}

/**
 * Characters of logs that are read in one turn of the event loop, which takes some milliseconds.
 */
const TURN_CHARS = 64 * 1024;
const KEPT = '"removed":false}';
const REMOVED = '"removed":true}';
/** A log's address is indexed as position 0, and its topics follow. */
const POSITIONS = 5;

/** A table that never changes after it is made. */
export class LogTable {
	readonly #heads: string[] = [];
	readonly #bytes: number[] = [];
	readonly #topics: number[] = [];
	/** By position and value: the numbers of the logs with it. */
	readonly #having = Array.from({ length: POSITIONS }, () => new Map<string, number[]>());
	/** The JSON of all logs, in bytes. */
	bytes = 0;

	get size(): number {
		return this.#heads.length;
	}

	add(log: Log): void {
		const { removed: _, ...rest } = log as Log & { readonly removed?: unknown };
		const head = `${JSON.stringify(rest).slice(0, -1)},`;
		const bytes = Buffer.byteLength(head) + KEPT.length;
		const at = this.#heads.push(head) - 1;
		this.#bytes.push(bytes);
		this.#topics.push(log.topics.length);
		this.bytes += bytes;
		this.#index(0, log.address, at);
		for (const [i, topic] of log.topics.entries()) this.#index(1 + i, topic, at);
	}

	/** The logs that `filter` selects. `removed`: in the form for a block that has left the chain. */
	select(filter: LogFilter, removed: boolean): SelectedLogs {
		const { size } = this;
		const tail = removed ? REMOVED : KEPT;
		// Counts the wanted positions at which each log matches. A log has one value at each
		// position, so this visits each log once for each.
		const met = new Uint8Array(size);
		let wanted = 0;
		for (const [position, values] of [filter.address, ...filter.topics].entries()) {
			if (values.length === 0) continue;
			for (const value of new Set(values)) {
				for (const at of this.#having[position]?.get(value) ?? [])
					if (met[at] === wanted) met[at] = wanted + 1;
			}
			wanted += 1;
		}
		const heads: string[] = [];
		let bytes = 0;
		for (let at = 0; at < size; at++) {
			if (met[at] !== wanted || (this.#topics[at] ?? 0) < filter.topics.length) continue;
			heads.push(this.#heads[at] ?? "");
			bytes += this.#bytes[at] ?? 0;
		}
		return { heads, tail, bytes: bytes + heads.length * (tail.length - KEPT.length) };
	}

	#index(position: number, value: string, at: number): void {
		const index = this.#having[position];
		const having = index?.get(value);
		if (having === undefined) index?.set(value, [at]);
		else having.push(at);
	}
}

/**
 * The table of a node's answer to `eth_getLogs`, which may be parsed or, if it is long, text. Made
 * in turns of the event loop. Null if it is not a list of logs.
 */
export async function readLogs(answer: unknown): Promise<LogTable | null> {
	const table = new LogTable();
	let chars = 0;
	for (const [log, length] of answer instanceof JsonText ? entriesOf(answer.text) : parsedOf(answer)) {
		if (!isLog(log)) return null;
		table.add(log);
		chars += length;
		if (chars < TURN_CHARS) continue;
		chars = 0;
		await nextTurn();
	}
	return table;
}

/**
 * The entries of the list in `text`, each with its length. An invalid log if the text is not a
 * list.
 */
function* entriesOf(text: string): Iterable<readonly [unknown, number]> {
	const json = Buffer.from(text);
	if (!isList(json)) return yield NO_LOG;
	let end = listStart(json);
	for (let entry = firstEntry(json); entry !== null; entry = nextEntry(json, entry)) {
		end = entry.to;
		yield [parsed(json.toString("utf8", entry.from, end)), end - entry.from];
	}
	if (!isListEnd(json, end)) yield NO_LOG;
}

function* parsedOf(answer: unknown): Iterable<readonly [unknown, number]> {
	if (!Array.isArray(answer)) return yield NO_LOG;
	for (const log of answer) yield [log, PARSED_CHARS];
}

const NO_LOG = [null, 0] as const;
/** Approximate characters of a log that is parsed already. */
const PARSED_CHARS = 512;

function parsed(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
}

function isLog(value: unknown): value is Log {
	const { address, topics } = (value ?? {}) as Partial<Log>;
	return typeof address === "string" && Array.isArray(topics) && topics.length < POSITIONS;
}
