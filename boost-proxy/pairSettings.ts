// What each of the two processes behind one port is told: the environment of both comes in, one for each goes out, so
// that they find each other and only boost is to be reached from outside.

type Environment = Readonly<Record<string, string | undefined>>;

export interface PairEnvironments {
	readonly relay: Environment;
	readonly boost: Environment;
	/** Settings that were given and have no effect here. */
	readonly unused: readonly string[];
}

/** Divides it. `relayPort` is free on loopback; `secret` is what both share unless the environment says. */
export function pairEnvironments(
	env: Environment,
	made: { readonly relayPort: number; readonly secret: string },
): PairEnvironments {
	const isSet = (name: string): boolean => (env[name]?.trim() ?? "") !== "";
	const shared = { ...env, BOOST_SECRET: isSet("BOOST_SECRET") ? env.BOOST_SECRET : made.secret };
	const relay: Record<string, string | undefined> = {
		...shared,
		HOST: "127.0.0.1",
		PORT: String(made.relayPort),
		// Nothing stands between the two.
		TRUST_PROXY: "0",
	};
	// Websockets come by the one port, and that one's metrics are boost's.
	delete relay.SEARCHER_PORT;
	if (isSet("METRICS_PORT")) relay.METRICS_PORT = nextPort(env.METRICS_PORT ?? "");
	return {
		relay,
		boost: { ...shared, RELAY_URL: `http://127.0.0.1:${made.relayPort}` },
		unused: ["SEARCHER_PORT", "RELAY_URL"].filter(isSet),
	};
}

/** The port behind it; 0 and what is no port stay as they are, to be taken or refused by who reads them. */
function nextPort(port: string): string {
	return /^[1-9]\d*$/.test(port.trim()) ? String(Number(port) + 1) : port;
}
