// Text messages of a websocket as the bytes of their frames, many in one buffer. A frame that is
// written alone costs ten times as much time and a handful of objects. A short ASCII text that is
// sent alone is written as a string with its head, in which each character is a byte. That takes no
// buffer, and one part instead of two. https://www.rfc-editor.org/rfc/rfc6455#section-5.2

import type { Writable } from "node:stream";

/** The last and only frame of a text, unmasked. */
const TEXT = 0x81;
const SHORT = 125;
const TWO_BYTES = 126;
const EIGHT_BYTES = 127;
const MAX_TWO_BYTES = 0xffff;
const MAX_HEAD = 10;

/** A server's frames of `messages`, which are `bytes` together. */
export function textFrames(messages: readonly (Buffer | string)[], bytes: number): Buffer {
	const frames = Buffer.allocUnsafeSlow(bytes + messages.length * MAX_HEAD);
	let at = 0;
	for (const message of messages) {
		at = writeHead(frames, at, Buffer.byteLength(message));
		at += typeof message === "string" ? frames.write(message, at) : message.copy(frames, at);
	}
	return frames.subarray(0, at);
}

/** Writes the frame of one short message, which is `bytes` long. */
export function writeFrame(wire: Writable, message: Buffer | string, bytes: number): void {
	const isAscii = typeof message === "string" && message.length === bytes;
	if (!isAscii || bytes > MAX_TWO_BYTES) wire.write(textFrames([message], bytes));
	else wire.write(asciiHead(bytes) + message, "latin1");
}

function asciiHead(length: number): string {
	if (length <= SHORT) return String.fromCharCode(TEXT, length);
	return String.fromCharCode(TEXT, TWO_BYTES, length >>> 8, length & 0xff);
}

/** Returns where the message begins. */
function writeHead(frames: Buffer, at: number, length: number): number {
	frames[at] = TEXT;
	if (length <= SHORT) {
		frames[at + 1] = length;
		return at + 2;
	}
	if (length <= MAX_TWO_BYTES) {
		frames[at + 1] = TWO_BYTES;
		return frames.writeUInt16BE(length, at + 2);
	}
	frames[at + 1] = EIGHT_BYTES;
	return frames.writeBigUInt64BE(BigInt(length), at + 2);
}
