// Caches that keep the entries used last, and whose memory grows with what is in them.

import { LRUCache } from "lru-cache";

const oneEach = (): number => 1;

/**
 * A cache of at most `most` entries; `dispose` is told each that leaves it. lru-cache's option `max` makes tables for that many
 * at once: 7 ms of CPU time and 1.2 MB for 50,000, of which a start makes a dozen.
 */
export function recentlyUsed<V extends {}>(most: number, dispose?: (value: V) => void): LRUCache<string, V> {
	return new LRUCache({
		maxSize: most,
		sizeCalculation: oneEach,
		...(dispose === undefined ? {} : { dispose }),
	});
}
