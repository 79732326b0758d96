// Finds in the bytes of a JSON text the parts that JSON.parse loses or finds too slowly: the places
// of a batch's entries, the digits of an id, and the number of values. It never parses and checks
// nothing, so its results are only valid for JSON.

/** One value of a JSON text. All positions are in bytes. */
export interface Span {
	readonly from: number;
	/** Behind it and the spaces that follow it. */
	readonly to: number;
	/** Number of lists, objects and their elements in it, including itself. */
	readonly values: number;
	/**
	 * The text of its member `id` if it is an object; of the last one, as in JSON.parse. `idFrom`
	 * is -1 without one.
	 */
	readonly idFrom: number;
	readonly idTo: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const ZERO = 0x30;
/** JavaScript keeps every number of up to this many digits exactly. */
const SAFE_DIGITS = 15;
const BRACKET = 0x5b;
const BRACE = 0x7b;
/** Added to an opening bracket or brace, it gives the closing one. */
const CLOSING = 2;
/** The one bit in which brackets and braces differ. */
const CURLY = 0x20;
/**
 * Bytes of a string that are read one by one before `indexOf` is used, which costs more to start.
 */
const SHORT_TEXT = 64;
const LETTER_I = 0x69;
const LETTER_D = 0x64;

/** Whether the text is a list. */
export function isList(json: Buffer): boolean {
	return json[skipSpace(json, 0)] === BRACKET;
}

/**
 * The value that begins at `from`. It ends before the next comma or closing bracket of the list or
 * object around it.
 */
export function scanValue(json: Buffer, from: number): Span {
	const { length } = json;
	// Each value but the outermost follows a comma, or is the first element of a list or object that
	// is not empty.
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
		// Spaces.
		if (byte < QUOTE) continue;
		if (byte === QUOTE) {
			const begin = i + 1;
			const soon = Math.min(length, begin + SHORT_TEXT);
			i = begin;
			while (i < soon && json[i] !== QUOTE && json[i] !== BACKSLASH) i++;
			if (json[i] !== QUOTE) i = textEnd(json, i);
			if (isKey) {
				isKey = false;
				if (isIdKey(json, begin, i)) {
					// Behind the colon.
					idFrom = skipSpace(json, skipSpace(json, i + 1) + 1);
					isIdOpen = true;
					i = idFrom - 1;
				}
			}
		} else if (byte === COMMA) {
			if (depth === 0) break;
			values++;
			if (depth === 1 && isObject) {
				if (isIdOpen) idTo = withoutSpace(json, idFrom, i);
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
				if (isIdOpen) idTo = withoutSpace(json, idFrom, i);
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

/** The entry after `entry`. Null if `entry` is the last. */
export function nextEntry(json: Buffer, entry: Span): Span | null {
	return json[entry.to] === COMMA ? scanValue(json, entry.to + 1) : null;
}

/**
 * The entries of a list: at most `max`, and one more if there are more. Null if the text does not
 * end with the list.
 */
export function scanList(json: Buffer, max: number): readonly Span[] | null {
	const entries: Span[] = [];
	let end = listStart(json);
	for (let entry = firstEntry(json); entry !== null; entry = nextEntry(json, entry)) {
		entries.push(entry);
		if (entries.length > max) return entries;
		end = entry.to;
	}
	return isListEnd(json, end) ? entries : null;
}

/** Whether a list closes at `at`, and nothing follows it. */
export function isListEnd(json: Buffer, at: number): boolean {
	return json[at] === BRACKET + CLOSING && skipSpace(json, at + 1) === json.length;
}

/** The position after the opening bracket of a list and the spaces behind it. */
export function listStart(json: Buffer): number {
	return skipSpace(json, skipSpace(json, 0) + 1);
}

/** The text of the member `id`; null if there is none, or if it has more than `max` bytes. */
export function idIn(json: Buffer, { idFrom, idTo }: Span, max = Number.POSITIVE_INFINITY): string | null {
	return idFrom === -1 || idTo - idFrom > max ? null : json.toString("utf8", idFrom, idTo);
}

/**
 * Whether the member `id` consists of digits alone: at most 15, without a leading zero, so that
 * none can be lost.
 */
export function hasPlainId(json: Buffer, { idFrom, idTo }: Span): boolean {
	const digits = idTo - idFrom;
	if (idFrom === -1 || digits > SAFE_DIGITS || (json[idFrom] === ZERO && digits > 1)) return false;
	for (let i = idFrom; i < idTo; i++) if (!isDigit(json[i])) return false;
	return true;
}

function isDigit(byte: number | undefined): boolean {
	return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}

/** Whether the key from `from` to `to` is `id`; either letter may be written as an escape. */
function isIdKey(json: Buffer, from: number, to: number): boolean {
	const second = behind(json, from, LETTER_I);
	return second !== -1 && behind(json, second, LETTER_D) === to;
}

/**
 * The position after the character `letter` (two hex digits) at `at`. -1 if another character is
 * there.
 */
function behind(json: Buffer, at: number, letter: number): number {
	if (json[at] === letter) return at + 1;
	const isEscaped =
		json[at] === BACKSLASH &&
		json[at + 1] === 0x75 &&
		json[at + 2] === ZERO &&
		json[at + 3] === ZERO &&
		json[at + 4] === ZERO + (letter >> 4) &&
		json[at + 5] === ZERO + (letter & 15);
	return isEscaped ? at + 6 : -1;
}

function skipSpace(json: Buffer, from: number): number {
	const { length } = json;
	let i = from;
	for (; i < length; i++) {
		const byte = json[i];
		if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
	}
	return i;
}

/** The position after the last byte from `from` to `to` that is not a space. */
function withoutSpace(json: Buffer, from: number, to: number): number {
	let end = to;
	for (; end > from; end--) {
		const byte = json[end - 1];
		if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
	}
	return end;
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
