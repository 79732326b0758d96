// The dev network's slots: how long they are by SLOT_MS or SLOT_SECONDS, the setting for those who
// follow the chain, and the timestamps of its blocks.

import { systemClock } from "../../shared/clock.ts";
import type { ChainHead } from "./chainRpc.ts";

/** Short, so that one can watch a first transaction being mined. */
const USUAL_SECONDS = 2;
const EXPECTED = {
	SLOT_MS: "expected milliseconds, 250 to 60000, for example SLOT_MS=450",
	SLOT_SECONDS: "expected seconds, 1 to 60, for example SLOT_SECONDS=2",
} as const;

/**
 * Seconds, whole or not, by the settings in `env`; two if none is set. Throws if one is not valid,
 * or both differ.
 */
export function slotSecondsOf(env: Readonly<Record<string, string | undefined>>): number {
	const ms = numberOf(env, "SLOT_MS", 250);
	const seconds = numberOf(env, "SLOT_SECONDS", 1);
	if (ms !== null && seconds !== null && ms !== seconds * 1_000)
		throw new Error(`SLOT_MS is ${ms} beside SLOT_SECONDS=${seconds}: set one of them`);
	return ms === null ? (seconds ?? USUAL_SECONDS) : ms / 1_000;
}

function numberOf(
	env: Readonly<Record<string, string | undefined>>,
	name: keyof typeof EXPECTED,
	least: number,
): number | null {
	const text = env[name]?.trim() ?? "";
	if (text === "") return null;
	const value = Number(text);
	const most = name === "SLOT_MS" ? 60_000 : 60;
	if (/^\d{1,6}$/.test(text) && value >= least && value <= most) return value;
	throw new Error(`${name} is not valid: ${EXPECTED[name]}`);
}

/** The setting that says `slotSeconds` to relay and boost, as name and value. */
export function slotSetting(slotSeconds: number): readonly [string, string] {
	return Number.isInteger(slotSeconds)
		? ["SLOT_SECONDS", String(slotSeconds)]
		: ["SLOT_MS", String(Math.round(slotSeconds * 1_000))];
}

/**
 * The timestamp, in Unix seconds, of the block after a head: whole seconds of a time that goes on
 * by a slot each, so below a second several blocks have one. After a pause of the machine real time
 * has run ahead; with `manual` the chain's own time is all there is.
 */
export function timestamps(slotSeconds: number, manual: boolean): (head: ChainHead) => number {
	const slotMs = Math.round(slotSeconds * 1_000);
	/** A block, and its time in ms. */
	let known = { number: 0, ms: Number.NaN };
	const timeOf = (number: number) => known.ms + (number - known.number) * slotMs;
	return ({ number, timestamp }) => {
		const nowMs = systemClock.now();
		const isLate = !manual && nowMs > timestamp * 1_000 + 2 * Math.max(slotMs, 1_000);
		if (isLate) known = { number: number + 1, ms: nowMs };
		else if (Math.floor(timeOf(number) / 1_000) !== timestamp) known = { number, ms: timestamp * 1_000 };
		return Math.floor(timeOf(number + 1) / 1_000);
	};
}
