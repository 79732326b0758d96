// The id of a call, which is echoed exactly as written. JavaScript would write 12345678901234567890
// and 1.0 in other digits.

import { hasPlainId, idIn, type Span } from "./scan.ts";

/**
 * A number kept as text, since JavaScript would write it differently: 12345678901234567890, 1.0,
 * -0.
 */
export class ExactNumber {
	readonly text: string;
	constructor(text: string) {
		this.text = text;
	}
}

/** An id, echoed as it was written. */
export type RpcId = string | number | null | ExactNumber;

/** Maximum characters of an id, which is echoed in the answer. */
export const MAX_ID_CHARS = 64 * 1024;
export const LONG_ID = `id: expected at most ${MAX_ID_CHARS} characters`;
const ID_KEY = '"id"';

/** The id of a call that is not parsed; undefined if it has none that can be echoed. */
export function unparsedId(bytes: Buffer, span: Span): RpcId | undefined {
	// An escaped character takes six bytes.
	const text = idIn(bytes, span, 6 * MAX_ID_CHARS + 2);
	if (text === null) return undefined;
	try {
		const id: unknown = JSON.parse(text);
		if (typeof id === "number") return numberIn(bytes, span, id) ?? undefined;
		if (id === null) return null;
		return typeof id === "string" && id.length <= MAX_ID_CHARS ? id : undefined;
	} catch {
		return undefined;
	}
}

/** An id as JSON. */
export function idText(id: RpcId): string {
	if (typeof id === "string") return JSON.stringify(id);
	return id instanceof ExactNumber ? id.text : String(id);
}

export function isId(id: unknown): id is string | number | null | undefined {
	return id === undefined || id === null || typeof id === "string" || typeof id === "number";
}

/**
 * Whether the call in `text` has its id `id` written as JavaScript writes it, found without looking
 * at each byte. In a text without escapes, `"id"` can only be a key or a whole string. If it occurs
 * only once, it is the key of the id. Also false if that is not clear.
 */
export function isPlainlyIn(text: string, id: number): boolean {
	const at = text.indexOf(ID_KEY);
	return isIdAt(text, at, id) && text.indexOf(ID_KEY, at + 4) === -1 && !text.includes("\\");
}

/**
 * The same for all `entries` of a batch. If each entry has an `id`, and `"id"` occurs as often as
 * there are entries, these are their keys, in order.
 */
export function arePlainlyIn(text: string, entries: readonly unknown[]): boolean {
	let at = -1;
	for (const entry of entries) {
		const id =
			typeof entry === "object" && entry !== null ? (entry as { readonly id?: unknown }).id : undefined;
		at = text.indexOf(ID_KEY, at + 1);
		if (typeof id === "number" ? !isIdAt(text, at, id) : typeof id !== "string" || at === -1) return false;
	}
	return text.indexOf(ID_KEY, at + 1) === -1 && !text.includes("\\");
}

/** Whether the key of an id is at `at`, and `id` behind it as JavaScript writes it. */
function isIdAt(text: string, at: number, id: number): boolean {
	if (at === -1 || !Number.isSafeInteger(id) || text[at + ID_KEY.length] !== ":") return false;
	const digits = String(id);
	const from = at + ID_KEY.length + 1;
	const next = text[from + digits.length];
	return (next === "," || next === "}") && text.startsWith(digits, from);
}

/**
 * The id that JSON.parse reads as `id`, in its written form. A number only if every server writes
 * it like that. Null if too long.
 */
export function numberIn(bytes: Buffer, span: Span, id: number): number | ExactNumber | null {
	if (hasPlainId(bytes, span)) return id;
	const text = idIn(bytes, span) ?? String(id);
	if (text.length > MAX_ID_CHARS) return null;
	return Math.abs(id) <= Number.MAX_SAFE_INTEGER && String(id) === text ? id : new ExactNumber(text);
}
