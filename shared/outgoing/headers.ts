// The headers of every outgoing request, and the unpacking of answers that are compressed although
// we did not request it.

import { promisify } from "node:util";
import { brotliDecompress, inflateRaw, unzip } from "node:zlib";
import { VERSION } from "../version.ts";

/**
 * Hosts refuse clients without a name. We request no encoding: answers are short, and unpacking a
 * long one costs more than its bytes. https://www.rfc-editor.org/rfc/rfc9110#field.user-agent
 */
export const OUTGOING_HEADERS = {
	"user-agent": `leeward/${VERSION}`,
	"accept-encoding": "identity",
} as const;

/** The `Authorization` by the credentials in a URL; null if there are none. */
export function authorizationOf({ username, password }: URL): string | null {
	if (username === "" && password === "") return null;
	const pair = `${decoded(username)}:${decoded(password)}`;
	return `Basic ${Buffer.from(pair).toString("base64")}`;
}

/** Decodes percent-encoding; a "%" that encodes nothing stays. */
function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

/** The value of an answer's header, the first one if it is given several times. */
export function firstOf(value: string | string[] | undefined): string | undefined {
	return typeof value === "string" ? value : value?.[0];
}

/** The answer's encoding is unknown, or its bytes are not in it. */
export class EncodingError extends Error {
	readonly code = "ENCODING";
	constructor() {
		super("an answer in an encoding that can't be read");
		this.name = "EncodingError";
	}
}

/** The unpacked answer has more bytes than the limit. */
export class TooLargeError extends Error {
	readonly code = "TOO_LARGE";
	constructor() {
		super("an answer with too many bytes");
		this.name = "TooLargeError";
	}
}

/**
 * Maximum encodings of one answer. A header has room for thousands, each of which may cost
 * `maxBytes` of work.
 */
const MOST_ENCODINGS = 5;

type Unpack = (bytes: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

const unzipped: Unpack = promisify(unzip);
const inflated: Unpack = promisify(inflateRaw);

/** Servers send `deflate` with and without the header of zlib. */
const deflated: Unpack = (bytes, options) =>
	unzipped(bytes, options).catch((thrown: unknown) => {
		if (isTooLarge(thrown)) throw thrown;
		return inflated(bytes, options);
	});

const UNPACK: Readonly<Record<string, Unpack>> = {
	gzip: unzipped,
	"x-gzip": unzipped,
	deflate: deflated,
	br: promisify(brotliDecompress),
};

/** The names in a `Content-Encoding`, the last one applied first; none for an answer as it is. */
export function encodingsOf(header: string | undefined): readonly string[] {
	if (header === undefined) return [];
	const names = header.split(",").map((name) => name.trim().toLowerCase());
	return names.filter((name) => name !== "" && name !== "identity").reverse();
}

/**
 * The bytes of an answer in the encodings of {@link encodingsOf}. Throws {@link EncodingError}, or
 * {@link TooLargeError} as soon as they exceed `maxBytes`.
 */
export async function unpacked(
	bytes: Buffer,
	encodings: readonly string[],
	maxBytes: number,
): Promise<Buffer> {
	if (encodings.length > MOST_ENCODINGS) throw new EncodingError();
	let plain = bytes;
	for (const name of encodings) {
		const unpack = UNPACK[name];
		if (unpack === undefined) throw new EncodingError();
		try {
			plain = await unpack(plain, { maxOutputLength: maxBytes });
		} catch (thrown) {
			throw isTooLarge(thrown) ? new TooLargeError() : new EncodingError();
		}
	}
	return plain;
}

function isTooLarge(thrown: unknown): boolean {
	return (thrown as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE";
}
