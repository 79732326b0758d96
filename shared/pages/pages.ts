// The web pages of relay and boost, made of the files in this folder only. Their scripts use the same public API as any other
// client.

import { readFileSync } from "node:fs";
import { type HttpAnswer, jsonAnswer, type PageFinder } from "../http/messages.ts";
import type { Route } from "../http/routes.ts";

export interface Endpoint {
	/** "/fast" */
	readonly path: string;
	readonly about: string;
}

export interface Pages {
	readonly find: PageFinder;
	/** `/` for those who ask for no page, such as load balancers, which check it unless told otherwise: always 200. */
	readonly root: Route;
	/** Scripts and styles. */
	readonly routes: readonly Route[];
}

const POLICY = [
	"default-src 'none'",
	...["script-src", "style-src", "connect-src"].map((source) => `${source} 'self'`),
	...["base-uri", "frame-ancestors"].map((source) => `${source} 'none'`),
	"form-action 'self'",
].join("; ");
const HEADERS = {
	"content-security-policy": POLICY,
	"x-content-type-options": "nosniff",
	"referrer-policy": "no-referrer",
	// The same path answers JSON to other clients.
	vary: "accept",
};
const ASSETS = [
	"style.css",
	"common.js",
	"keccak.js",
	"home.js",
	"transaction.js",
	"operator.js",
	"boostOperator.js",
	"relayOperator.js",
];
const TYPES: Readonly<Record<string, string>> = {
	css: "text/css; charset=utf-8",
	js: "text/javascript; charset=utf-8",
	html: "text/html; charset=utf-8",
};

/** Boost streams to the relay what is not its own: there the relay's page has a path that boost has not. */
const OPERATOR_PATHS = { relay: ["/operator", "/relay/operator"], boost: ["/operator"] };

/**
 * `reasons`: for the operator's page, the words for each reason that boost's breakers open for, of which the relay has none; null:
 * that page is not served.
 */
export function createPages(
	service: "relay" | "boost",
	endpoints: readonly Endpoint[],
	reasons: Readonly<Record<string, string>> | null,
): Pages {
	const choices = endpoints.map(({ path, about }, i) => {
		const checked = i === 0 ? " checked" : "";
		return `<label><input type="radio" name="endpoint" value="${path}"${checked}> <code>${path}</code>: ${about}</label>`;
	});
	const home = page(
		textOf("home.html").replace("{{choices}}", choices.join("\n")).replace("{{service}}", service),
	);
	const transaction = page(textOf("transaction.html"));
	const operator = page(
		textOf("operator.html")
			.replaceAll("{{service}}", service)
			.replace("{{title}}", service === "relay" ? "Relay" : "Boost")
			.replace("{{reasons}}", JSON.stringify(reasons).replaceAll('"', "&quot;"))
			.replace("{{inside}}", () => textOf(`${service}Operator.html`)),
	);
	const operatorPaths = OPERATOR_PATHS[service];
	const about = { name: "leeward", service, endpoints: endpoints.map(({ path }) => path) };
	const root = jsonAnswer(200, about, { vary: HEADERS.vary });
	return {
		find(path) {
			if (path === "/") return home;
			if (operatorPaths.includes(path)) return reasons === null ? null : operator;
			return /^\/tx\/0x[0-9a-fA-F]{64}$/.test(path) ? transaction : null;
		},
		root: { path: "/", handle: () => root },
		routes: ASSETS.map((name) => {
			const answer = { ...file(name), headers: { ...HEADERS, "cache-control": "no-cache" } };
			return { path: `/pages/${name}`, handle: () => answer };
		}),
	};
}

function textOf(name: string): string {
	return readFileSync(new URL(name, import.meta.url), "utf8");
}

function file(name: string): HttpAnswer {
	const contentType = TYPES[name.split(".").at(-1) ?? ""] ?? "text/plain";
	return { status: 200, body: textOf(name), contentType };
}

function page(body: string): HttpAnswer {
	return { status: 200, body, contentType: "text/html; charset=utf-8", headers: HEADERS };
}
