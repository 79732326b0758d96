// Signed transactions of random and extreme values from a seed, each with a verdict on whether this chain may take
// it. The verdict shares no code with the relay's.

import type { SeededRandom } from "../../../support/seededRandom.ts";
import { type TestAccount, type TxOptions, testAccount } from "../../../support/txFactory.ts";

/** A transaction with its sender's means. */
export interface RandomSubmission {
	readonly account: TestAccount;
	readonly standing: { readonly balance: bigint; readonly nonce: number };
	readonly options: TxOptions;
	/** Why it must be refused: one of these must be told. Empty where it must be taken. */
	readonly reasons: readonly string[];
}

const GWEI = 10n ** 9n;
const CHAIN_ID = 31_337n;
const GAS_CAP = 2n ** 24n;
const WORDS = [0n, 1n, 2n ** 64n, 2n ** 128n - 1n, 2n ** 128n, 2n ** 255n, 2n ** 256n - 1n] as const;
const FEES = [0n, 1n, GWEI, ...Array<bigint>(6).fill(20n * GWEI), ...WORDS];
const GAS = [0, 20_999, 21_000, 21_000, 53_000, 100_000, 100_000, 1_000_000, 2 ** 24, 2 ** 24 + 1] as const;
const NONCES = [0n, 0n, 0n, 4n, 5n, 5n, 6n, 64n, 65n, 69n, 70n, 2n ** 64n - 2n, 2n ** 64n - 1n] as const;

/** The next one; its account is the `index`-th of those made up. */
export function randomSubmission(random: SeededRandom, index: number): RandomSubmission {
	const account = testAccount(index);
	const standing = {
		balance: random.pick([0n, 10n ** 18n, 10n ** 18n, 2n ** 128n, 2n ** 256n - 1n]),
		nonce: random.pick([0, 0, 5]),
	};
	const type = random.pick([0, 1, 2, 2, 4] as const);
	const creates = type !== 4 && random.below(4) === 0;
	const length = random.pick([0, 0, 1, 40, 300]);
	const options: Required<Pick<TxOptions, "nonce" | "value" | "gasLimit" | "maxFeePerGas">> & TxOptions = {
		type,
		by: account,
		chainId: random.below(10) === 0 ? random.pick([0n, 1n, 2n ** 64n]) : CHAIN_ID,
		nonce: random.pick(NONCES),
		gasLimit: random.below(20) === 0 ? 2n ** 64n - 1n : random.pick(GAS),
		to: creates
			? null
			: random.pick([account.address, `0x${"00".repeat(19)}0${1 + random.below(9)}`, `0x${"77".repeat(20)}`]),
		value: random.below(3) > 0 ? random.pick([0n, 1n, GWEI]) : random.pick(WORDS),
		data: random.below(2) === 0 ? Buffer.alloc(length) : random.bytes(length),
		maxFeePerGas: random.pick(FEES),
		maxPriorityFeePerGas: random.pick(FEES),
		accessList:
			type === 0 || random.below(3) > 0
				? []
				: [{ address: account.address, storageKeys: [`0x${"00".repeat(32)}`] }],
	};
	return { account, standing, options, reasons: reasonsAgainst(options, standing) };
}

/** Every rule that is broken; one of them is told. */
function reasonsAgainst(options: TxOptions, standing: RandomSubmission["standing"]): string[] {
	const { type = 2, chainId = CHAIN_ID, to } = options;
	const nonce = BigInt(options.nonce ?? 0);
	const gas = BigInt(options.gasLimit ?? 0);
	const cap = BigInt(options.maxFeePerGas ?? 0);
	const tip = BigInt(options.maxPriorityFeePerGas ?? 0);
	const next = BigInt(standing.nonce);
	const zeros = [...(options.data as Buffer)].filter((byte) => byte === 0).length;
	const others = (options.data as Buffer).length - zeros;
	let needed = 21_000n + BigInt(4 * zeros + 16 * others);
	if (to === null) needed += 32_000n + 2n * BigInt(Math.ceil((zeros + others) / 32));
	if (type === 4) needed += 25_000n;
	if (options.accessList?.length === 1) needed += 2_400n + 1_900n;
	const broken: [string, boolean][] = [
		["WRONG_CHAIN", chainId !== CHAIN_ID],
		["TIP_ABOVE_FEE_CAP", type >= 2 && tip > cap],
		["TX_GAS_LIMIT", gas > GAS_CAP],
		["BLOCK_GAS_LIMIT", gas > 60_000_000n],
		["INTRINSIC_GAS", gas < needed],
		["FLOOR_DATA_GAS", gas < 21_000n + 10n * BigInt(zeros + 4 * others)],
		["NONCE_MAX", nonce === 2n ** 64n - 1n],
		["NONCE_TOO_LOW", nonce < next],
		["NONCE_TOO_HIGH", nonce > next + 64n],
		// The base fee is some thousand wei at least.
		["FEE_CAP_TOO_LOW", cap <= 1n],
		["INSUFFICIENT_FUNDS", gas * cap + BigInt(options.value ?? 0) > standing.balance],
	];
	return broken.filter(([, is]) => is).map(([reason]) => reason);
}
