// The target of a request line: what comes in is its text, what goes out is a path in one form and the query as
// text. It decodes nothing and knows no routes.

/** Where a request goes. */
export interface RequestTarget {
	/** Without query, and without slashes at its end unless it is "/". */
	readonly path: string;
	/** What stands behind the first "?", or "". */
	readonly search: string;
}

/** Reads a request target: origin form (`/fast?a=b`) or absolute form (`http://host/fast`, as proxies send). */
export function readTarget(target: string): RequestTarget {
	const origin = target.startsWith("/") ? target : originForm(target);
	const mark = origin.indexOf("?");
	const path = mark === -1 ? origin : origin.slice(0, mark);
	return { path: withoutEndSlash(path), search: mark === -1 ? "" : origin.slice(mark + 1) };
}

function withoutEndSlash(path: string): string {
	let end = path.length;
	while (end > 1 && path.charCodeAt(end - 1) === 0x2f) end--;
	return end === path.length ? path : path.slice(0, end);
}

function originForm(target: string): string {
	const rest = /^https?:\/\/[^/?#]*(.*)$/i.exec(target)?.[1];
	if (rest === undefined) return target;
	return rest.startsWith("/") ? rest : `/${rest}`;
}
