// How much of the same a test does: `npm test` does enough to show the rule, the nightly run does
// more of it.

/** The environment variable that makes tests long with `long`; the nightly run sets it. */
export const LENGTH = "TEST_LENGTH";

const isLong = process.env[LENGTH] === "long";

/** `short` in `npm test`, `long` in the nightly run, which repeats every file that calls this. */
export function sized<T>(short: T, long: T): T {
	return isLong ? long : short;
}
