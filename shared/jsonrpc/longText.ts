// Joins the texts of a long answer in turns of the event loop: copying 25 megabytes takes longer than a request may keep it.

import { nextTurn } from "../clock.ts";

/** Characters that are copied in one turn of the event loop. */
const TURN_CHARS = 1024 * 1024;

/** The UTF-8 bytes of all `texts`, one behind the other. */
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

/** The `chunks` of an answer, which are `length` bytes, in one; a long answer in turns of the event loop. */
export function joinChunks(chunks: readonly Buffer[], length: number): Buffer | Promise<Buffer> {
	if (length > TURN_CHARS) return joinInTurns(chunks);
	const [only] = chunks;
	return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, length);
}

async function inTurns(
	texts: readonly (Buffer | string)[],
	work: (text: Buffer | string) => void,
): Promise<void> {
	let chars = 0;
	for (const text of texts) {
		work(text);
		chars += text.length;
		if (chars < TURN_CHARS) continue;
		chars = 0;
		await nextTurn();
	}
}
