// The queries of submissions as dialects need them: the query as it came goes in, its parameters come out. Never throws,
// whatever a client put there.

/** Names beyond these say nothing more to whoever reads the header that they end in. */
const MAX_NAMES = 16;
const MAX_NAME_LENGTH = 64;

/** A parameter, percent-decoded. */
export interface Parameter {
	readonly name: string;
	readonly value: string;
}

/** The parameters in their order. */
export function readParameters(search: string): readonly Parameter[] {
	if (search === "") return [];
	return [...new URLSearchParams(search)].map(([name, value]) => ({ name, value }));
}

/** What was dropped: each name once, percent-encoded so that a header can carry it, and cut where it is long. */
export function dropped(names: Iterable<string>): readonly string[] {
	const told = new Set<string>();
	for (const name of names) {
		if (told.size === MAX_NAMES) break;
		told.add(encodeURIComponent([...name].slice(0, MAX_NAME_LENGTH).join("")));
	}
	return [...told];
}

/** `path` with the parameters behind it, percent-encoded. */
export function targetOf(path: string, parameters: readonly (readonly [string, string])[]): string {
	if (parameters.length === 0) return path;
	return `${path}?${parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}
