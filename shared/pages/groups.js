// Groups sorted items, and reads few of their keys. Pure.

/**
 * `[key, items]` for each run of `items` with one key. `keyOf` may be slow. The items are sorted by
 * their keys, so between two equal keys no other one is read.
 */
export async function groups(items, keyOf) {
	if (items.length === 0) return [];
	const runs = await runsOf(items, await Promise.all([keyOf(items[0]), keyOf(items.at(-1))]), keyOf);
	const joined = [];
	for (const [key, run] of runs) {
		if (joined.at(-1)?.[0] === key) joined.at(-1)[1].push(...run);
		else joined.push([key, run]);
	}
	return joined;
}

/** `first`, `last`: the keys of the ends. */
async function runsOf(items, [first, last], keyOf) {
	if (first === last) return [[first, [...items]]];
	const middle = items.length >> 1;
	const [before, behind] = await Promise.all([keyOf(items[middle - 1]), keyOf(items[middle])]);
	const halves = [
		runsOf(items.slice(0, middle), [first, before], keyOf),
		runsOf(items.slice(middle), [behind, last], keyOf),
	];
	return (await Promise.all(halves)).flat();
}
