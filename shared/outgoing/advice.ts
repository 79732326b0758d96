// Describes the failure of an upstream to its operator in one sentence: the symptom, and the
// setting to check. The sentence has no text of the upstream, and only scheme and host of a URL.

/** The symptoms of an upstream that gave no JSON-RPC answer. */
export interface Symptom {
	/** HTTP status, if there was an HTTP answer. */
	readonly status?: number | undefined;
	/** The answer's `Content-Type`. */
	readonly type?: string | undefined;
	/** The answer's `Content-Encoding`, if it could not be read. */
	readonly encoding?: string | undefined;
	/** The answer's `Location`. */
	readonly location?: string | undefined;
	/** A system's error code, "ECONNREFUSED", if there was no answer. */
	readonly reason?: string | undefined;
}

/** The expected upstream: a kind of server, its protocol, and the method of requests to it. */
interface Expected {
	readonly server: string;
	readonly speech: string;
	readonly method: string;
}

const JSON_RPC: Expected = { server: "a JSON-RPC server", speech: "JSON-RPC", method: "POST" };
/** For {@link advice} on a consensus node's events. */
export const EVENT_STREAM: Expected = {
	server: "a consensus node",
	speech: "an event stream",
	method: "GET",
};

/**
 * Advice by HTTP status. `SETTING` stands for the setting that names the upstream. SERVER, SPEECH
 * and METHOD stand for the fields of {@link Expected}.
 */
const BY_STATUS: Readonly<Record<number, string>> = {
	400: "it does not accept such requests: is SETTING the address of SERVER?",
	401: "it expects other credentials: check the key or password in SETTING",
	402: "the account of the key in SETTING is not paid",
	403: "it refuses this machine: check the key in SETTING and the provider's list of allowed addresses",
	404: "it has no such path: check the path of SETTING",
	405: "it does not accept METHOD there: check the path of SETTING",
	407: "a proxy in between requires credentials",
	413: "it accepts only smaller requests",
	415: "it does not accept JSON there: is SETTING the address of SERVER?",
	421: "it is not the host that SETTING names",
	426: "it expects another protocol: check the scheme of SETTING",
	429: "the quota of SETTING's account or of this machine's address is used up",
	451: "it may not serve this machine",
	508: "requests come back: SETTING leads back to boost itself",
};

/** Advice by the system's error code, if there was no HTTP answer. */
const BY_REASON: Readonly<Record<string, string>> = {
	ECONNREFUSED: "nothing listens there: is it up, and is the port of SETTING right?",
	ENOTFOUND: "no such name: check the host of SETTING",
	ENODATA: "the name has no address: check the host of SETTING",
	EAI_AGAIN: "no name server answers for the host of SETTING",
	ETIMEOUT: "no name server answers for the host of SETTING",
	EHOSTUNREACH: "no route to the host of SETTING",
	ENETUNREACH: "no route to the host of SETTING",
	ETIMEDOUT: "connection timed out: is the host of SETTING up, and does a firewall allow this machine?",
	UND_ERR_CONNECT_TIMEOUT:
		"connection timed out: is the host of SETTING up, and does a firewall allow this machine?",
	CERT_HAS_EXPIRED: "its certificate has expired",
	DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
	SELF_SIGNED_CERT_IN_CHAIN: "its certificate is not signed by a trusted authority",
	UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not signed by a trusted authority",
	ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host than SETTING's",
	ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS there: check the scheme and port of SETTING",
	HPE_INVALID_CONSTANT: "it does not speak HTTP there: check the scheme and port of SETTING",
};

/**
 * The sentence, such as "HTTP 403: it refuses this machine: look at …". Null if there is no more to
 * say.
 */
export function advice(setting: string, symptom: Symptom, expected = JSON_RPC): string | null {
	const { status, reason } = symptom;
	const text = status === undefined ? (BY_REASON[reason ?? ""] ?? null) : adviceOnAnswer(status, symptom);
	if (text === null) return null;
	const { server, speech, method } = expected;
	return (status === undefined ? text : `HTTP ${status}: ${text}`)
		.replace("SERVER", server)
		.replace("SPEECH", speech)
		.replace("METHOD", method)
		.replaceAll("SETTING", setting);
}

function adviceOnAnswer(status: number, { type = "", encoding, location }: Symptom): string | null {
	if (status >= 300 && status < 400) {
		const to = originOf(location);
		return `a redirect${to === null ? "" : ` to ${to}`}, which is not followed: check scheme, host and path of SETTING`;
	}
	const known = BY_STATUS[status];
	if (known !== undefined) return known;
	if (status >= 500) return "it, or a proxy in front of it, has failed";
	if (encoding !== undefined) return "it compresses its answers although that was not requested";
	if (/^\s*(text\/html|application\/xhtml)/i.test(type)) {
		return "a web page, not SPEECH: check host and path of SETTING";
	}
	return status >= 400 || status < 300 ? "not SPEECH: check host and path of SETTING" : null;
}

/**
 * Scheme and the end of the host of an absolute URL. The other labels of the host may be a key.
 * Null for any other text.
 */
function originOf(location: string | undefined): string | null {
	if (location === undefined || !URL.canParse(location)) return null;
	const { protocol, hostname } = new URL(location);
	if (!/^https?:$/.test(protocol)) return null;
	const labels = hostname.split(".");
	return `${protocol}//${labels.length > 2 ? "…" : ""}${labels.slice(-2).join(".")}`;
}

/** A code like "ECONNREFUSED". If several addresses were tried, it is that of the first. */
export function systemCode(thrown: unknown): string | undefined {
	const { code, errors } = (thrown ?? {}) as { code?: unknown; errors?: readonly unknown[] };
	const found = code ?? (errors?.[0] as { code?: unknown } | undefined)?.code;
	return typeof found === "string" ? found : undefined;
}
