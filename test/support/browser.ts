// A real Chromium from its npm package, one page at a time. Collects errors in the console and
// requests to other hosts, which a test must not find. A page can have a wallet (EIP-6963) with a
// test's key.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Wallet } from "ethers";
import { type Browser, chromium as engine } from "playwright-core";
import { sized } from "./length.ts";
import { ADMIN_TOKEN } from "./relayClient.ts";
import { PATIENCE_MS } from "./until.ts";

export type OpenPage = Awaited<ReturnType<typeof openPage>>;

/** The data that a page has a wallet sign. */
export interface TypedData {
	readonly types: Record<string, { name: string; type: string }[]>;
	readonly domain: { readonly name: string; readonly version: string; readonly chainId: number };
	readonly primaryType: string;
	readonly message: Record<string, unknown>;
}

interface PageOptions {
	/** A wallet that signs with this key, and approves every request at once. */
	readonly wallet?: Wallet;
	/** The accounts that it offers, the chosen one first. Default: that of the key. */
	readonly accounts?: readonly string[];
	/** The chain that it is on. Default: the dev chain. */
	readonly chainId?: number;
	/** JSON that paths answer in the place of the server. */
	readonly answers?: Readonly<Record<string, unknown>>;
	/** How far the browser's clock is ahead, in ms. If given, `page.clock` moves it. */
	readonly aheadMs?: number;
	/** Called for each request to the wallet. */
	readonly onRequest?: (method: string, params: unknown) => void;
	readonly dark?: boolean;
	readonly width?: number;
}

/** Starts Chromium; the caller closes it. */
export async function startBrowser(): Promise<Browser> {
	// The package's own arguments are for AWS Lambda: a single process, and no web security.
	const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
	return engine.launch({ executablePath: await unpacked(), args });
}

/** The package unpacks itself into the temporary folder. */
const UNPACKS = `import chromium from "@sparticuz/chromium"; await chromium.executablePath();`;

/**
 * The program, unpacked once on a machine. The package takes whatever file has its name for the
 * whole program, also one that another process is still writing, so each process unpacks it into a
 * folder of its own, and the first one to end keeps it for all.
 */
async function unpacked(): Promise<string> {
	const folder = join(tmpdir(), `leeward-chromium-${VERSION}`);
	const program = join(folder, "chromium");
	if (existsSync(program)) return program;
	const draft = mkdtempSync(`${folder}-`);
	const env = { ...process.env, TMPDIR: draft, NODE_OPTIONS: "" };
	await promisify(execFile)(process.execPath, ["--input-type=module", "-e", UNPACKS], { env });
	try {
		renameSync(draft, folder);
	} catch {
		// Another process was faster.
		rmSync(draft, { recursive: true });
	}
	return program;
}

const PACKAGE = join(createRequire(import.meta.url).resolve("@sparticuz/chromium"), "../../../package.json");
const VERSION = (JSON.parse(readFileSync(PACKAGE, "utf8")) as { version: string }).version;

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** In the page: all that axe checked came to megabytes. */
const VIOLATIONS = `axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
	violations
		.filter(({ impact }) => impact === "serious" || impact === "critical")
		.map(({ id, nodes }) => [id, nodes.map(({ target }) => target)]))`;

/** Opens a page at `url`, and waits until it is loaded. */
export async function openPage(browser: Browser, url: string, options: PageOptions = {}) {
	const { wallet, onRequest, accounts, answers = {}, aheadMs, dark = false, width = 900 } = options;
	const { chainId = 31_337 } = options;
	const context = await browser.newContext({
		colorScheme: dark ? "dark" : "light",
		viewport: { width, height: 900 },
		// The default is that of the machine. "en-US@posix" is none that Intl accepts.
		locale: "en-US",
	});
	context.setDefaultTimeout(PATIENCE_MS);
	const page = await context.newPage();
	if (aheadMs !== undefined) await page.clock.install({ time: Date.now() + aheadMs });
	for (const [path, json] of Object.entries(answers)) {
		await page.route(`**${path}`, (route) => route.fulfill({ json }));
	}
	const faults: string[] = [];
	page.on("console", (message) => {
		if (message.type() === "error" || message.type() === "warning") faults.push(message.text());
	});
	page.on("pageerror", (error) => faults.push(error.message));
	const { host } = new URL(url);
	page.on("request", (request) => {
		if (new URL(request.url()).host !== host) faults.push(`asked ${request.url()}`);
	});
	if (wallet !== undefined) {
		await page.exposeFunction("askWallet", async (method: string, params: unknown) => {
			onRequest?.(method, params);
			if (method === "eth_requestAccounts") return accounts ?? [wallet.address.toLowerCase()];
			if (method === "eth_chainId") return `0x${chainId.toString(16)}`;
			if (method === "eth_signTypedData_v4") return signTyped(wallet, (params as readonly string[])[1] ?? "");
			return null;
		});
		await page.addInitScript(ANNOUNCES);
	}
	await page.goto(url);
	return {
		page,
		/** Errors in the console, and requests to other hosts: a test expects none. */
		faults,
		/** Serious findings of axe-core on the page as it is now. */
		async violations(): Promise<readonly string[]> {
			// Evaluated by the debugger, so the page's policy stays as it is. It is half a megabyte,
			// which a document needs once.
			if (!(await page.evaluate("'axe' in window"))) await page.evaluate(AXE);
			const found = (await page.evaluate(VIOLATIONS)) as readonly (readonly [id: string, targets: unknown])[];
			return found.map(([id, targets]) => `${id}: ${JSON.stringify(targets)}`);
		},
		close: (): Promise<void> => context.close(),
	};
}

/** As a wallet does: ethers derives the domain's type by itself. */
function signTyped(wallet: Wallet, data: string): Promise<string> {
	const { types, domain, message } = JSON.parse(data) as TypedData;
	const { EIP712Domain: _, ...own } = types;
	return wallet.signTypedData(domain, own, message);
}

/** Opens the data of an operator's page, which asks for a token. */
export async function logIn({ page }: Pick<OpenPage, "page">, token = ADMIN_TOKEN): Promise<void> {
	await page.getByLabel("ADMIN_TOKEN").fill(token);
	await page.getByRole("button", { name: "Open" }).click();
}

type Looks = Readonly<Record<string, Pick<PageOptions, "dark" | "width">>>;
const ALL_LOOKS: Looks = { light: {}, dark: { dark: true }, phone: { width: 390 } };
/** Colour schemes and widths that every page is checked in. Pictures are taken in all. */
export const LOOKS: Looks =
	process.env.SCREENSHOTS === undefined
		? sized<Looks>({ light: {}, "dark phone": { dark: true, width: 390 } }, ALL_LOOKS)
		: ALL_LOOKS;

/** A large screen and a phone, each in both colour schemes. */
const ALL_WIDE_LOOKS: Looks = {
	light: { width: 1_440 },
	"phone-dark": { width: 390, dark: true },
	dark: { width: 1_440, dark: true },
	phone: { width: 390 },
};
/** The same for pages that use a wide screen, and for the many states of the operators' pages. */
export const WIDE_LOOKS = process.env.SCREENSHOTS === undefined ? LOOKS : ALL_WIDE_LOOKS;
export const STATE_LOOKS =
	process.env.SCREENSHOTS === undefined
		? sized<Looks>({ "dark phone": { dark: true, width: 390 } }, ALL_WIDE_LOOKS)
		: ALL_WIDE_LOOKS;

/**
 * The page is not wider than its window. With SCREENSHOTS=FOLDER it leaves a picture of itself
 * there: of the whole page, or of the part in the window.
 */
export async function fits(
	{ page }: Pick<OpenPage, "page">,
	name: string,
	{ fullPage = true }: { readonly fullPage?: boolean } = {},
): Promise<void> {
	const width = (await page.evaluate("document.documentElement.scrollWidth")) as number;
	assert.ok(width <= (page.viewportSize()?.width ?? 0), `${name} is ${width} wide`);
	const { SCREENSHOTS } = process.env;
	if (SCREENSHOTS === undefined) return;
	const path = join(SCREENSHOTS, `${name}.png`);
	// The documents keep a few; another folder gets all.
	if (relative(DOCUMENTS, SCREENSHOTS) === "" && !existsSync(path)) return;
	await page.screenshot({ path, fullPage });
}

const DOCUMENTS = fileURLToPath(new URL("../../docs/screenshots", import.meta.url));

/**
 * Everybody can use the page as it is now, in each look, and it fits. In `npm test` the page that
 * is the `nth` one of a test is checked in one look.
 */
export async function isRightInEveryLook(
	{ page, violations }: Pick<OpenPage, "page" | "violations">,
	name: string,
	nth = 0,
): Promise<void> {
	const all = Object.entries(ALL_WIDE_LOOKS);
	const turn = nth % all.length;
	const looks = process.env.SCREENSHOTS === undefined ? sized(all.slice(turn, turn + 1), all) : all;
	for (const [look, { width = 0, dark = false }] of looks) {
		await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
		await page.setViewportSize({ width, height: 900 });
		await fits({ page }, `${name}-${look}`);
		assert.deepEqual(await violations(), [], `${name} ${look}`);
	}
}

/** The page is as everybody can use it, and asks nobody else. */
export async function isSound({ faults, violations }: OpenPage): Promise<void> {
	assert.deepEqual(await violations(), []);
	assert.deepEqual(faults, []);
}

/** https://eips.ethereum.org/EIPS/eip-6963 */
const ANNOUNCES = `(() => {
	const provider = { request: ({ method, params }) => window.askWallet(method, params) };
	const info = { uuid: "1b5bd0d0-0000-4000-8000-000000000001", name: "Test Wallet", icon: "data:,", rdns: "test.wallet" };
	const announce = () => window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info, provider }) }));
	window.addEventListener("eip6963:requestProvider", announce);
	announce();
})()`;
