// Amounts as wallets show them, from one wei to a thousand million ether: never an exponent.

import assert from "node:assert/strict";
import { test } from "node:test";

// The pages' scripts have no types.
const path = "../../../../shared/pages/amounts.js";
const { amount, errorText } = (await import(path)) as {
	readonly amount: (wei: bigint | string) => string;
	readonly errorText: (message: string) => string;
};

const ETHER = 10n ** 18n;
const ROWS: readonly (readonly [wei: bigint, text: string])[] = [
	[0n, "0 ETH"],
	[1n, "1 wei"],
	[7n, "7 wei"],
	[999_999n, "999,999 wei"],
	[1_000_000n, "0.001 gwei"],
	[147_000_000n, "0.147 gwei"],
	[1_234_567_891n, "1.2346 gwei"],
	[21_000_000_000n, "21 gwei"],
	[123_456_789_012n, "123.46 gwei"],
	[999_999_999_999n, "1,000 gwei"],
	[1_000_000_000_000n, "0.000001 ETH"],
	[1_234_567_890_123n, "0.0000012346 ETH"],
	[420_000_000_000_000n, "0.00042 ETH"],
	[9_025_058_700_000_000n, "0.0090251 ETH"],
	[ETHER - 1n, "1 ETH"],
	[ETHER, "1 ETH"],
	[1_234_567_890_123_456_789n, "1.2346 ETH"],
	[12_345n * ETHER + 678_900_000_000_000_000n, "12,345.68 ETH"],
	[10n ** 9n * ETHER, "1,000,000,000 ETH"],
	[10n ** 9n * ETHER + ETHER / 2n, "1,000,000,000.5 ETH"],
	[-5_000_000_000_000_000n, "−0.005 ETH"],
];

test("an amount has the unit and the digits that a wallet gives it", () => {
	for (const [wei, text] of ROWS) {
		assert.equal(amount(wei), text, `${wei} wei`);
		assert.equal(amount(wei.toString()), text, "as a decimal string");
	}
});

test("no power of ten up to 10^9 ETH has an exponent, or is off by more than half of its last digit", () => {
	const units = { ETH: 18, gwei: 9, wei: 0 } as Readonly<Record<string, number>>;
	for (let power = 0; power <= 27; power++) {
		for (const factor of [1n, 3n, 7n, 9n]) {
			const wei = factor * 10n ** BigInt(power);
			const [number = "", unit = ""] = amount(wei).split(" ");
			assert.match(number, /^\d{1,3}(,\d{3})*(\.\d+)?$/);
			const [whole = "", fraction = ""] = number.replaceAll(",", "").split(".");
			const decimals = units[unit] ?? assert.fail(unit);
			assert.equal(BigInt(whole + fraction.padEnd(decimals, "0")), wei, number);
		}
	}
});

test("errors about fees and balances have units; other errors are left as they are", () => {
	const funds =
		"insufficient funds for gas * price + value: balance 7, tx cost 99002000000000000000, overshot 5";
	const rows = [
		[funds, "insufficient funds for gas * price + value: balance 7 wei, tx cost 99.002 ETH, overshot 5 wei"],
		[
			"max fee per gas less than block base fee: max fee 1, base fee 10500000000",
			"max fee per gas less than block base fee: max fee 1 wei, base fee 10.5 gwei",
		],
		["execution reverted: balance 7", "execution reverted: balance 7"],
	] as const;
	for (const [message, text] of rows) assert.equal(errorText(message), text);
});
