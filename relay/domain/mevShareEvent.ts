// A shared transaction as an event of MEV-Share: what its `full` hint shows, by the names that its clients read. Pure.
// https://github.com/flashbots/mev-share/blob/main/specs/events/v0.1.md

/** Hex digits of a function's selector, with 0x. */
const SELECTOR_LENGTH = 10;

/** The hint about one transaction. */
export interface MevShareEvent {
	readonly hash: string;
	/** Always null: what a transaction would emit is not shown. */
	readonly logs: null;
	readonly txs: readonly [Readonly<Record<string, unknown>>];
}

/**
 * The event of a partial pending transaction: its fields and no others, `data` as `callData`, with its first four bytes as
 * `functionSelector`. Of a creation there is no `to`.
 */
export function mevShareEvent(partial: Readonly<Record<string, unknown>>): MevShareEvent {
	const { data, to, hash, ...rest } = partial;
	const callData = String(data);
	const one = {
		...(to === null ? {} : { to }),
		...(callData.length < SELECTOR_LENGTH ? {} : { functionSelector: callData.slice(0, SELECTOR_LENGTH) }),
		callData,
		hash,
		...rest,
	};
	return { hash: String(hash), logs: null, txs: [one] };
}
