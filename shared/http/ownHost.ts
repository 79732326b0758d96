// The Host check of the metrics that need no token. A stranger can point a name of his own at our address (DNS rebinding). His page
// is then of the same origin to a browser that reaches this port. Routes with a token need no such check: his page has none.

import { isIP } from "node:net";

/** Names that a stranger cannot own: without a dot, or resolved by a private network alone. */
const PRIVATE_NAME = /^[^.]+$|\.(localhost|internal|flycast|local|svc)$/;

/** Whether the value of a Host header is an address or a private name. Browsers always send Host; a client without one is none. */
export function isOwnHost(host: string | undefined): boolean {
	if (host === undefined) return true;
	if (!URL.canParse(`http://${host}`)) return false;
	const name = new URL(`http://${host}`).hostname.replace(/^\[|\]$|\.$/g, "");
	return isIP(name) !== 0 || PRIVATE_NAME.test(name);
}
