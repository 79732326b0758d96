// What bundles in the tables of bad input are made of.

/** The hash of no transaction. */
export const BUNDLE_TARGET = `0x${"ab".repeat(32)}`;
/** Bytes that are hex, and no transaction. */
export const BUNDLE_RAW = `0x02${"cd".repeat(99)}`;
