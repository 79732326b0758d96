// Decides which fork's rules apply to a block, from two sources of the node. One is its
// `eth_config` (https://eips.ethereum.org/EIPS/eip-7910), which also announces the time of the next
// fork. The other is the fields of its headers. We keep no calendar of our own.

import { FORKS, type Fork, newerFork, newestFork } from "./forks.ts";

const [OLDEST, OSAKA] = FORKS;
/**
 * Mainnet, Sepolia and Hoodi, which have had Osaka since 2025. For nodes that do not serve
 * `eth_config`.
 */
const OSAKA_CHAINS: readonly bigint[] = [1n, 11_155_111n, 560_048n];
/** Names that were introduced by forks before the oldest in the table. */
const EARLIER = [
	...["ECREC", "SHA256", "RIPEMD160", "ID", "MODEXP", "BN254_ADD", "BN254_MUL", "BN254_PAIRING", "BLAKE2F"],
	...["KZG_POINT_EVALUATION", "BEACON_ROOTS_ADDRESS"],
];
const KNOWN: ReadonlySet<string> = new Set([...EARLIER, ...FORKS.flatMap(({ introduces }) => introduces)]);
/** Blocks after which the node is asked again, since its operator may have updated it. */
const ASK_EACH_BLOCKS = 100;

type Json = Readonly<Record<string, unknown>>;

export class ForkSchedule {
	readonly #chainId: () => bigint | null;
	/** The fork that `eth_config` reported; null if it has reported nothing. */
	#current: Fork | null = null;
	/** The announced fork, and its activation time in seconds since the epoch. */
	#next: { readonly fork: Fork; readonly since: number } | null = null;
	/** The newest fork that a header has shown. */
	#shown: Fork | null = null;
	#askedAt: number | null = null;

	/** `chainId`: null while it is not known. */
	constructor(options: { readonly chainId: () => bigint | null }) {
		this.#chainId = options.chainId;
	}

	/**
	 * The fork of a block with this timestamp, in seconds since the epoch, at least the newest that
	 * a header has shown.
	 */
	at(timestamp: number): Fork {
		const announced = this.#isActive(timestamp) ? (this.#next?.fork ?? null) : null;
		return newerFork(newerFork(this.#current ?? this.#usual, announced), this.#shown);
	}

	/** Records the fork that a header shows. Null if it shows no known fork. */
	see(shown: Fork | null): void {
		if (shown !== null) this.#shown = newerFork(shown, this.#shown);
	}

	/**
	 * Whether to request `eth_config` before this block: the first time, every hundred blocks, and
	 * at a fork.
	 */
	isDue({ number, timestamp }: { readonly number: number; readonly timestamp: number }): boolean {
		const isDue =
			this.#isActive(timestamp) ||
			this.#askedAt === null ||
			Math.abs(number - this.#askedAt) >= ASK_EACH_BLOCKS;
		if (isDue) this.#askedAt = number;
		return isDue;
	}

	/**
	 * Records the result of `eth_config`. A malformed result changes nothing. Returns the listed
	 * names that no fork of the table introduces: their rules are unknown here.
	 */
	learn(config: unknown): readonly string[] {
		const { current, next } = fieldsOf(config);
		const names = namesOf(current);
		if (names === null) return [];
		const announced = namesOf(next);
		const since = fieldsOf(next).activationTime;
		this.#current = forkOf(names);
		this.#next = announced !== null && typeof since === "number" ? { fork: forkOf(announced), since } : null;
		return [...new Set([...names, ...(announced ?? [])])].filter((name) => !KNOWN.has(name));
	}

	get #usual(): Fork {
		const chainId = this.#chainId();
		return chainId !== null && OSAKA_CHAINS.includes(chainId) ? OSAKA : OLDEST;
	}

	#isActive(timestamp: number): boolean {
		return this.#next !== null && timestamp >= this.#next.since;
	}
}

function forkOf(names: ReadonlySet<string>): Fork {
	return newestFork("introduces", (name) => names.has(name)) ?? OLDEST;
}

/** The precompiles and system contracts of one configuration; null for anything else. */
function namesOf(config: unknown): ReadonlySet<string> | null {
	const { precompiles, systemContracts } = fieldsOf(config);
	if (typeof precompiles !== "object" || precompiles === null) return null;
	return new Set([...Object.keys(precompiles), ...Object.keys(fieldsOf(systemContracts))]);
}

function fieldsOf(value: unknown): Json {
	return typeof value === "object" && value !== null ? (value as Json) : {};
}
