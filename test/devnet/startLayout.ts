// How many relays and boosts `npm start` runs, and on which ports, by its settings. Its help and
// the README have them from here.

import { MISCONDUCTS } from "./misconduct.ts";

/** A port of `npm start`, with the setting that changes it. */
export interface StartPort {
	readonly setting: string;
	readonly number: number;
	/** The name of the process behind it, in the output: "the relay", or "relay 2" of several. */
	readonly owner: string;
}

/** All ports of `npm start`. */
export interface StartLayout {
	/** 1 to 8. */
	readonly relays: readonly [StartPort, ...StartPort[]];
	/** 1 to 4. */
	readonly boosts: readonly [StartPort, ...StartPort[]];
	/** One port for all relays, where there are several. */
	readonly balancer: StartPort | null;
	readonly chain: StartPort;
	readonly fallback: StartPort;
	readonly builder: StartPort;
}

type Environment = Readonly<Record<string, string | undefined>>;

const MOST_RELAYS = 8;
const MOST_BOOSTS = 4;
/**
 * The default of each further relay or boost is so many ports behind the one before: 8080, 8090,
 * 8100.
 */
const STEP = 10;

/** The ports by their owners: the setting, its default, and who listens there. */
export const START_PORTS = {
	boost: ["BOOST_PORT", 8081, "boost"],
	relay: ["RELAY_PORT", 8080, "the relay"],
	fallback: ["FALLBACK_PORT", 8082, "the fallback"],
	builder: ["BUILDER_PORT", 8083, "the dev builder"],
	chain: ["CHAIN_PORT", 8545, "the dev chain"],
	balancer: ["BALANCER_PORT", 8084, "the balancer"],
} as const;

/** The other settings of `npm start`, and what they are for. */
export const START_SETTINGS: readonly (readonly [name: string, about: string])[] = [
	[
		"RELAYS",
		`number of relays on one PostgreSQL, 1 to ${MOST_RELAYS}; their ports are RELAY2_PORT and so on`,
	],
	["BOOSTS", `number of boost instances on it, 1 to ${MOST_BOOSTS}; their ports are BOOST2_PORT and so on`],
	["SLOT_SECONDS", "time between two blocks of the dev chain, in seconds"],
	["FORK", "rules of the dev chain: prague, osaka or amsterdam"],
	["GETH", "go-ethereum for rules that anvil does not have"],
	["BUILDER_MISCONDUCT", `promise that the dev builder breaks: ${MISCONDUCTS.join(", ")}`],
	["ETH_RPC_URL", "real node; then only relay and boost start, and BUILDERS and FALLBACK_URL apply"],
	["LOG_LEVEL", "prints the processes' log lines instead of a line for each event"],
];

/** Throws at a value that is not valid, naming its setting and what was expected. */
export function startLayout(env: Environment): StartLayout {
	const relays = several(env, "RELAY", START_PORTS.relay[1], countOf(env, "RELAYS", MOST_RELAYS));
	const boosts = several(env, "BOOST", START_PORTS.boost[1], countOf(env, "BOOSTS", MOST_BOOSTS));
	const one = (name: keyof typeof START_PORTS): StartPort => {
		const [setting, usual, owner] = START_PORTS[name];
		return { setting, owner, number: wholeNumber(env, setting, { usual, most: 65_535, expected: "a port" }) };
	};
	return {
		...{ relays, boosts },
		balancer: relays.length > 1 ? one("balancer") : null,
		chain: one("chain"),
		fallback: one("fallback"),
		builder: one("builder"),
	};
}

/** RELAY_PORT, RELAY2_PORT and so on. */
function several(env: Environment, name: string, usual: number, count: number): StartLayout["relays"] {
	const what = name.toLowerCase();
	const one = (i: number): StartPort => {
		const setting = i === 0 ? `${name}_PORT` : `${name}${i + 1}_PORT`;
		const alone = what === "boost" ? what : `the ${what}`;
		return {
			setting,
			number: wholeNumber(env, setting, { usual: usual + STEP * i, most: 65_535, expected: "a port" }),
			owner: count === 1 ? alone : `${what} ${i + 1}`,
		};
	};
	return [one(0), ...Array.from({ length: count - 1 }, (_, i) => one(i + 1))];
}

function countOf(env: Environment, setting: string, most: number): number {
	return wholeNumber(env, setting, { usual: 1, most, expected: "a number", example: Math.min(3, most) });
}

interface Expected {
	readonly usual: number;
	readonly most: number;
	readonly expected: string;
	/** Default {@link usual}. */
	readonly example?: number;
}

/** A whole number from 1; an empty setting counts as not set. */
function wholeNumber(env: Environment, setting: string, row: Expected): number {
	const text = env[setting]?.trim() ?? "";
	if (text === "") return row.usual;
	const value = Number(text);
	if (/^\d{1,6}$/.test(text) && value >= 1 && value <= row.most) return value;
	const example = row.example ?? row.usual;
	throw new Error(
		`${setting} is not valid: expected ${row.expected}, 1 to ${row.most}, for example ${setting}=${example}`,
	);
}
