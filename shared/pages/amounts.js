// Amounts of Ether in the units that wallets show. Pure.

/** The units, and the smallest amount in wei that is shown in each. */
const UNITS = [
	["ETH", 18, 10n ** 12n],
	["gwei", 9, 10n ** 6n],
	["wei", 0, 0n],
];
/** The relay's errors about fees and balances, whose amounts are in wei. */
const ABOUT_WEI = /^(insufficient funds|max fee per )/;
const WEI = /\b(balance|tx cost|overshot|max fee|base fee) (\d+)/g;
/** Digits of an amount, beginning with the first one that is not 0. All whole units stay. */
const DIGITS = 5;
/** Digits behind the point of an amount with many whole units. */
const FEWEST_DECIMALS = 2;

/**
 * "0.00042 ETH", "21 gwei", "7 wei": rounded to five digits, without trailing zeros.
 * @param {bigint | string} wei
 */
export function amount(wei) {
	const value = BigInt(wei);
	const size = value < 0n ? -value : value;
	const [unit, decimals] = size === 0n ? UNITS[0] : UNITS.find(([, , least]) => size >= least);
	const whole = String(size).length - decimals;
	// A negative `whole` counts the zeros behind the point.
	const kept = Math.min(decimals, whole > 0 ? Math.max(DIGITS - whole, FEWEST_DECIMALS) : DIGITS - whole);
	const step = 10n ** BigInt(decimals - kept);
	const digits = String((size + step / 2n) / step).padStart(kept + 1, "0");
	const point = digits.length - kept;
	const fraction = digits.slice(point).replace(/0+$/, "");
	const grouped = digits.slice(0, point).replace(/\B(?=(\d{3})+$)/g, ",");
	return `${value < 0n ? "−" : ""}${grouped}${fraction === "" ? "" : `.${fraction}`} ${unit}`;
}

/** An error's message, with the units of its amounts. Others may quote strangers, and stay. */
export function errorText(message) {
	if (!ABOUT_WEI.test(message)) return message;
	return message.replace(WEI, (_all, name, wei) => `${name} ${amount(wei)}`);
}
