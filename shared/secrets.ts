// Cuts the operator's data out of the words of another server: URLs, hosts, addresses with ports,
// and keys. The facts that the words report stay: block ranges, hex data, addresses and hashes.

/** Stands for what was cut. */
const CUT = { url: "[url]", host: "[host]", key: "[key]" } as const;

/** Longer texts are cut off after this many characters. Hex data does not count as text. */
const MAX_CHARS = 16 * 1024;
/** Values nested deeper are left out. */
const MAX_DEPTH = 8;
const HEX_DATA = /^0x[0-9a-f]*$/i;

/** Words in URLs of nodes that are not secret, so they stay readable in a message. */
const PLAIN_WORDS =
	/^(?:v\d{1,3}|rpc|json-?rpc|eth\w{0,2}|ethereum|mainnet|sepolia|holesky|hoodi|goerli|https?|wss?|api|node|nodes|public|archive|execution|ext|bc|localhost)$/i;
/** Parts of a path or query with fewer characters occur in every message, so they are not cut. */
const LEAST_CHARS = 4;
const LONG_CHARS = 12;

/**
 * Top-level domains of providers' and private networks' hosts. Others are cut only with a port or
 * path.
 */
const DOMAINS =
	"com|net|org|io|dev|xyz|app|cloud|network|tech|co|ai|finance|pro|me|us|eu|de|uk|fr|nl|ch|fi|info|build|rocks|foundation|gg|sh|so|zone|host|site|online|systems|link|internal|local|localdomain|lan|svc|fly|test|example|invalid";
const LABELS = "[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?(?:\\.[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?){1,8}";
const PORT = ":\\d{2,5}(?!\\d)";

interface Rule {
	readonly pattern: RegExp;
	readonly by: string | ((found: string, ...groups: string[]) => string);
}

/** In order. Each pattern is bounded, so that no text takes long. */
const RULES: readonly Rule[] = [
	{ pattern: /\b[a-z][a-z0-9+.-]{1,30}:\/\/[^\s"]+/gi, by: CUT.url },
	{ pattern: /\beyJ[\w-]{8,2000}\.[\w-]{2,4000}(?:\.[\w-]{0,2000})?/g, by: CUT.key },
	{
		pattern:
			/\b((?:api|app|access|auth|project|secret)[-_ ]?(?:key|token|id|secret)|bearer|password)(["']?(?: ?[:=] ?| is | )["']?)([\w.-]{6,200})/gi,
		by: (found, name, between, value) =>
			/\d/.test(value ?? "") || /[:=]/.test(between ?? "") ? `${name}${between}${CUT.key}` : found,
	},
	{
		pattern: /\b(lookup|dial (?:tcp|udp)[46]?|ENOTFOUND|EAI_AGAIN|ECONNREFUSED) [\w.[\]:-]{0,254}[\w\]]/g,
		by: host,
	},
	{ pattern: /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.])/g, by: CUT.host },
	{
		pattern: /\[[0-9a-f:]{2,39}\](?::\d{1,5})?(?=$|[\s,;.)"'])/gi,
		by: (found) => (found.includes(":") ? CUT.host : found),
	},
	{ pattern: /(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}(?![\w:])/gi, by: CUT.host },
	{
		pattern: new RegExp(`(?<![\\w.@/-])${LABELS}(?:${PORT}|(?=/[\\w?]))(?:/[^\\s"]{0,2000})?`, "gi"),
		by: CUT.host,
	},
	{
		pattern: new RegExp(
			`(?<![\\w.@/-])(?:[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?\\.){1,8}(?:${DOMAINS})(?![\\w-]|\\.\\w)`,
			"gi",
		),
		by: CUT.host,
	},
	{ pattern: /\blocalhost(?::\d{1,5})?\b/gi, by: CUT.host },
	{ pattern: /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, by: CUT.key },
	// 40 and 64 digits without 0x are an address and a hash (go-ethereum: "missing trie node …").
	{ pattern: /\b[0-9a-f]{32,63}\b/gi, by: (found) => (found.length === 40 ? found : CUT.key) },
	{ pattern: /[\w+/=-]{20,512}/g, by: (found) => (isRandom(found) ? CUT.key : found) },
];

/** Cuts the secrets of the server at `url`, and of any other server, out of its words. */
export interface Cutter {
	/** `text` without secrets. */
	text(text: string): string;
	/** A JSON value without secrets in its strings and keys. Hex data stays whole. */
	value(value: unknown): unknown;
}

/** A cutter that knows the URLs of our own nodes, and cuts out their parts in any form. */
export function cutterFor(...urls: readonly (string | undefined)[]): Cutter {
	const own = ownParts(urls.filter((url) => url !== undefined));
	const cutText = (given: string): string => {
		let text = given.length > MAX_CHARS ? `${given.slice(0, MAX_CHARS)}…` : given;
		if (own !== null)
			text = text.replace(own.pattern, (found) => own.names.get(found.toLowerCase()) ?? CUT.key);
		for (const { pattern, by } of RULES) {
			text = typeof by === "string" ? text.replace(pattern, by) : text.replace(pattern, by);
		}
		return text;
	};
	const cutValue = (value: unknown, depth: number): unknown => {
		if (typeof value === "string") return HEX_DATA.test(value) ? value : cutText(value);
		if (typeof value !== "object" || value === null) return value;
		if (depth === MAX_DEPTH) return null;
		if (Array.isArray(value)) return value.map((one) => cutValue(one, depth + 1));
		return Object.fromEntries(
			Object.entries(value).map(([key, one]) => [
				HEX_DATA.test(key) ? key : cutText(key),
				cutValue(one, depth + 1),
			]),
		);
	};
	return { text: cutText, value: (value) => cutValue(value, 0) };
}

function host(found: string): string {
	return `${found.slice(0, found.lastIndexOf(" "))} ${CUT.host}`;
}

/**
 * Whether it looks like a key made at random: digits among letters of both cases, again and again.
 */
function isRandom(word: string): boolean {
	if (/^0x/i.test(word)) return false;
	const digits = word.match(/\d+/g)?.length ?? 0;
	return digits >= 3 && /[a-z]/.test(word) && /[A-Z]/.test(word);
}

/**
 * The URLs' hosts, credentials, and parts of path and query, as one pattern; null if there are
 * none.
 */
function ownParts(
	urls: readonly string[],
): { readonly pattern: RegExp; readonly names: ReadonlyMap<string, string> } | null {
	const names = new Map<string, string>();
	for (const text of urls) {
		const url = new URL(text);
		const { hostname, host: place, username, password, pathname, search, searchParams } = url;
		const keys = [username, password, ...pathname.split("/"), ...searchParams.values(), search.slice(1)];
		// The whole path too, which may be shown without its host.
		for (const key of [...keys, pathname.slice(1)]) {
			for (const form of [key, decoded(key)]) {
				if (form.length >= LEAST_CHARS && !PLAIN_WORDS.test(form)) names.set(form.toLowerCase(), CUT.key);
			}
		}
		names.set(text.toLowerCase(), CUT.url);
		if (place !== hostname) names.set(place.toLowerCase(), CUT.host);
		// A host of a single word ("node") may be a word of the message.
		if (hostname.includes(".")) names.set(hostname.toLowerCase(), CUT.host);
	}
	if (names.size === 0) return null;
	const longestFirst = [...names.keys()].sort((a, b) => b.length - a.length);
	// A short part may be within a word of the message.
	const forms = longestFirst.map((one) =>
		one.length < LONG_CHARS ? `(?<!\\w)${escaped(one)}(?!\\w)` : escaped(one),
	);
	const pattern = new RegExp(forms.join("|"), "gi");
	return { pattern, names };
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

function escaped(text: string): string {
	return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
