// Which known name somebody may have meant.

import { distance } from "fastest-levenshtein";

/** Short names are near to everything: letters of one that may be wrong, missing or too many, by its length. */
function mayDiffer(length: number): number {
	if (length < 4) return 0;
	return length < 8 ? 1 : 2;
}

/** The one of `known` that `name` is, in any case, or nearly is; null where it is near to none. */
export function nearest(
	name: string,
	known: readonly string[],
	mostLetters: number = mayDiffer(name.length),
): string | null {
	const given = name.toLowerCase();
	let found: string | null = null;
	let least = mostLetters;
	for (const one of known) {
		const far = distance(given, one.toLowerCase());
		if (far > least || (far === least && found !== null)) continue;
		found = one;
		least = far;
	}
	return found;
}
