// Error messages that mean something to us. Decisions go by codes everywhere else; these few things are told in words alone.

/** What servers put before another's words: "INTERNAL_ERROR: existing tx with same hash" (Erigon). */
const PREFIXES =
	"(?:(?:[a-z_ ]{0,32}error|err|already_exists|call failed|transaction rejected|failed to (?:send|submit) (?:the )?(?:transaction|tx)): )*";
/** What may stand behind: nothing, a hash, or another sentence. Not one word more, which could change the meaning. */
const END = "(?=$|[.,:;!]| ?\\(| 0x)";
const POOL = "in (?:the )?(?:mem ?pool|tx ?pool|pool|cache)";
const TX = "(?:the |this )?(?:transaction|tx)";

/**
 * go-ethereum, Erigon, Reth, Nethermind: "already known" (older ones "AlreadyKnown"); older go-ethereum, Besu: "known
 * transaction[: hash]"; anvil: "transaction already imported"; OpenEthereum: "Transaction with the same hash was already
 * imported."; Erigon: "existing tx with same hash"; others: "already in mempool", "already exists".
 */
const ALREADY_KNOWN = [
	"already ?known",
	"known transaction",
	"already (?:imported|exists)",
	`already (?:exists )?${POOL}`,
	`${TX} (?:is |was )?already (?:known|imported|exists)`,
	`${TX} (?:is |was )?already (?:exists )?${POOL}`,
	`${TX} with the same hash (?:is |was |has been )?already (?:known|imported|exists|${POOL})`,
	"existing (?:transaction|tx) with (?:the )?same hash",
];

/** go-ethereum and most; older Nethermind: "OldNonce"; OpenEthereum: "Transaction nonce is too low. Try …". */
const NONCE_TOO_LOW = ["nonce too low", `(?:${TX} )?nonce is too low`, "oldnonce"];

const alreadyKnown = phrase(ALREADY_KNOWN, END);
/** Numbers of all kinds stand behind it. */
const nonceTooLow = phrase(NONCE_TOO_LOW, "(?![a-z])");

/**
 * Whether it says of the transaction that was sent that it is there already. "unknown transaction", "block already
 * known" or "a transaction with the same nonce already exists" don't.
 */
export function isAlreadyKnown(message: string): boolean {
	return alreadyKnown.test(start(message));
}

/** Whether it says that the transaction's nonce was used: by itself perhaps, which then has to be asked for. */
export function isNonceTooLow(message: string): boolean {
	return nonceTooLow.test(start(message));
}

/** Whether it says that there is no room. */
export function isPoolFull(message: string): boolean {
	return /^txpool is full\b/i.test(start(message));
}

/** A phrase at the start of a message, whatever its case. */
export function phrase(words: readonly string[], end: string): RegExp {
	return new RegExp(`^${PREFIXES}(?:${words.join("|")})${end}`, "i");
}

/** The phrases stand at the start: a message may be as long as an answer. */
function start(message: string): string {
	return message.slice(0, 256).trimStart();
}
