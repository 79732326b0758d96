// Reads JSON of unknown shape from a node: a value of the wanted type, or null.

/** Whether it is an object and no array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Lower-case 0x hex of whole bytes, or null. */
export function readHex(value: unknown): string | null {
	return typeof value === "string" && BYTES.test(value) ? value.toLowerCase() : null;
}

const BYTES = /^0x(?:[0-9a-f]{2})*$/i;
