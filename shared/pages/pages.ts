// The web pages of relay and boost: the files in this folder, and a library for charts. Their
// scripts use the same public API as any other client.

import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { createRequire } from "node:module";
import { type HttpAnswer, jsonAnswer, type PageFinder, VARY_ACCEPT } from "../http/messages.ts";
import type { Route } from "../http/routes.ts";
import { choices, type Endpoint, visibilityRows } from "./endpoints.ts";

export interface Pages {
	readonly find: PageFinder;
	/** The page of an error for clients that request pages. Any other answer is unchanged. */
	readonly error: (answer: HttpAnswer) => HttpAnswer;
	/**
	 * `/` for clients that request no page, such as load balancers, which check it by default.
	 * Always 200.
	 */
	readonly root: Route;
	/** Scripts and styles. */
	readonly routes: readonly Route[];
}

const POLICY = [
	"default-src 'none'",
	...["script-src", "style-src", "img-src", "connect-src"].map((source) => `${source} 'self'`),
	...["base-uri", "frame-ancestors"].map((source) => `${source} 'none'`),
	"form-action 'self'",
].join("; ");
/** Headers of each page. */
export const PAGE_HEADERS = {
	"content-security-policy": POLICY,
	"x-content-type-options": "nosniff",
	"referrer-policy": "no-referrer",
	// For other clients the same path answers JSON.
	...VARY_ACCEPT,
};
const ASSETS = [
	...["style.css", "wallet.css", "transaction.css", "charts.css", "operator.css", "icon.svg"],
	...["common.js", "live.js", "typed.js", "charts.js"],
	...["home.js", "transaction.js", "facts.js", "life.js", "path.js", "amounts.js", "cancel.js"],
	...["refunds.js", "groups.js"],
	...["operator.js", "boostOperator.js", "relayOperator.js"],
	...["stats.js", "searcher.js", "signedRead.js", "tables.js"],
];
/** Files of packages, by the name under which they are served. */
const LIBRARIES = { "uPlot.js": "uplot/dist/uPlot.iife.min.js", "uPlot.css": "uplot/dist/uPlot.min.css" };
const TYPES: Readonly<Record<string, string>> = {
	css: "text/css; charset=utf-8",
	js: "text/javascript; charset=utf-8",
	svg: "image/svg+xml",
	html: "text/html; charset=utf-8",
};

const requires = createRequire(import.meta.url);

/**
 * Boost forwards requests to the relay unless it serves the path itself. So the relay's page has a
 * second path, which boost does not serve.
 */
const OPERATOR_PATHS = { relay: ["/operator", "/relay/operator"], boost: ["/operator"] };

/**
 * `reasons`: for the operator's page, the words for each reason for which boost's breakers open.
 * Empty for the relay. If null, that page is not served. `explorerUrl`: the explorer that the pages
 * link to for public data, without a slash at its end. `hasStats`: whether the public statistics
 * are served.
 */
export function createPages(
	service: "relay" | "boost",
	endpoints: readonly Endpoint[],
	reasons: Readonly<Record<string, string>> | null,
	explorerUrl: string | undefined,
	hasStats: boolean,
): Pages {
	const common = { service, explorer: escaped(explorerUrl ?? "") };
	const rows = {
		choices: choices(endpoints),
		visibility: visibilityRows(endpoints),
		stats: hasStats ? `<p><a href="/stats">By day, and the service</a></p>` : "",
	};
	const home = page(filled("home.html", { ...common, ...rows }));
	const transaction = page(filled("transaction.html", common));
	const refunds = page(textOf("refunds.html"));
	const searcher = page(textOf("searcher.html"));
	const stats = page(textOf("stats.html"));
	const title = service === "relay" ? "Relay" : "Boost";
	const inside = textOf(`${service}Operator.html`);
	const operator = page(
		filled("operator.html", { service, title, inside, reasons: escaped(JSON.stringify(reasons)) }),
	);
	const operatorPaths = OPERATOR_PATHS[service];
	const about = { name: "leeward", service, endpoints: endpoints.map(({ path }) => path) };
	const root = jsonAnswer(200, about, VARY_ACCEPT);
	return {
		find(path) {
			if (path === "/") return home;
			if (/^\/refunds(\/0x[0-9a-fA-F]{40})?$/.test(path)) return refunds;
			if (path === "/searcher") return searcher;
			if (path === "/stats") return hasStats ? stats : null;
			if (operatorPaths.includes(path)) return reasons === null ? null : operator;
			return /^\/tx\/0x[0-9a-fA-F]{64}$/.test(path) ? transaction : null;
		},
		error: errorPage,
		root: { path: "/", handle: () => root },
		routes: [
			...ASSETS.map((name) => assetRoute(name, new URL(name, import.meta.url))),
			...Object.entries(LIBRARIES).map(([name, path]) => assetRoute(name, requires.resolve(path))),
		],
	};
}

/** The title for an error's status in a browser, and advice to its user. */
const ERRORS: Readonly<Record<number, readonly [title: string, advice: string]>> = {
	400: ["That is not right", "Check the address; the expected form is below."],
	404: ["Nothing is here", "Check the address, or begin at the home page."],
	405: [
		"This address is for wallets",
		"An RPC URL shows nothing in a browser: add it to your wallet, which the home page does for you.",
	],
	429: ["Too many requests", "Wait a moment, then load the page again."],
	503: ["Not available now", "Load the page again in a moment. Acknowledged transactions are kept."],
};
const ERROR = textOf("error.html");

function errorPage(answer: HttpAnswer): HttpAnswer {
	const { status, body, contentType, headers } = answer;
	if (typeof body !== "string" || contentType !== undefined) return answer;
	const { error } = JSON.parse(body) as { error?: unknown };
	// Other JSON, such as that of /readyz, has more details than our page could show.
	if (typeof error !== "string") return answer;
	const [title, advice] = ERRORS[status] ?? [STATUS_CODES[status] ?? "Error", ""];
	const words = { status: String(status), title, advice, error: escaped(error) };
	const shown = page(fill(ERROR, words));
	return { ...shown, status, headers: { ...PAGE_HEADERS, ...headers } };
}

/** The file `name` with its `{{placeholders}}` filled in by HTML. */
function filled(name: string, words: Readonly<Record<string, string>>): string {
	return fill(textOf(name), words);
}

function fill(text: string, words: Readonly<Record<string, string>>): string {
	return text.replace(/\{\{(\w+)\}\}/g, (_whole, name: string) => words[name] ?? "");
}

function escaped(text: string): string {
	return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

function textOf(name: string): string {
	return readFileSync(new URL(name, import.meta.url), "utf8");
}

function assetRoute(name: string, path: URL | string): Route {
	const contentType = TYPES[name.split(".").at(-1) ?? ""] ?? "text/plain";
	const headers = { ...PAGE_HEADERS, "cache-control": "no-cache" };
	const answer = { status: 200, body: readFileSync(path, "utf8"), contentType, headers };
	return { path: `/pages/${name}`, handle: () => answer };
}

function page(body: string): HttpAnswer {
	return { status: 200, body, contentType: "text/html; charset=utf-8", headers: PAGE_HEADERS };
}
