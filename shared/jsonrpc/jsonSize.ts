// How much work a JSON text or value is, told before anything works on it: JSON.parse and the schemas need hundreds of
// milliseconds for two megabytes of "{}", and a hundred times less for as many bytes of one string.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;
/** From what opens to what closes: "]" and "}" both. */
const CLOSING = 2;
/** Bytes of a text that are looked at one by one before its end is searched, which costs more to begin with. */
const SHORT_TEXT = 64;

/**
 * Whether `json` has more than `max` values: its lists, objects and what stands in them. Never parses: of a text that is
 * no JSON the answer says how many there would be.
 */
export function hasMoreValues(json: Buffer, max: number): boolean {
	const { length } = json;
	// Each value but the first stands behind a comma, or is the first of its list or object; those may be empty.
	let values = 1;
	for (let i = 0; i < length; i++) {
		const byte = json[i];
		if (byte === QUOTE) i = textEnd(json, i + 1);
		else if (byte === COMMA || ((byte === BRACE || byte === BRACKET) && json[i + 1] !== byte + CLOSING)) {
			values++;
			if (values > max) return true;
		}
	}
	return false;
}

/** Where the quote is that ends the text which begins at `start`, or the end of the bytes. */
function textEnd(json: Buffer, start: number): number {
	const { length } = json;
	let i = start;
	for (;;) {
		const soon = Math.min(length, i + SHORT_TEXT);
		for (; i < soon; i++) {
			const byte = json[i];
			if (byte === QUOTE) return i;
			if (byte === BACKSLASH) i++;
		}
		if (i >= length) return length;
		const quote = json.indexOf(QUOTE, i);
		if (quote === -1) return length;
		let escapes = 0;
		while (quote - escapes > i && json[quote - escapes - 1] === BACKSLASH) escapes++;
		if (escapes % 2 === 0) return quote;
		i = quote + 1;
	}
}

/** How deep and how large a value is. */
export interface Measured {
	/** About as many characters as it has as JSON; infinite where it nests too deep. */
	readonly size: number;
	/** False where a text or a key in it has half a surrogate pair, which other parsers refuse as no JSON at all. */
	readonly wellFormed: boolean;
}

/** Measures a value that JSON.parse made, down to `maxDepth`. Level by level, not by recursion. */
export function measure(value: unknown, maxDepth: number): Measured {
	let size = 0;
	let level = [value];
	for (let depth = 0; depth <= maxDepth; depth++) {
		const below: unknown[] = [];
		for (const one of level) {
			if (typeof one === "string") {
				if (!one.isWellFormed()) return { size, wellFormed: false };
				size += one.length + 2;
				continue;
			}
			if (typeof one !== "object" || one === null) {
				size += String(one).length;
				continue;
			}
			const keys = Array.isArray(one) ? null : Object.keys(one);
			for (const key of keys ?? []) {
				if (!key.isWellFormed()) return { size, wellFormed: false };
				size += key.length + 3;
			}
			// By value, and not by entries, which cost three times as much.
			const inner: unknown[] = keys === null ? (one as unknown[]) : Object.values(one);
			size += 1 + Math.max(1, inner.length);
			for (const next of inner) {
				if (typeof next === "string" || (typeof next === "object" && next !== null)) below.push(next);
				else size += String(next).length;
			}
		}
		if (below.length === 0) return { size, wellFormed: true };
		level = below;
	}
	return { size: Number.POSITIVE_INFINITY, wellFormed: true };
}
