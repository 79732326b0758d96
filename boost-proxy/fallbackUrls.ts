// Addresses of upstreams as settings: text comes in, a URL that may be used goes out. What is sent to a fallback is private,
// so plain http goes no further than the operator's own network.

import { isIPv4, isIPv6 } from "node:net";
import { url } from "../shared/config.ts";

const httpUrl = url("http:", "https:");
/** Names that no public server can have: https://www.rfc-editor.org/rfc/rfc6761 and Fly's private networks. */
const PRIVATE_NAME = /(^|\.)(localhost|internal|flycast)$/;

/** A base that paths are added to: without a query, and without a slash at its end. */
export function baseUrl(text: string): string | undefined {
	return httpUrl(text) !== undefined && !/[?#]/.test(text) ? text.replace(/\/+$/, "") : undefined;
}

/** A URL that may have a query, with a key in it. */
export function wholeUrl(text: string): string | undefined {
	return httpUrl(text) !== undefined && !text.includes("#") ? text : undefined;
}

/** Whether it is https, or http that stays in a private network. */
export function isSafeForThirdParty(text: string): boolean {
	const { protocol, hostname } = new URL(text);
	return protocol === "https:" || isPrivateHost(hostname);
}

/** Whether a host, as a URL spells it, can only be this machine or one of a private network. */
export function isPrivateHost(hostname: string): boolean {
	const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
	if (isIPv4(host)) return isPrivateIPv4(host);
	if (isIPv6(host)) return isPrivateIPv6(host);
	return PRIVATE_NAME.test(host.replace(/\.$/, ""));
}

/** Loopback, https://www.rfc-editor.org/rfc/rfc1918 and link-local. */
function isPrivateIPv4(host: string): boolean {
	const [a = 0, b = 0] = host.split(".").map(Number);
	return (
		a === 127 ||
		a === 10 ||
		(a === 172 && b >= 16 && b <= 31) ||
		(a === 192 && b === 168) ||
		(a === 169 && b === 254)
	);
}

/** Loopback, unique local (https://www.rfc-editor.org/rfc/rfc4193) and link-local. A URL spells them in the shortest form. */
function isPrivateIPv6(host: string): boolean {
	return host === "::1" || /^f[cd][0-9a-f]{2}:/.test(host) || /^fe[89ab][0-9a-f]:/.test(host);
}
