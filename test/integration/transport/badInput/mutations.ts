// Mutates good requests at random, the same way for the same seed. Some mutations hit the bytes,
// some the JSON, some the hex in it, since most damaged bytes are not JSON and get no further.

import type { SeededRandom } from "../../../support/seededRandom.ts";

/** Longer bodies are cut: what is too long is in the tables. */
const MAX_BYTES = 64 * 1024;

/** Values that have surprised some parser. */
const ODD_VALUES: readonly unknown[] = [
	...[
		null,
		true,
		false,
		0,
		-0,
		-1,
		1.5,
		2 ** 53,
		2 ** 64,
		1e308,
		"",
		"0",
		"0x",
		"0X0",
		"0x0",
		"0x00",
		"-0x1",
	],
	...["null", "latest", "pending", "\0", "\ud800", "😀", "\u202e", "__proto__", "2.0", " ", "\n", "1e9"],
	...[[], {}, [[]], [null], [{}], { "": "" }, ["0x"], { blockHash: "0x" }, { blockNumber: "latest" }],
	...[`0x${"f".repeat(64)}`, `0x1${"0".repeat(64)}`, `0x${"0".repeat(40)}`, `0x${"a".repeat(5_000)}`],
	...["x".repeat(5_000), Array(200).fill(0), "eth_chainId", "eth_sendRawTransaction", "admin_nodeInfo"],
];

/** Pieces of text that mean something to a JSON parser, or should not. */
const ODD_TEXT: readonly string[] = [
	...[
		"null",
		"[]",
		"{}",
		'"',
		"\\",
		"\\u",
		"\\ud800",
		",",
		":",
		"[",
		"]",
		"{",
		"}",
		"1e999",
		"-",
		"0x",
		"NaN",
	],
	...["\ufeff", "\0", "\r\n", "//", "'", "Infinity", "[".repeat(300), '{"a":'.repeat(300), " ".repeat(100)],
	...['"__proto__":1,', '"id":1,', '"method":"nope",', '"params":{},', '"jsonrpc":"1.0",'],
	"99999999999999999999",
];

/** A spoilt `body`; `other` is what parts may be taken from. */
export function mutate(body: string, other: string, random: SeededRandom): Buffer {
	const kind = random.below(10);
	let bytes: Buffer;
	if (kind < 3) bytes = Buffer.from(spoilHex(body, random));
	else if (kind < 8) bytes = Buffer.from(spoilJson(body, random));
	else bytes = Buffer.from(spoilText(body, other, random, 1 + random.below(3)));
	if (random.below(8) === 0) bytes = spoilBytes(bytes, random);
	return bytes.subarray(0, MAX_BYTES);
}

/** Some digits of the longest run of hex become others, are lost or doubled. */
function spoilHex(text: string, random: SeededRandom): string {
	const start = text.lastIndexOf("0x") + 2;
	const end = Math.max(start, text.indexOf('"', start));
	const at = start + random.below(Math.max(1, end - start));
	const digit = "0123456789abcdefABCDEFgx -"[random.below(26)] ?? "0";
	switch (random.below(4)) {
		case 0:
			return text.slice(0, at) + text.slice(at + 1 + random.below(4));
		case 1:
			return text.slice(0, at) + digit.repeat(1 + random.below(66)) + text.slice(at);
		case 2:
			return text.slice(0, start) + random.bytes(1 + random.below(40)).toString("hex") + text.slice(end);
		default:
			return text.slice(0, at) + digit + text.slice(at + 1);
	}
}

function spoilText(text: string, other: string, random: SeededRandom, times: number): string {
	let spoilt = text;
	for (let i = 0; i < times; i++) {
		const from = random.below(spoilt.length + 1);
		const to = Math.min(spoilt.length, from + random.below(20));
		const piece = random.below(3) === 0 ? slice(other, random) : random.pick(ODD_TEXT);
		// Cut off behind it, without a piece, with one twice, with another one for it, or with another
		// one before it.
		const [left, right] = random.pick([
			[spoilt.slice(0, from), ""],
			[spoilt.slice(0, from), spoilt.slice(to)],
			[spoilt.slice(0, to), spoilt.slice(from)],
			[spoilt.slice(0, from) + piece, spoilt.slice(to)],
			[spoilt.slice(0, from) + piece, spoilt.slice(from)],
		]);
		spoilt = left + right;
	}
	return spoilt;
}

function slice(text: string, random: SeededRandom): string {
	const from = random.below(text.length);
	return text.slice(from, from + random.below(60));
}

function spoilBytes(bytes: Buffer, random: SeededRandom): Buffer {
	const spoilt = Buffer.from(bytes);
	for (let i = 0; i <= random.below(4) && spoilt.length > 0; i++) {
		spoilt[random.below(spoilt.length)] = random.below(256);
	}
	return spoilt;
}

/** One or two places of the value become something else; it stays JSON. */
function spoilJson(text: string, random: SeededRandom): string {
	const root = { value: JSON.parse(text) as unknown };
	for (let i = 0; i <= random.below(2); i++) {
		const places = placesOf(root);
		if (places.length === 0) break;
		const [holder, key] = random.pick(places);
		const kind = random.below(6);
		if (kind === 0) {
			if (Array.isArray(holder)) holder.splice(Number(key), 1);
			else delete holder[key];
		} else if (kind === 1) holder[key] = [holder[key]];
		else if (kind === 2 && Array.isArray(holder)) holder.push(holder[key]);
		else if (kind === 3) holder[key] = { ...Object(holder[key]), more: oddValue(random) };
		else holder[key] = oddValue(random);
	}
	return JSON.stringify(root.value) ?? "";
}

/** A copy: what is put into a body may be spoilt there. */
function oddValue(random: SeededRandom): unknown {
	return structuredClone(random.pick(ODD_VALUES));
}

type Holder = Record<string, unknown>;

/** Every place of a value that can be set: what holds it, and under which key. */
function placesOf(root: unknown): [Holder, string][] {
	const places: [Holder, string][] = [];
	const queue: unknown[] = [root];
	for (const value of queue) {
		if (typeof value !== "object" || value === null) continue;
		for (const key of Object.keys(value)) {
			places.push([value as Holder, key]);
			queue.push((value as Holder)[key]);
		}
	}
	return places;
}
