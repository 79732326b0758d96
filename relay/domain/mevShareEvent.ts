// A disclosed transaction as an event of MEV-Share: the fields of its `full` hint, by the names
// that its clients read. Pure.
// https://github.com/flashbots/mev-share/blob/main/specs/events/v0.1.md

/** Hex digits of a function's selector, with 0x. */
const SELECTOR_LENGTH = 10;

/** The hint about one transaction. */
export interface MevShareEvent {
	readonly hash: string;
	/** Always null: the logs that a transaction would emit are not shown. */
	readonly logs: null;
	readonly txs: readonly [Readonly<Record<string, unknown>>];
}

/**
 * The event of a partial pending transaction, with its fields and no others. `data` becomes
 * `callData`, and its first four bytes `functionSelector`. A creation has no `to`.
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
