// The Host check for metrics without a token. A stranger can point a name of his own at our address
// (DNS rebinding). For a browser that reaches this port, his page then has the same origin. Routes
// with a token need no such check, since his page does not have the token.

import { isIP } from "node:net";

/** Names that a stranger cannot own: without a dot, or resolved only by a private network. */
const PRIVATE_NAME = /^[^.]+$|\.(localhost|internal|flycast|local|svc)$/;

/**
 * Whether the value of a Host header is an address or a private name. Browsers always send Host, so
 * a client without it is not a browser.
 */
export function isOwnHost(host: string | undefined): boolean {
	if (host === undefined) return true;
	if (!URL.canParse(`http://${host}`)) return false;
	const name = new URL(`http://${host}`).hostname.replace(/^\[|\]$|\.$/g, "");
	return isIP(name) !== 0 || PRIVATE_NAME.test(name);
}
