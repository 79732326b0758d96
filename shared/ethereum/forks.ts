// The rules of transactions that depend on the fork, with one row for each fork that the relay
// knows. A new fork is a new row. No other code checks which fork it is.

/** Gas charged by a transaction's fields alone, before and beside its execution. */
export interface GasTable {
	/**
	 * Gas of each transaction, and the additions for a creation, for a recipient other than the
	 * sender, and for sending it Ether.
	 */
	readonly base: bigint;
	readonly creation: bigint;
	readonly recipient: bigint;
	readonly value: bigint;
	/** Gas of a zero byte of calldata, and of any other byte. */
	readonly zeroByte: bigint;
	readonly otherByte: bigint;
	/** Gas of 32 bytes of init code, rounded up. */
	readonly initCodeWord: bigint;
	/** Gas of an address and of a storage key of the access list. */
	readonly accessAddress: bigint;
	readonly accessKey: bigint;
	/**
	 * Gas of an authorization (EIP-7702), and the minimum that a block charges for one, whatever is
	 * refunded.
	 */
	readonly authorization: bigint;
	readonly leastAuthorization: bigint;
	/** The minimum charge in all: a base and tokens. */
	readonly floor: {
		/** Null: the sum for the transaction's own base, recipient and value. */
		readonly base: bigint | null;
		readonly token: bigint;
		/** Tokens that each part of a transaction counts (EIP-7623). The values above are in gas. */
		readonly zeroByte: bigint;
		readonly otherByte: bigint;
		readonly accessAddress: bigint;
		readonly accessKey: bigint;
	};
}

export interface TransferGas {
	readonly toExisting: bigint;
	readonly toEmpty: bigint;
}

export interface Fork {
	/** For people. */
	readonly name: string;
	/**
	 * Names that `eth_config` (EIP-7910) lists for this fork and not for earlier ones. They show
	 * that it is active.
	 */
	readonly introduces: readonly string[];
	/** Fields that blocks' headers have, and earlier forks' lack. */
	readonly headerFields: readonly string[];
	/** Maximum gas of a transaction. Null: the block's limit. */
	readonly maxTxGas: bigint | null;
	/** Maximum gas that a transaction's fields alone may cost. Null: its gas limit. */
	readonly maxFieldsGas: bigint | null;
	readonly maxInitCodeBytes: number;
	/** The version of blob sidecars. https://eips.ethereum.org/EIPS/eip-7594 */
	readonly sidecarVersion: 0 | 1;
	/**
	 * Gas of sending Ether, for a recipient whose account is empty and for one whose account is
	 * not.
	 */
	readonly transferGas: TransferGas;
	/** Gas that builders deduct from a refund for paying it, unless they state otherwise. */
	readonly payoutGas: TransferGas;
	readonly gas: GasTable;
}

/** Sources: EIP-2028, 2930, 3860, 7623, 7702. */
const PRAGUE: Fork = {
	name: "Prague",
	introduces: [
		"BLS12_G1ADD",
		"BLS12_G1MSM",
		"BLS12_G2ADD",
		"BLS12_G2MSM",
		"BLS12_MAP_FP2_TO_G2",
		"BLS12_MAP_FP_TO_G1",
		"BLS12_PAIRING_CHECK",
		"CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS",
		"DEPOSIT_CONTRACT_ADDRESS",
		"HISTORY_STORAGE_ADDRESS",
		"WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS",
	],
	headerFields: ["requestsHash"],
	maxTxGas: null,
	maxFieldsGas: null,
	maxInitCodeBytes: 49_152,
	sidecarVersion: 0,
	transferGas: { toExisting: 21_000n, toEmpty: 21_000n },
	payoutGas: { toExisting: 0n, toEmpty: 0n },
	gas: {
		base: 21_000n,
		creation: 32_000n,
		recipient: 0n,
		value: 0n,
		zeroByte: 4n,
		otherByte: 16n,
		initCodeWord: 2n,
		accessAddress: 2_400n,
		accessKey: 1_900n,
		authorization: 25_000n,
		leastAuthorization: 12_500n,
		floor: {
			base: 21_000n,
			token: 10n,
			zeroByte: 1n,
			otherByte: 4n,
			accessAddress: 0n,
			accessKey: 0n,
		},
	},
};

/** EIP-7594, 7825, 7951. */
const OSAKA: Fork = {
	...PRAGUE,
	name: "Osaka",
	introduces: ["P256VERIFY"],
	headerFields: [],
	maxTxGas: 2n ** 24n,
	sidecarVersion: 1,
};

/** A new account is 120 bytes of state at 1,530 gas. */
const AMSTERDAM_TRANSFER: TransferGas = { toExisting: 21_000n, toEmpty: 21_000n + 120n * 1_530n };

/** EIP-2780, 7928, 7954, 7976, 7981, 8037, 8038, 8282. */
const AMSTERDAM: Fork = {
	...OSAKA,
	name: "Amsterdam",
	introduces: ["BUILDER_DEPOSIT_CONTRACT_ADDRESS", "BUILDER_EXIT_CONTRACT_ADDRESS"],
	headerFields: ["blockAccessListHash", "slotNumber"],
	maxTxGas: 2n ** 32n - 1n,
	maxFieldsGas: 2n ** 24n,
	maxInitCodeBytes: 131_072,
	transferGas: AMSTERDAM_TRANSFER,
	payoutGas: AMSTERDAM_TRANSFER,
	gas: {
		base: 12_000n,
		creation: 12_000n,
		recipient: 3_000n,
		value: 6_000n,
		zeroByte: 4n,
		otherByte: 16n,
		initCodeWord: 2n,
		// With 64 gas for each of their 20 and 32 bytes.
		accessAddress: 2_900n + 1_280n,
		accessKey: 2_000n + 2_048n,
		authorization: 7_816n,
		leastAuthorization: 7_816n,
		floor: {
			base: null,
			token: 16n,
			zeroByte: 4n,
			otherByte: 4n,
			accessAddress: 80n,
			accessKey: 128n,
		},
	},
};

/** All that are known, the oldest first. */
export const FORKS: readonly [Fork, Fork, Fork] = [PRAGUE, OSAKA, AMSTERDAM];

/** The fork of a block with this timestamp, in seconds since the epoch. */
export type ForkAt = (timestamp: number) => Fork;

/** The newest fork with a name that `isShown` accepts as active. Null if there is none. */
export function newestFork(
	names: "introduces" | "headerFields",
	isShown: (name: string) => boolean,
): Fork | null {
	return FORKS.findLast((fork) => fork[names].some(isShown)) ?? null;
}

/**
 * The newest fork that the fields of a block's header show, in the form that a node sends it. Null
 * if they show no known fork. A fork that adds no field, such as Osaka, shows as the one before it.
 */
export function forkShownBy(header: Readonly<Record<string, unknown>>): Fork | null {
	return newestFork("headerFields", (field) => header[field] != null);
}

/** The newer of two. */
export function newerFork(one: Fork, other: Fork | null): Fork {
	return FORKS.findLast((fork) => fork === one || fork === other) ?? one;
}
