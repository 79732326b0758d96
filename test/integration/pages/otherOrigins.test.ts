// Web pages of another origin than the relay's and boost's, in a real browser: a dapp whose tracing
// script adds headers of its own to every request, a page without an origin, and what they can read
// of an answer.

import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import { startBrowser } from "../../support/browser.ts";
import { until } from "../../support/until.ts";

/** The result of one fetch for a page. */
interface Told {
	readonly status: number;
	readonly retryAfter: string | null;
	readonly json: {
		readonly id?: unknown;
		readonly result?: unknown;
		readonly error?: { readonly code: number };
	};
}

/** Sentry's, W3C's and a dapp's own; none is on the browser's list of safe ones. */
const TRACING = {
	"sentry-trace": "12312012123120121231201212312012-1121201211212012-1",
	baggage: "sentry-environment=production,sentry-public_key=abc",
	traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"x-dapp": "a dapp",
};

let fixture: BoostFixture;
let browser: Browser;
/** Serves empty pages. */
let dapp: Server;
let page: Page;
before(async () => {
	fixture = await startBoostFixture({
		...QUIET,
		unwired: true,
		system: { env: { ...QUIET.system.env, RATE_LIMIT_RPS: "10" } },
	});
	browser = await startBrowser();
	dapp = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html>"));
	await new Promise<void>((resolve) => dapp.listen(0, "127.0.0.1", resolve));
	page = await browser.newPage();
	await page.goto(`http://127.0.0.1:${(dapp.address() as AddressInfo).port}/`);
});
after(async () => {
	await browser?.close();
	dapp?.close();
	await fixture?.stop();
});

const CALL = { jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] };
/**
 * Each costs as much as the limit grants in a second, so that a batch is over the limit however
 * long it takes.
 */
const EXPENSIVE = Array(100).fill({ ...CALL, method: "eth_call", params: [{ data: "0x" }, "latest"] });

/** Fetches as a script of `where` does, or rejects with what the browser says. */
function ask(
	url: string,
	headers: Record<string, string> = {},
	where: Pick<Page, "evaluate"> = page,
	body: object = CALL,
): Promise<Told> {
	return where.evaluate(
		async ([to, names, text]) => {
			const answer = await fetch(to, { method: "POST", headers: names, body: text });
			return {
				status: answer.status,
				retryAfter: answer.headers.get("retry-after"),
				json: (await answer.json()) as Told["json"],
			};
		},
		[url, { "content-type": "application/json", ...headers }, JSON.stringify(body)] as const,
	);
}

const urls = () => ({ relay: fixture.system.client.url, boost: fixture.boost.url });

test("a page's request with headers of its scripts is answered, by the relay and by boost", async () => {
	for (const [who, url] of Object.entries(urls())) {
		for (const path of ["/fast", "/", "//noreverts", "/fullprivacy"]) {
			const { status, json } = await ask(url + path, TRACING);
			assert.deepEqual([status, json.result], [200, "0x7a69"], `${who} ${path}`);
		}
	}
});

test("so is that of a page without an origin", async () => {
	await page.evaluate(`new Promise((resolve) => {
		const frame = document.createElement("iframe");
		frame.sandbox.add("allow-scripts");
		frame.srcdoc = "<!doctype html>";
		frame.addEventListener("load", resolve, { once: true });
		document.body.append(frame);
	}).then(() => null)`);
	const inside = page.frames().at(-1) ?? assert.fail();
	assert.equal(await inside.evaluate("self.origin"), "null");
	for (const [who, url] of Object.entries(urls())) {
		const { status, json } = await ask(`${url}/fast`, TRACING, inside);
		assert.deepEqual([status, json.result], [200, "0x7a69"], who);
	}
});

test("a near miss of a path is reported to the page, not hidden by a failed preflight", async () => {
	for (const [who, url] of Object.entries(urls())) {
		for (const [path, status] of [
			["/Fast", 404],
			["/v1/KEY", 404],
			["/livez", 405],
			[`/tx/0x${"ab".repeat(32)}`, 405],
		] as const) {
			const told = await ask(url + path, TRACING);
			assert.deepEqual([told.status, told.json.error?.code], [status, -32600], `${who} ${path}`);
		}
	}
});

test("no page's request has its visitor's cookies", async () => {
	for (const url of Object.values(urls())) {
		const failed = page.evaluate(
			(to) => fetch(to, { method: "POST", credentials: "include", body: "{}" }).then(() => "read"),
			`${url}/fast`,
		);
		await assert.rejects(failed, /Failed to fetch/);
	}
});

test("a page reads when to try again: from the relay, through boost, and from boost", async () => {
	const own = await fixture.startBoost({ env: { RATE_LIMIT_RPS: "10" } });
	for (const [who, url] of Object.entries({ ...urls(), "boost's own limit": own.url })) {
		const told = await until(`${who} refuses all of a batch`, async () => {
			const all = await Promise.all([1, 2, 3].map(() => ask(`${url}/fast`, TRACING, page, EXPENSIVE)));
			return all.find(({ status }) => status !== 200);
		});
		const codes = (told.json as unknown as Told["json"][]).map(({ error }) => error?.code);
		assert.deepEqual([told.status, new Set(codes), told.retryAfter], [429, new Set([-32005]), "1"], who);
	}
});

test("while the relay is down boost answers pages' preflights, and they read what it says", async () => {
	await fixture.boost.force("open");
	const served = await ask(`${fixture.boost.url}/fast`, TRACING);
	assert.deepEqual([served.status, served.json.result], [200, "0x7a69"]);
	const told = await ask(`${fixture.boost.url}/fullprivacy`, TRACING);
	assert.deepEqual([told.status, told.json.error?.code], [200, -32603]);
	assert.match(told.retryAfter ?? "", /^[1-9]\d*$/);
	const missed = await ask(`${fixture.boost.url}/Fast`, TRACING);
	assert.deepEqual([missed.status, missed.json.error?.code], [404, -32600]);
	await fixture.boost.force("auto");
});
