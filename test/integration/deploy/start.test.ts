// The README's quick start and first transactions, the wallets' lines for curl and the searchers'
// bot, as they stand, on what `npm start` starts; and what that says from its first second to its
// end. Only the ports are others.

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { isGone } from "../../devnet/devSystem.ts";
import { forkOf, startForkChain } from "../../devnet/forkChain.ts";
import { freePort } from "../../devnet/freePort.ts";
import { GETH } from "../../devnet/gethChain.ts";
import { documents, filled, ROOT, snippet } from "../../support/documents.ts";
import { sized } from "../../support/length.ts";
import { groupGone, type LaunchedRelay, launchRelay, withTestLoader } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";

/** The ports of the documents by their settings. */
const USUAL = {
	CHAIN_PORT: "8545",
	RELAY_PORT: "8080",
	BOOST_PORT: "8081",
	FALLBACK_PORT: "8082",
	BUILDER_PORT: "8083",
};
const QUICK_START = snippet("README.md", "npm ci && npm start");
/** A machine need not have it for the tests. */
const HAS_CURL = spawnSync("curl", ["--version"]).error === undefined;
const CAST = snippet("README.md", "npx cast send");

/** A shell that is written to as one types, and what it and its commands have printed. */
interface Shell {
	readonly child: ChildProcess;
	type(text: string): void;
	text(): string;
	errors(): string;
	/** At its end. */
	readonly code: Promise<number | null>;
}

const folder = mkdtempSync(join(tmpdir(), "leeward-start-"));
const shells: Shell[] = [];
let ports: Record<keyof typeof USUAL, string>;
/** `npm start`, and the same with a node and builders of its own. */
let run: LaunchedRelay;
/** Whether it is ours to end it now. */
let ending = false;
let pair: LaunchedRelay;
let pairEnds: Promise<void>;
/** The output of ethers and viem, by library. */
const printed = new Map<string, Promise<string>>();
/** The transaction that cast sends. */
let hash = "";
before(async () => {
	ports = await freePorts();
	run = launchRelay({ line: `exec ${commandsOf(QUICK_START)[1]}`, env: ports });
	// Its last output says why it ended; the tests behind would only see that nothing answers.
	void run.exited.then(({ code, signal, stdout, stderr }) => {
		if (!ending)
			throw new Error(`npm start has ended with ${code ?? signal}:\n${stdout.slice(-2000)}${stderr}`);
	});
});
after(async () => {
	for (const { child, code } of shells) {
		if (isGone(child)) continue;
		process.kill(-Number(child.pid), "SIGKILL");
		await code;
	}
	ending = true;
	await Promise.all([run?.kill(), pair?.kill()]);
	rmSync(folder, { recursive: true, force: true });
});

async function freePorts(): Promise<typeof ports> {
	const found = new Set<number>();
	while (found.size < Object.keys(USUAL).length) found.add(await freePort());
	return Object.fromEntries(
		Object.keys(USUAL).map((name, i) => [name, String([...found][i])]),
	) as typeof ports;
}

/** The commands of a block, in order. */
function commandsOf(block: string): readonly string[] {
	return block
		.split("\n")
		.flatMap((line) => (line.split("#")[0] ?? "").trim().split(" && "))
		.filter((one) => one !== "");
}

/** A block with the ports of this test. */
function here(block: string): string {
	return Object.entries(USUAL).reduce(
		(text, [name, port]) =>
			text.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${ports[name as keyof typeof ports]}`),
		block,
	);
}

function shell(env: Readonly<Record<string, string>> = {}): Shell {
	const { PATH, HOME, TMPDIR } = process.env;
	const child = spawn("/bin/sh", { cwd: ROOT, env: { PATH, HOME, TMPDIR, ...env }, detached: true });
	const texts = { stdout: "", stderr: "" };
	for (const name of ["stdout", "stderr"] as const)
		child[name].setEncoding("utf8").on("data", (text) => {
			texts[name] += text;
		});
	const code = new Promise<number | null>((resolve) => child.once("close", resolve));
	const opened = {
		child,
		type: (line: string) => void child.stdin.write(line),
		text: () => texts.stdout,
		errors: () => texts.stderr,
		code,
	};
	shells.push(opened);
	return opened;
}

/** The output of a block, run to its end by a shell, which must succeed. */
async function said(block: string): Promise<string> {
	const one = shell();
	one.type(`set -e\n${here(block)}\n`);
	one.child.stdin?.end();
	assert.equal(await one.code, 0, one.text() + one.errors());
	return one.text();
}

/** The dev chain's node. */
function node(): RelayClient {
	return new RelayClient(here("http://127.0.0.1:8545"));
}

/**
 * Ends it as Ctrl-C in a terminal does: every process of its group gets the signal. Its last line
 * says that it stops.
 */
async function interrupted(one: LaunchedRelay): Promise<void> {
	process.kill(-one.pid, "SIGINT");
	const { stdout } = await one.ended();
	assert.match(stdout, /\nStopping\.\s*$/);
	await groupGone(one.pid);
}

/** The dev builder built a block with `hash`, out of what it was sent privately. */
async function assertBuilt(hash: string, number: number): Promise<readonly string[]> {
	interface Block {
		readonly number: number;
		readonly transactions: readonly string[];
		readonly publicTransactions: readonly string[];
	}
	const { transactions, publicTransactions } = await until(
		`block ${number} in the builder's record`,
		async () => {
			const answer = await fetch(here("http://127.0.0.1:8083/dev/blocks"));
			return ((await answer.json()) as Block[]).find((block) => block.number === number);
		},
	);
	assert.ok(transactions.includes(hash), `${hash} is not in block ${number}`);
	assert.ok(!publicTransactions.includes(hash));
	return transactions;
}

/** The sender of this transaction, as named in the line of `npm start` that reports it as mined. */
function minedBy(sent: string, of = run): Promise<string> {
	const line = new RegExp(`${sent.slice(0, 10)}… {2}(.+): mined `);
	return until("somebody says so", () => line.exec(of.stdout)?.[1]);
}

/** Cast without npx, which costs a second each time. */
const QUICK_CAST = CAST.replace("npx cast", "node_modules/.bin/cast");

/** Sends the README's transaction with cast; its hash. */
async function sentWithCast(block = QUICK_CAST): Promise<string> {
	const text = await said(block);
	assert.match(text, /^status +1 \(success\)$/m);
	const [, hash = ""] = /^transactionHash +(0x\w{64})$/m.exec(text) ?? [];
	await assertBuilt(hash, Number(/^blockNumber +(\d+)$/m.exec(text)?.[1]));
	return hash;
}

it("the quick start has four commands: npm ci takes the lock file, CI runs the tests, the demo's test the demo", () => {
	const commands = new Set(commandsOf(QUICK_START));
	assert.deepEqual([...commands], ["npm ci", "npm start", "npm test", "npm run demo"]);
	const short = commandsOf(snippet("CONTRIBUTING.md", "npm ci && npm start"));
	for (const command of short) assert.ok(commands.has(command), command);
	assertLocked();
	const lines = readFileSync(join(ROOT, ".ci/run"), "utf8").split("\n");
	for (const command of ["npm ci", "npm test"]) assert.ok(lines.includes(command), command);
});

/** The lock file has the packages of package.json; in the long form `npm ci` itself says so. */
function assertLocked(): void {
	const read = (name: string) => JSON.parse(readFileSync(join(ROOT, name), "utf8"));
	const [wanted, locked] = [read("package.json"), read("package-lock.json").packages[""]];
	for (const kind of ["dependencies", "devDependencies"]) assert.deepEqual(locked[kind], wanted[kind]);
	if (sized(true, false)) return;
	// Offline, and in a folder of its own, so that nothing is installed.
	for (const name of ["package.json", "package-lock.json"])
		copyFileSync(join(ROOT, name), join(folder, name));
	const options = { cwd: folder, encoding: "utf8", stdio: "pipe", shell: true } as const;
	const dry = "--dry-run --offline --ignore-scripts --no-audit --no-update-notifier";
	assert.match(execFileSync(`npm ci ${dry}`, options), /added \d+ packages/);
}

it("prints what it starts, all addresses, and the keys with funds", async () => {
	await until("its first line", () => /^Starting a dev chain/m.test(run.stdout));
	await until("its welcome", () => run.stdout.includes("Stop with Ctrl-C"));
	for (const port of Object.values(ports)) assert.ok(run.stdout.includes(port), port);
	assert.equal(run.stdout.match(/^ {2}0x[0-9a-fA-F]{40} {2}0x[0-9a-f]{64}$/gm)?.length, 10);
	assert.match(run.stdout, /chain id 31337, a block every 2 s$/m);
	const operators =
		/^Operators open (\S+)\/operator and (\S+)\/relay\/operator with ADMIN_TOKEN ([0-9a-f]{32})\.$/m;
	const [, boost, same, token] = operators.exec(run.stdout) ?? [];
	assert.equal(boost, same);
	for (const path of ["/admin/state", "/relay/admin/state"]) {
		const headers = { authorization: `Bearer ${token}` };
		assert.equal((await fetch(`${boost}${path}`, { headers })).status, 200, path);
	}
	assert.ok(!run.stdout.includes("\u001b["), "no colours where it is no terminal");
	const [address = ""] = /http:\S+(?= in a\s+browser)/.exec(documents().get("README.md") ?? "") ?? [];
	const page = await fetch(here(address), { headers: { accept: "text/html" } });
	assert.deepEqual([page.status, /^\s*<!doctype html>/i.test(await page.text())], [200, true]);
});

it("a first transaction with cast, whose steps are all printed", async () => {
	hash = await sentWithCast(CAST);
	for (const told of [
		/boost: taken by the relay \(\/fast\)/,
		/the relay: sent to builders \(\/fast, block \d+, [\d.]+ s\)/,
		/the relay: mined \(\/fast, block \d+, [\d.]+ s\)/,
	])
		await until(`${told}`, () => new RegExp(`${hash.slice(0, 10)}… {2}${told.source}`).test(run.stdout));
});

it("with ethers, then with viem", async () => {
	const address = /^ {2}(0x\w{40}) {2}0x/m.exec(run.stdout)?.[1];
	const count = async () => Number(await node().call("eth_getTransactionCount", [address, "latest"]));
	for (const [library, program] of [
		["ethers", snippet("docs/wallets.md", "import { JsonRpcProvider")],
		["viem", snippet("docs/wallets.md", "import { createWalletClient")],
	] as const) {
		const before = await count();
		const text = said(`"${process.execPath}" --input-type=module <<'END'\n${program}END`);
		printed.set(library, text);
		// Both ask for the receipt every four seconds: what is next need not wait for that.
		await Promise.race([text, until("it is mined", async () => (await count()) > before)]);
	}
});

it("its events, with curl", { skip: HAS_CURL ? false : "curl is not installed" }, async () => {
	const [record, events, ...others] = snippet("README.md", "curl ").trimEnd().split("\n");
	const [again, life, stream, ...more] = snippet("docs/wallets.md", "curl ").trimEnd().split("\n");
	assert.deepEqual([...others, ...more], []);
	const asked = (line = "") => filled(line, ["0x…", hash]);
	for (const line of [record, again]) {
		const { status, stage } = JSON.parse(await said(asked(line)));
		assert.deepEqual([status, stage], ["INCLUDED", "INCLUDED"]);
	}
	const reader = shell();
	reader.type(`exec ${here(asked(stream))}\n`);
	for (const line of [events, life]) {
		const { events: told } = JSON.parse(await said(asked(line)));
		assert.ok(told.some(({ type }: { type: string }) => type === "included"));
		const shown = await until("as many in the stream", () => {
			const found = [...reader.text().matchAll(/^data: (.*)\n\n/gm)].map(([, data = ""]) => JSON.parse(data));
			return found.length >= told.length && found;
		});
		// The last one has the stage beside it.
		assert.deepEqual(
			shown.map(({ stage: _, ...event }) => event),
			told,
		);
	}
	reader.child.kill("SIGINT");
	await reader.code;
});

it("the searchers' bot: it bids on the swap, and the bid is mined right behind it", async () => {
	const terminal = shell({ ETH_RPC_URL: here("http://127.0.0.1:8545") });
	// All but the long form runs it with the loader of the tests.
	const bot = here(snippet("docs/searchers.md", 'eval "$(node'));
	terminal.type(sized(bot.replaceAll(/^.*$/gm, withTestLoader), bot));
	await until("it is bidding", () => /^0x\w{40} is bidding/m.test(terminal.text()));
	let swaps = 0;
	const receipts = () => terminal.text().match(/^status +1 \(success\)$/gm)?.length ?? 0;
	const [, bundle = "", block] = await until("the bid is in a block", () => {
		const included = /^bundle (0x\w{64}) block (\d+): INCLUDED$/m.exec(terminal.text());
		if (included !== null) return included;
		// On a busy machine the bid comes too late for the swap's block, and the bot bids on the next
		// one.
		if (receipts() === swaps) {
			terminal.type(here(snippet("docs/searchers.md", "npx cast send")));
			swaps += 1;
		}
		return undefined;
	});
	const text = terminal.text();
	const [, target = ""] = new RegExp(`^(0x\\w{64}) bid .*, bundle ${bundle}$`, "m").exec(text) ?? [];
	const transactions = await assertBuilt(target, Number(block));
	const backrun = transactions[transactions.indexOf(target) + 1] ?? "";
	const sender = /^(0x\w{40}) is bidding/m.exec(text)?.[1];
	const { from } = (await node().call("eth_getTransactionByHash", [backrun])) as { from: string };
	assert.equal(from, sender?.toLowerCase());
	await until("cast has its receipt", () => receipts() === swaps);
	const [, end = ""] = /`(kill [^`]+)` ends it/.exec(documents().get("docs/searchers.md") ?? "") ?? [];
	terminal.type(`${end}\nwait\n`);
	terminal.child.stdin?.end();
	await terminal.code;
	await groupGone(Number(terminal.child.pid));
});

it("names each taken port, and ends", async () => {
	const second = await launchRelay({ entry: "test/devnet/main.ts", env: ports }).ended();
	assert.equal(second.code, 1);
	for (const [name, port] of Object.entries(ports))
		assert.match(
			second.stderr,
			new RegExp(`^npm start: port ${port}, for [a-z ]+, is taken: .* set ${name} `, "m"),
		);
});

it("reports what a fork needs that anvil does not run", async (t) => {
	if (GETH !== undefined) return t.skip("GETH names a go-ethereum, which runs that fork");
	const fork = forkOf({ FORK: "amsterdam" });
	await assert.rejects(startForkChain({ port: 0, slotSeconds: 2, fork }), {
		message: /^the anvil that is installed does not run Amsterdam\. Set GETH to a go-ethereum/,
	});
});

it("with a node and builders it runs relay and boost alone, and boost uses the fallback", async () => {
	const others = await freePorts();
	const env = {
		RELAY_PORT: others.RELAY_PORT,
		BOOST_PORT: others.BOOST_PORT,
		ETH_RPC_URL: here("http://127.0.0.1:8545"),
		BUILDERS: JSON.stringify([{ name: "dev", url: here("http://127.0.0.1:8083") }]),
		FALLBACK_URL: here("http://127.0.0.1:8082"),
		SLOT_SECONDS: "2",
		DATA_DIR: folder,
		// On a busy machine a relay that has just started misses shorter ones.
		...{ PROBE_TIMEOUT_MS: "30000", REQUEST_BUDGET_MS: "60000" },
	};
	pair = launchRelay({ entry: "test/devnet/main.ts", env });
	await until("both are there", () => /^boost http\S+\nrelay http\S+$/m.test(pair.stdout));
	const status = await fetch(`http://127.0.0.1:${others.BOOST_PORT}/status`);
	assert.notEqual(((await status.json()) as { fallback: unknown }).fallback, null);
	const sent = await sentWithCast(QUICK_CAST.replace(USUAL.BOOST_PORT, others.BOOST_PORT));
	assert.equal(await minedBy(sent, pair), "the relay", pair.stdout);
	pairEnds = interrupted(pair);
});

it("if the relay is killed by the printed command, boost carries on", async () => {
	const [line = ""] = /^ {2}kill -9 \d+$/m.exec(run.stdout) ?? [];
	await said(line);
	const sent = await sentWithCast();
	assert.equal(await minedBy(sent), "the fallback", run.stdout);
	assert.match(run.stdout, /^the relay has ended \(SIGKILL\); it is started again in 15 s$/m);
});

it("ethers and viem have seen their receipts", async () => {
	for (const text of await Promise.all(printed.values())) {
		const [, sent = "", block] = /^(0x\w{64}) is in block (\d+)$/m.exec(text) ?? [];
		await assertBuilt(sent, Number(block));
	}
});

it("ends quietly after Ctrl-C", async () => {
	ending = true;
	await Promise.all([pairEnds, interrupted(run)]);
});
