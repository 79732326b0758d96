// Whether a request comes from a web page: its `Origin` header comes in, a yes or no goes out. It judges no request.

/**
 * Whether a web page has sent it. We serve none that sends anything, so each is a foreign one. A page in a sandboxed
 * frame has the origin "null"; extensions' origins have schemes of their own.
 * https://fetch.spec.whatwg.org/#origin-header
 */
export function isWebPage(origin: string | null): boolean {
	return origin !== null && /^\s*(?:https?:|null\s*$)/i.test(origin);
}
