// Answers of the public statistics for tests of their page: 90 days, of which the first ten are not
// known, with an outage.

/** The first of the 90 days in {@link COUNTED}, and how many of them are not known. */
const FIRST = Date.UTC(2026, 7, 31);
export const UNKNOWN_DAYS = 10;
const days = <T>(of: (i: number) => T) =>
	Array.from({ length: 90 }, (_, i) => ({
		day: new Date(FIRST + i * 86_400_000).toISOString().slice(0, 10),
		...of(i),
	}));
const NOTHING = {
	...{ transactions: null, refundedWei: null, broughtWei: null, blocksUntilMined: null },
	...{ builders: null, otherBuilders: null, unknownBuilders: null },
};

/** Figures of eighty days, in the place of the relay's. */
export const COUNTED = {
	"/stats.json": days((i) => {
		if (i < UNKNOWN_DAYS) return NOTHING;
		const n = 400 + Math.round(300 * Math.sin(i / 7)) + 10 * (i % 7);
		const first = Math.round(n * (0.7 + 0.1 * Math.sin(i / 5)));
		const rest = n - first;
		const waits = { 1: first, 2: Math.floor(rest / 2), 3: Math.floor(rest / 4), 5: 4, 10: 2, 25: 1, more: 1 };
		return {
			transactions: n,
			refundedWei: String(BigInt(n) * 10n ** 15n),
			broughtWei: String(BigInt(n) * 12n * 10n ** 14n),
			blocksUntilMined: waits,
			builders: [
				{ builder: "Titan", transactions: Math.floor(n / 2) },
				{ builder: "BuilderNet", transactions: Math.floor(n / 4) },
			],
			otherBuilders: 20,
			unknownBuilders: i === 12 ? 6 : 0,
		};
	}),
	"/stats/builders.json": [
		{ builder: "BuilderNet", mined: 0.3, backrun: 0.875, refunded: 1 },
		{ builder: "Titan", mined: 0.7, backrun: null, refunded: null },
	],
	"/stats/service.json": days((i) => {
		const up = "u".repeat(96);
		if (i < UNKNOWN_DAYS) return { quarters: "-".repeat(96) };
		if (i === UNKNOWN_DAYS) return { quarters: "-".repeat(40) + up.slice(40) };
		if (i === 40) return { quarters: `${up.slice(0, 30)}ffffffdd${up.slice(38)}` };
		return { quarters: i === 61 ? `${up.slice(0, 8)}f${up.slice(9)}` : up };
	}),
};
