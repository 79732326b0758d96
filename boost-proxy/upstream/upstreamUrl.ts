// Splits an upstream's URL into where requests go and the header of its credentials. Paths and keys in it are secrets:
// nothing of it is ever printed.

/** What undici would refuse in a request line, and Node would not write as one byte. */
const UNWRITABLE = /[^\x21-\xff]/g;

/** An address in parts. */
export interface UpstreamUrl {
	/** Scheme, host and port. */
	readonly origin: string;
	/** `Basic …`, or null where it holds no credentials. */
	readonly authorization: string | null;
	/**
	 * Path and query of a request to `target` behind it: its path is put behind the address's own, and the queries are
	 * joined. "" and "/" are the address itself; "?…" adds a query alone.
	 */
	pathOf(target: string): string;
}

/** Takes a URL apart. Throws TypeError where `text` is none. */
export function readUpstreamUrl(text: string): UpstreamUrl {
	const url = new URL(text);
	const { origin, pathname, search } = url;
	const stem = pathname.replace(/\/+$/, "");
	const own = search.slice(1);
	return {
		origin,
		authorization: authorizationOf(url),
		pathOf(target) {
			const mark = target.indexOf("?");
			const path = mark === -1 ? target : target.slice(0, mark);
			const query = mark === -1 ? "" : target.slice(mark + 1);
			const behind = path.startsWith("/") ? stem + path : `${stem}/${path}`;
			const whole = path === "" || path === "/" ? pathname : behind;
			const joined = own === "" || query === "" ? own + query : `${own}&${query}`;
			return writable(joined === "" ? whole : `${whole}?${joined}`);
		},
	};
}

function authorizationOf({ username, password }: URL): string | null {
	if (username === "" && password === "") return null;
	const pair = `${decoded(username)}:${decoded(password)}`;
	return `Basic ${Buffer.from(pair).toString("base64")}`;
}

/** A URL may hold a "%" that encodes nothing. */
function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

/** A query is the client's, and comes from the journal too: one odd character in it must not look like a fault. */
function writable(path: string): string {
	if (path.search(UNWRITABLE) === -1) return path;
	return path.toWellFormed().replace(/[^\x21-\xff]+/g, encodeURIComponent);
}
