// Which known name somebody may have meant.

import { distance } from "fastest-levenshtein";

/** Letters that may be wrong, missing or too many. */
const MAX_DISTANCE = 2;
/** A name as short as that is near to everything. */
const MIN_LENGTH = 4;

/** The one of `known` that `name` is, in any case, or nearly is; null where it is near to none. */
export function nearest(name: string, known: readonly string[]): string | null {
	const given = name.toLowerCase();
	let found: string | null = null;
	let least = given.length < MIN_LENGTH ? 0 : MAX_DISTANCE;
	for (const one of known) {
		const far = distance(given, one.toLowerCase());
		if (far > least || (far === least && found !== null)) continue;
		found = one;
		least = far;
	}
	return found;
}
