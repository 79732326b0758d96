// Finds in the bytes of a JSON text what JSON.parse loses or costs too much to find: where the entries of a batch are, the
// digits of an id, and the number of values. It never parses and checks nothing: what it finds holds if the text is JSON.

/** One value of a JSON text. All positions are in bytes. */
export interface Span {
	readonly from: number;
	/** Behind it and the spaces that follow it. */
	readonly to: number;
	/** The lists, objects and their elements in it, itself included. */
	readonly values: number;
	/** The text of its member `id` if it is an object, of the last one as in JSON.parse; `idFrom` is -1 without one. */
	readonly idFrom: number;
	readonly idTo: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const ZERO = 0x30;
/** Every number of so many digits is kept exactly by JavaScript. */
const SAFE_DIGITS = 15;
const BRACKET = 0x5b;
const BRACE = 0x7b;
/** Added to an opening bracket or brace it gives the closing one. */
const CLOSING = 2;
/** The one bit in which brackets and braces differ. */
const CURLY = 0x20;
/** Bytes of a string that are read one by one before `indexOf` is used, which costs more to start. */
const SHORT_TEXT = 64;
/** `"id"` with both letters escaped. */
const LONGEST_ID_KEY = 14;

/** Whether the text is a list. */
export function isList(json: Buffer): boolean {
	return json[skipSpace(json, 0)] === BRACKET;
}

/** The value that begins at `from` and ends before the next comma or closing bracket of what is around it. */
export function scanValue(json: Buffer, from: number): Span {
	const { length } = json;
	// Each value but the outermost follows a comma, or is the first element of a list or object that is not empty.
	let values = 1;
	let depth = 0;
	let isObject = false;
	let isKey = false;
	let isIdOpen = false;
	let idFrom = -1;
	let idTo = -1;
	let i = from;
	for (; i < length; i++) {
		const byte = json[i] as number;
		if (byte === QUOTE) {
			const end = textEnd(json, i + 1);
			if (isKey) {
				isKey = false;
				if (isIdKey(json, i, end)) {
					idFrom = end + 1;
					isIdOpen = true;
				}
			}
			i = end;
		} else if (byte === COMMA) {
			if (depth === 0) break;
			values++;
			if (depth === 1 && isObject) {
				if (isIdOpen) idTo = i;
				isIdOpen = false;
				isKey = true;
			}
		} else if ((byte | CURLY) === BRACE) {
			depth++;
			if (json[i + 1] !== byte + CLOSING) values++;
			if (depth === 1) {
				isObject = byte === BRACE;
				isKey = isObject;
			}
		} else if ((byte | CURLY) === BRACE + CLOSING) {
			if (depth === 0) break;
			depth--;
			if (depth === 0) {
				if (isIdOpen) idTo = i;
				isIdOpen = false;
			}
		}
	}
	if (isIdOpen) idFrom = -1;
	return { from, to: Math.min(i, length), values, idFrom, idTo };
}

/** The first entry of a list; null if it is empty. */
export function firstEntry(json: Buffer): Span | null {
	const at = listStart(json);
	return json[at] === BRACKET + CLOSING ? null : scanValue(json, at);
}

/** The entry behind `entry`; null if that is the last. */
export function nextEntry(json: Buffer, entry: Span): Span | null {
	return json[entry.to] === COMMA ? scanValue(json, entry.to + 1) : null;
}

/**
 * The entries of a list, at most `max` and one more, which shows that there are more. Null if the text does not end with the
 * list.
 */
export function scanList(json: Buffer, max: number): readonly Span[] | null {
	const entries: Span[] = [];
	let end = listStart(json);
	for (let entry = firstEntry(json); entry !== null; entry = nextEntry(json, entry)) {
		entries.push(entry);
		if (entries.length > max) return entries;
		end = entry.to;
	}
	const isClosed = json[end] === BRACKET + CLOSING && skipSpace(json, end + 1) === json.length;
	return isClosed ? entries : null;
}

/** The position of what follows the opening bracket. */
function listStart(json: Buffer): number {
	return skipSpace(json, skipSpace(json, 0) + 1);
}

/** The text of the member `id`, without the spaces around it; null if there is none, or if it has more than `max` bytes. */
export function idIn(json: Buffer, { idFrom, idTo }: Span, max = Number.POSITIVE_INFINITY): string | null {
	if (idFrom === -1) return null;
	const colon = skipSpace(json, idFrom);
	if (json[colon] !== COLON) return null;
	const from = skipSpace(json, colon + 1);
	let to = idTo;
	while (to > from && isSpace(json[to - 1])) to--;
	return to - from > max ? null : json.toString("utf8", from, to);
}

/** Whether the member `id` is written as digits alone, at most 15 and none of them a zero in front, so that none can be lost. */
export function hasPlainId(json: Buffer, { idFrom, idTo }: Span): boolean {
	let at = skipSpace(json, skipSpace(json, idFrom) + 1);
	const first = at;
	while (at < idTo && isDigit(json[at])) at++;
	const digits = at - first;
	const isShort = digits === 1 || (digits > 1 && digits <= SAFE_DIGITS && json[first] !== ZERO);
	return isShort && skipSpace(json, at) === idTo;
}

function isDigit(byte: number | undefined): boolean {
	return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}

/** Whether the key between two quotes is `id`, which may be written with escapes. */
function isIdKey(json: Buffer, from: number, to: number): boolean {
	const length = to + 1 - from;
	if (length === 4) return json[from + 1] === 0x69 && json[from + 2] === 0x64;
	if (length < 4 || length > LONGEST_ID_KEY) return false;
	const key = json.toString("latin1", from, to + 1);
	if (!key.includes("\\")) return false;
	try {
		return JSON.parse(key) === "id";
	} catch {
		return false;
	}
}

function skipSpace(json: Buffer, from: number): number {
	let i = from;
	while (i < json.length && isSpace(json[i])) i++;
	return i;
}

function isSpace(byte: number | undefined): boolean {
	return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The index of the quote that ends the string beginning at `start`, or the length of `json`. */
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
