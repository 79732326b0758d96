// How the keys of the relay's store begin. Each kind of entry has its own: who reads a range of them must meet no others. What
// follows is made where they are written.

/** A live transaction as it was submitted, and its record from the first change on; both by the time at which it came. */
export const [SUBMISSION, RECORD] = ["t/", "r/"];
/** The index by time of what is over; the records are by their hashes, see shared/kv/archive.ts. */
export const ARCHIVED_BY_TIME = "x/";
/** By sender and nonce: the last transaction with soft cancellations, and an archived one that could be submitted anew. */
export const [SOFT, REVIVABLE] = ["n/", "g/"];
/** A refund, by address and from the last block down, and the sums of an hour. */
export const [REFUND, REFUND_HOUR] = ["f/", "h/"];
/** The figures of a searcher's bundles, by day and owner. */
export const SEARCHER_DAY = "d/";
/** Before the key of an entry that is damaged, or that lacks one which was lost. */
export const ASIDE = "z/";
/** What bidders paid in a block. */
export const PAYMENTS = "c/";

// Single entries.
export const PROBE = "m/probe";
export const REFUNDS_SINCE = "m/refunds-since";
export const CHAIN = "m/chain";
export const SIGNING_KEY = "m/signing-key";
