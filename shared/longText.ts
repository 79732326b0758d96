// Joins the texts of a long answer over several turns of the event loop. Copying 25 megabytes
// would block it for too long.

import { nextTurn } from "./clock.ts";

/** A longer answer is joined over several turns of the event loop. */
const LONG_CHARS = 1024 * 1024;
/** Characters that are copied in one turn. Many answers may be joined at the same time. */
const TURN_CHARS = 256 * 1024;

/** The UTF-8 bytes of all `texts`, concatenated. */
export async function joinInTurns(texts: readonly (Buffer | string)[]): Promise<Buffer> {
	let length = 0;
	await inTurns(texts, (text) => {
		length += Buffer.byteLength(text);
	});
	const joined = Buffer.allocUnsafeSlow(length);
	let at = 0;
	await inTurns(texts, (text) => {
		at += typeof text === "string" ? joined.write(text, at) : text.copy(joined, at);
	});
	return joined;
}

/**
 * Concatenates the `chunks` of an answer, which have `length` bytes together. A long answer takes
 * several turns of the event loop.
 */
export function joinChunks(chunks: readonly Buffer[], length: number): Buffer | Promise<Buffer> {
	if (length > LONG_CHARS) return joinInTurns(chunks);
	const [only] = chunks;
	return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, length);
}

async function inTurns(
	texts: readonly (Buffer | string)[],
	work: (text: Buffer | string) => void,
): Promise<void> {
	let chars = 0;
	for (const text of parts(texts)) {
		work(text);
		chars += text.length;
		if (chars < TURN_CHARS) continue;
		chars = 0;
		await nextTurn();
	}
}

/** The same texts, with long bytes in parts. */
function* parts(texts: readonly (Buffer | string)[]): Iterable<Buffer | string> {
	for (const text of texts) {
		if (typeof text === "string" || text.length <= TURN_CHARS) yield text;
		else for (let at = 0; at < text.length; at += TURN_CHARS) yield text.subarray(at, at + TURN_CHARS);
	}
}
