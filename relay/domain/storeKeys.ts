// Key prefixes of the relay's store. Each kind of entry has its own, so that a range contains no
// other kind. The rest of a key is built where it is written.

/**
 * A live transaction as submitted, and its record from the first change on; both by arrival time.
 */
export const [SUBMISSION, RECORD] = ["t/", "r/"];
/**
 * The index by time of archived transactions; the records are by hash, see shared/kv/archive.ts.
 */
export const ARCHIVED_BY_TIME = "x/";
/**
 * By sender and nonce: the last transaction with soft cancellations, and an archived one that could
 * be submitted again.
 */
export const [SOFT, REVIVABLE] = ["n/", "g/"];
/** A refund, by address and from the last block down, and the sums of an hour. */
export const [REFUND, REFUND_HOUR] = ["f/", "h/"];
/** The figures of a searcher's bundles, by day and owner. */
export const SEARCHER_DAY = "d/";
/** A builder's conduct, by day and builder. */
export const BUILDER_DAY = "b/";
/** The public statistics of a day. */
export const STATS_DAY = "y/";
/** Precedes the key of an entry that is damaged, or that lacks another entry which was lost. */
export const ASIDE = "z/";
/** Bidders' payments in a block. */
export const PAYMENTS = "c/";

// Single entries.
export const PROBE = "m/probe";
export const REFUNDS_SINCE = "m/refunds-since";
export const STATS_SINCE = "m/stats-since";
export const CHAIN = "m/chain";
export const SIGNING_KEY = "m/signing-key";
