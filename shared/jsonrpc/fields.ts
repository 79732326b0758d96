// Objects of parsed JSON, before their fields are checked.

/** The fields of an object; each may be anything or missing. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether `value` is an object, not an array. */
export function isObject(value: unknown): value is Fields {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
