// Rejections of submissions: the list of codes. Messages follow go-ethereum (core/txpool/errors.go,
// core/error.go), since wallets match on them.

/** All codes. */
export const REJECTION_CODES = [
	"UNDECODABLE",
	"WRONG_CHAIN",
	"NONCE_TOO_LOW",
	"NONCE_TOO_HIGH",
	"NONCE_MAX",
	"INSUFFICIENT_FUNDS",
	"INTRINSIC_GAS",
	"FLOOR_DATA_GAS",
	"BLOCK_GAS_LIMIT",
	"TX_GAS_LIMIT",
	"TIP_ABOVE_FEE_CAP",
	"INITCODE_SIZE",
	"OVERSIZED",
	"BLOBS",
	"EMPTY_AUTH_LIST",
	"SENDER_NOT_EOA",
	"UNDERPRICED",
	"FEE_CAP_TOO_LOW",
	"CANCELLED_BY_OTHER",
	"SENDER_FULL",
	"CLIENT_FULL",
	"POOL_FULL",
] as const;
export type RejectionCode = (typeof REJECTION_CODES)[number];

/** A rejection; `data` goes to the client beside the message. */
export interface Rejection {
	readonly code: RejectionCode;
	readonly message: string;
	readonly data?: Readonly<Record<string, string>>;
}

/** Makes a rejection. */
export function rejection(code: RejectionCode, message: string, data?: Rejection["data"]): Rejection {
	return data === undefined ? { code, message } : { code, message, data };
}
