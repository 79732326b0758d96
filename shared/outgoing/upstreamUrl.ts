// The parts of an upstream's URL: the destination of requests, and the path and credentials of
// each.

import { authorizationOf } from "./headers.ts";

/** A URL in parts. */
export interface UpstreamUrl {
	/** Scheme, host and port. */
	readonly origin: string;
	/** Host and port. */
	readonly host: string;
	/** `Basic …`, or null if the URL has no credentials. */
	readonly authorization: string | null;
	/**
	 * Path and query of a request to `target`: its path is appended to the URL's, and the queries are
	 * joined. "" and "/" are the URL itself; "?…" only adds a query.
	 */
	pathOf(target: string): string;
}

/** Parses a URL. Throws TypeError if `text` is not one. */
export function readUpstreamUrl(text: string): UpstreamUrl {
	const url = new URL(text);
	const { origin, host, pathname, search } = url;
	const stem = pathname.replace(/\/+$/, "");
	const own = search.slice(1);
	return {
		origin,
		host,
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

/** Characters that undici rejects in a request line, or that Node would not write as one byte. */
const UNWRITABLE = /[^\x21-\xff]/g;

/** Encodes characters that can't be sent. Queries come from clients and must not cause faults. */
function writable(path: string): string {
	if (path.search(UNWRITABLE) === -1) return path;
	return path.toWellFormed().replace(/[^\x21-\xff]+/g, encodeURIComponent);
}
