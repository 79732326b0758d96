// The schemas that JSON-RPC parameters are made of. Each says in its error what was expected, and the method
// table adds which parameter it was.

import { z } from "zod";
import { hexToBytes, parseAddress, parseHash, parseQuantity, toQuantity } from "../ethereum/hex.ts";

/** A string that `read` makes a value of; null refuses it. `pattern` is what the document says of it. */
function readString<T>(expects: string, pattern: string, read: (text: string) => T | null) {
	return z
		.string({ error: `expected ${expects}` })
		.transform((text, context): T => {
			const value = read(text);
			if (value !== null) return value;
			context.issues.push({ code: "custom", message: `expected ${expects}`, input: text });
			return z.NEVER;
		})
		.meta({ description: expects, pattern });
}

/** A list of up to `max` elements (and `min` at least), whose length is looked at before any of them is. */
export function boundedList<T extends z.ZodType>(element: T, max: number, expected: string, min = 0) {
	return z.preprocess((value, context) => {
		if (Array.isArray(value) && value.length >= min && value.length <= max) return value;
		context.issues.push({ code: "custom", message: `expected ${expected}`, input: undefined });
		return z.NEVER;
	}, z.array(element).min(min).max(max));
}

/** 32 bytes, to lower-case hex. */
export const hash = readString("a hash of 32 bytes as 0x hex", "^0[xX][0-9a-fA-F]{64}$", parseHash);

/** 20 bytes, to lower-case hex. Checksums are not looked at. */
export const address = readString("an address of 20 bytes as 0x hex", "^0[xX][0-9a-fA-F]{40}$", parseAddress);

const HEX_PATTERN = "^0[xX](?:[0-9a-fA-F]{2})*$";

/** Bytes of any number, to lower-case hex. */
export const hexData = readString("bytes as 0x hex", HEX_PATTERN, (text) =>
	/^0x[0-9a-f]*$/i.test(text) && text.length % 2 === 0 ? text.toLowerCase() : null,
);

/** Bytes of any number, to bytes; `expects` tells what they are: "a signed transaction as 0x hex". */
export function rawBytes(expects: string) {
	return readString<Uint8Array>(expects, HEX_PATTERN, hexToBytes);
}

const QUANTITY_PATTERN = "^0[xX](?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})$";

/** A number of at most 256 bits without leading zeros, to a bigint. */
export const quantity = readString("a 0x hex number without leading zeros", QUANTITY_PATTERN, parseQuantity);

/** Blocks that have a name. */
const BLOCK_TAGS = ["latest", "pending", "safe", "finalized", "earliest"] as const;
export type BlockTag = (typeof BLOCK_TAGS)[number];

const TAG_PATTERN = `^(?:${BLOCK_TAGS.join("|")})$`;
const BLOCK = "a block number as 0x hex, or one of latest, pending, safe, finalized, earliest";
const REFERENCE = `${BLOCK}, or an object with blockHash or blockNumber`;

/** A block by number, to a bigint, or by tag. */
export const blockNumberOrTag = readString(BLOCK, `${QUANTITY_PATTERN}|${TAG_PATTERN}`, (text) =>
	isTag(text) ? text : parseQuantity(text),
);

/**
 * A block by number, tag or hash (EIP-1898), in the form in which a node takes it: a lower-case quantity or tag, or
 * an object of `blockHash` (with `requireCanonical`) or `blockNumber`.
 */
export const blockReference = z.union(
	[
		readString(BLOCK, `${QUANTITY_PATTERN}|${TAG_PATTERN}`, (text) =>
			isTag(text) ? text : wireQuantity(text),
		),
		z.strictObject({ blockHash: hash, requireCanonical: z.boolean().optional() }),
		z.strictObject({ blockNumber: readString(BLOCK, QUANTITY_PATTERN, wireQuantity) }),
	],
	{ error: `expected ${REFERENCE}` },
);

function isTag(text: string): text is BlockTag {
	return (BLOCK_TAGS as readonly string[]).includes(text);
}

function wireQuantity(text: string): string | null {
	const value = parseQuantity(text);
	return value === null ? null : toQuantity(value);
}
