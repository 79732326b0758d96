// A block's header as `newHeads` tells it.

/** What a node tells of a block beside its header: geth's `newHeads` has none of it. */
const BODY_FIELDS: ReadonlySet<string> = new Set([
	"transactions",
	"uncles",
	"withdrawals",
	"size",
	"totalDifficulty",
]);

/** The header of a block as a node told it. */
export function headerOf(block: object): Record<string, unknown> {
	return Object.fromEntries(Object.entries(block).filter(([name]) => !BODY_FIELDS.has(name)));
}
