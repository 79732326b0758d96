// The operators' pages in a real browser: charts of a played day, the size of a page, and a change
// of state that is shown at once.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Browser } from "playwright-core";
import { noConduct } from "../../../relay/domain/conduct.ts";
import { conductSums } from "../../../relay/ingress/builderConduct.ts";
import { type CoreState, coreProblems } from "../../../relay/ingress/operators.ts";
import { PROBLEMS, type Problem, type ProblemWords, problemElsewhere } from "../../../shared/problems.ts";
import { type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import {
	fits,
	isSound,
	logIn,
	type OpenPage,
	openPage,
	STATE_LOOKS,
	startBrowser,
	WIDE_LOOKS,
} from "../../support/browser.ts";
import { sized } from "../../support/length.ts";
import { playedBoost, playedChanges, playedRelay } from "../../support/playedHistory.ts";
import { ADMIN_TOKEN } from "../../support/relayClient.ts";

const ETHER = 10n ** 18n;
/** Bytes of everything that a page loads. */
const MAX_BYTES = 150_000;
/** The last minute is cut off, so that the axis has full hours. */
const NOW = Math.floor(Date.now() / 60_000) * 60_000;

let browser: Browser;
let fixture: BoostFixture;
let boost: unknown;
let relay: unknown;
before(async () => {
	browser = await startBrowser();
	fixture = await startBoostFixture(QUIET);
	[boost, relay] = await Promise.all([playedBoost(NOW), playedRelay(NOW)]);
});
after(async () => {
	await browser?.close();
	await fixture?.stop();
});

/** Opens a page with the figures of the played day, and waits until they are drawn. */
async function openPlayed(path: string, look: { dark?: boolean; width?: number } = {}): Promise<OpenPage> {
	const answers = path === "/operator" ? { "/admin/history": boost } : { "/relay/admin/history": relay };
	const opened = await openPage(browser, `${fixture.boost.url}${path}`, { ...look, answers });
	if (path === "/operator") {
		// Without the stream, which has the real changes, the page asks for the state.
		await opened.page.route("**/admin/events", (route) => route.fulfill({ body: "" }));
		await opened.page.route("**/admin/state", async (route) => {
			const response = await route.fetch();
			const json = { ...((await response.json()) as object), history: playedChanges(NOW) };
			return route.fulfill({ response, json });
		});
	}
	await logIn(opened);
	await opened.page.locator("canvas").first().waitFor();
	return opened;
}

it("shows every figure as a chart with a table, in any colour scheme and width", async () => {
	await fixture.recovers();
	for (const [name, path] of [
		["operator", "/operator"],
		["operator-relay", "/relay/operator"],
	] as const) {
		for (const [look, options] of Object.entries(WIDE_LOOKS)) {
			const opened = await openPlayed(path, options);
			const { page } = opened;
			assert.equal(await page.locator("#charts .none:visible").count(), 0, "each has values");
			await isSound(opened);
			await fits(opened, `${name}-${look}`);
			await opened.close();
		}
	}
});

/** Changes of the state that the server answers, by the name of the picture. */
const STATES: readonly (readonly [
	name: string,
	path: string,
	shown: string,
	change: (state: Json) => Json,
])[] = [
	["operator-start", "/operator", "Nothing is wrong.", (state) => state],
	["operator-relay-start", "/relay/operator", "Nothing is wrong.", (state) => state],
	[
		"operator-several",
		"/operator",
		"5b1e0f3a, this one",
		(state) => {
			const unreaching = problemElsewhere(PROBLEMS.otherUnreaching.text, "c07d2a91");
			return { ...state, instances: INSTANCES, problems: [unreaching] };
		},
	],
	[
		"operator-relay-several",
		"/relay/operator",
		"core: it decides",
		(state) => {
			const core = { ...(state.core as CoreState), edges: 2, relays: RELAYS };
			return { ...state, term: 7, core, problems: coreProblems(core, "relay-0:8080") };
		},
	],
	[
		"operator-relay-trouble",
		"/relay/operator",
		"The node does not answer.",
		(state) => {
			const node = { ...(state.node as Json), answerMs: null, clockDifferenceSeconds: -9 };
			const problems = [problem(PROBLEMS.nodeSilent, true), problem(PROBLEMS.clock, false)];
			return { ...state, node, problems };
		},
	],
	[
		"operator-relay-alone",
		"/relay/operator",
		"No core reachable.",
		(state) => ({ ...state, role: "edge", core: null, problems: [problem(PROBLEMS.noCore, true)] }),
	],
	[
		"operator-out",
		"/operator",
		"The relay is down: the fallback serves its clients.",
		(state) => {
			const { status } = state as { status: { relay: Json } };
			const down = {
				...status.relay,
				state: "open",
				reason: "refused",
				hint: "check that RELAY_URL is right",
			};
			return { ...state, status: { ...status, relay: down }, problems: [problem(PROBLEMS.relayDown, false)] };
		},
	],
	[
		"operator-journal",
		"/operator",
		"The journal is not on disk, or full.",
		(state) => {
			const { status } = state as { status: { journal: Json } };
			const journal = { ...status.journal, durable: false };
			const problems = [problem(PROBLEMS.journalInMemory, false)];
			return { ...state, status: { ...status, journal }, problems };
		},
	],
];

/** The states that every run looks at. */
const SHORT = ["operator-relay-several", "operator-relay-alone", "operator-out"];

type Json = Readonly<Record<string, unknown>>;

function problem({ text, todo }: ProblemWords, isSerious: boolean): Problem {
	return { text: text === PROBLEMS.clock.text ? `${text} 9 s behind the chain's` : text, todo, isSerious };
}

const INSTANCES = [
	{ name: "5b1e0f3a-1", isSilent: false, reaches: true, upSeconds: 90_000, secondsAgo: 0.4 },
	{ name: "c07d2a91-2", isSilent: false, reaches: false, upSeconds: 4_000, secondsAgo: 0.9 },
	{ name: "e4415c77-3", isSilent: true, reaches: true, upSeconds: 90_000, secondsAgo: 5 },
];
const SINCE = new Date(NOW - 3_600_000).toISOString();
const RELAYS = (["core", "edge", "edge"] as const).map((role, i) => ({
	...{ name: `relay-${i}:8080`, role, since: SINCE, version: "0.1.0", head: 21_000_000 - i },
	...{ subscriptions: 12 * i, secondsAgo: i + 0.5, problems: i === 2 ? [PROBLEMS.headStale.text] : [] },
}));

it("each state is legible in any colour scheme and width", async () => {
	await fixture.recovers();
	const isLong = process.env.SCREENSHOTS !== undefined || sized(false, true);
	const some = STATES.filter(([name]) => isLong || SHORT.includes(name));
	for (const [name, path, shown, change] of some) {
		for (const [look, options] of Object.entries(STATE_LOOKS)) {
			const opened = await openPage(browser, `${fixture.boost.url}${path}`, options);
			const { page } = opened;
			await page.route("**/admin/events", (route) => route.fulfill({ body: "" }));
			await page.route("**/admin/state", async (route) => {
				const response = await route.fetch();
				return route.fulfill({ response, json: change((await response.json()) as Json) });
			});
			await logIn(opened);
			await page.getByText(shown).first().waitFor();
			await page.getByText("Memory").first().waitFor();
			await isSound(opened);
			await fits(opened, `${name}-${look}`, { fullPage: name.endsWith("several") });
			await opened.close();
		}
	}
});

it("shows the last day, and a table of each chart by the keyboard", async () => {
	const opened = await openPlayed("/relay/operator", { width: 390 });
	const { page } = opened;
	const figure = page.locator("figure").filter({ hasText: "Submissions" });
	await figure.locator("summary").focus();
	await page.keyboard.press("Enter");
	const rows = figure.locator("tbody tr");
	await rows.nth(59).waitFor();
	assert.match((await rows.first().textContent()) ?? "", /^\d{4}-\d\d-\d\d \d\d:\d\d\d+/);
	await page.getByRole("button", { name: "Last day" }).click();
	await rows.nth(95).waitFor();
	await isSound(opened);
	await fits(opened, "operator-relay-day-phone");
	await opened.close();
});

it("shows the builders' conduct, and what is found about one", async () => {
	const honest = {
		...noConduct(0, "honest"),
		sent: 4,
		accepted: 4,
		mined: 2,
		backrun: 2,
		owed: ETHER,
		paid: ETHER,
	};
	const other = {
		...noConduct(0, "other"),
		sent: 3,
		accepted: 1,
		refused: 2,
		minedAfterCancel: 2,
		canaries: 9,
	};
	const answers = { "/relay/operator/builders.json": conductSums([honest, other]) };
	const opened = await openPage(browser, `${fixture.boost.url}/relay/operator`, { width: 390, answers });
	const { page } = opened;
	await logIn(opened);
	const rows = page.locator("#conduct tbody tr");
	await rows.first().waitFor();
	assert.deepEqual(await rows.allTextContents(), [
		"honestnone44 of 422 of 21 of 1000 of 0",
		"othermines what it has cancelled31 of 30nonenone200 of 9",
	]);
	await isSound(opened);
	await fits(opened, "operator-relay-conduct-phone");
	await opened.close();
});

it("is below 150 KB in all", async (t) => {
	for (const [path, answers] of [
		["/operator", { "/admin/history": boost }],
		["/relay/operator", { "/relay/admin/history": relay }],
	] as const) {
		const opened = await openPage(browser, `${fixture.boost.url}${path}`, { answers });
		const { page } = opened;
		await logIn(opened);
		await page.locator("canvas").first().waitFor();
		const bodies: Promise<Buffer>[] = [];
		page.on("response", (response) => {
			if (response.url().endsWith("/admin/events")) return;
			// That of the first load may be gone.
			bodies.push(response.body().catch(() => Buffer.alloc(0)));
		});
		await page.reload();
		await page.locator("canvas").first().waitFor();
		const bytes = (await Promise.all(bodies)).reduce((sum, { length }) => sum + length, 0);
		await opened.close();
		t.diagnostic(`${path}: ${bytes} bytes`);
		assert.ok(bytes > 0 && bytes < MAX_BYTES, `${path} loads ${bytes} bytes`);
	}
});

it("shows a change at once, without a request for the state", async () => {
	await fixture.recovers();
	const opened = await openPage(browser, `${fixture.boost.url}/operator`);
	const { page } = opened;
	await logIn(opened);
	await page.getByText("Nothing is wrong.").waitFor();
	let asked = 0;
	page.on("request", (request) => {
		if (request.url().endsWith("/admin/state")) asked += 1;
	});
	const forced = Date.now();
	await fixture.boost.force("open");
	await page.getByText("An operator has forced the relay's breaker open: the fallback").waitFor();
	const ms = Date.now() - forced;
	assert.equal(asked, 0);
	await page.getByText("What to do: choose auto once the relay may serve again.").waitFor();
	assert.ok(ms < 2_000, `after ${ms} ms, sooner than the next state is due`);
	assert.equal(await page.locator("#relay-open").getAttribute("aria-pressed"), "true");
	await isSound(opened);
	for (const [look, { dark = false, width = 900 }] of Object.entries(STATE_LOOKS)) {
		await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
		await page.setViewportSize({ width, height: 900 });
		await fits(opened, `operator-forced-${look}`, { fullPage: false });
	}
	await fixture.boost.force("auto");
	await page.getByText("Nothing is wrong.").waitFor();
	await opened.close();
});

it("the relay's page follows its stream through boost", async () => {
	// The wires of the fixture wait for whole answers, which this one is not.
	const direct = await fixture.startBoost({ env: { RELAY_URL: fixture.system.client.url } });
	const opened = await openPage(browser, `${direct.url}/relay/operator`);
	const { page } = opened;
	await logIn(opened);
	await page.getByText("Nothing is wrong.").waitFor();
	const block = (await fixture.users.head()) + 1;
	let asked = 0;
	page.on("request", (request) => {
		if (request.url().endsWith("/admin/state")) asked += 1;
	});
	await fixture.system.nextBlock();
	await page.getByText(`block ${block}, `).waitFor();
	assert.equal(asked, 0);
	await opened.close();
	await direct.stop();
});

it("reports what is wrong in the words of /readyz", async () => {
	await fixture.goesOut("fallback");
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	const ready = await (await fetch(`${fixture.boost.url}/readyz`)).json();
	const state = await (await fetch(`${fixture.boost.url}/admin/state`, { headers })).json();
	const { note } = (ready as { checks: { upstream: { note: string } } }).checks.upstream;
	const [problem] = (state as { problems: { text: string; todo: string }[] }).problems;
	assert.deepEqual(problem, { text: note, todo: "wait, or set another FALLBACK_URL", isSerious: false });
	await fixture.comesBack();
});
