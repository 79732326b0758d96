// Finds the known name that a misspelt one probably means.

import { distance } from "fastest-levenshtein";

/**
 * How many letters of a name may differ. None for short names, since many names are close to them.
 */
function mayDiffer(length: number): number {
	if (length < 4) return 0;
	return length < 8 ? 1 : 2;
}

/** The name in `known` that is closest to `name`, ignoring case. Null if none is close. */
export function nearest(
	name: string,
	known: readonly string[],
	mostLetters: number = mayDiffer(name.length),
): string | null {
	const given = name.toLowerCase();
	let found: string | null = null;
	let least = mostLetters;
	for (const one of known) {
		// Also limits the cost of a long name, which may come from a client.
		if (Math.abs(one.length - name.length) > least) continue;
		const far = distance(given, one.toLowerCase());
		if (far > least || (far === least && found !== null)) continue;
		found = one;
		least = far;
	}
	return found;
}

/** The end of an error about an unknown name: `: did you mean X?`, or nothing if none is close. */
export function didYouMean(name: string, known: readonly string[]): string {
	const meant = nearest(name, known);
	return meant === null ? "" : `: did you mean ${meant}?`;
}
