// How many relays and boosts `npm start` runs, and on which ports, by its settings.

/** A port of `npm start`, with the setting that changes it. */
export interface StartPort {
	readonly setting: string;
	readonly number: number;
	/** Who listens on it, in the output: "the relay", or of several "relay 2". */
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
/** The default of each further relay or boost is so many ports behind the one before: 8080, 8090, 8100. */
const STEP = 10;

/** Throws at a value that is not valid, naming its setting and what was expected. */
export function startLayout(env: Environment): StartLayout {
	const relays = several(env, "RELAY", 8080, countOf(env, "RELAYS", MOST_RELAYS));
	const boosts = several(env, "BOOST", 8081, countOf(env, "BOOSTS", MOST_BOOSTS));
	const one = (setting: string, usual: number, owner: string): StartPort => ({
		...{ setting, owner },
		number: wholeNumber(env, setting, { usual, most: 65_535, expected: "a port" }),
	});
	return {
		...{ relays, boosts },
		balancer: relays.length > 1 ? one("BALANCER_PORT", 8084, "the balancer") : null,
		chain: one("CHAIN_PORT", 8545, "the dev chain"),
		fallback: one("FALLBACK_PORT", 8082, "the fallback"),
		builder: one("BUILDER_PORT", 8083, "the dev builder"),
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
