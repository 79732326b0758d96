// Each client that README and documents name is run by a test, or the name must go. What is named is found here, tied to what a test
// of that client has in it.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { documents, ROOT } from "./support/documents.ts";

interface NamedClient {
	/** How documents call it. */
	readonly name: RegExp;
	/** A file of its test, and what of the client that imports or runs; null: no test can, so no document names it. */
	readonly runBy: readonly [file: string, what: RegExp] | null;
}

const CLIENTS: readonly NamedClient[] = [
	{
		name: /\bMetaMask\b/,
		runBy: ["test/metamask/metaMaskWallet.ts", /"@metamask\/transaction-controller"/],
	},
	{ name: /\bethers\b/, runBy: ["test/integration/auction/clientsSearchers.test.ts", /from "ethers"/] },
	{ name: /\bviem\b/, runBy: ["test/integration/auction/clientsSearchers.test.ts", /from "viem"/] },
	{ name: /\bweb3\.js\b/, runBy: ["test/integration/chain/clientsReads.test.ts", /from "web3"/] },
	{ name: /\bcast\b/, runBy: ["test/integration/auction/clientsSearchers.test.ts", /\bcast\("rpc"/] },
	{ name: /\bweb3\.py\b/, runBy: ["test/python/wallet.py", /from web3 import/] },
	{ name: /\bMEV-Share\b/, runBy: ["test/support/mevShare.ts", /from "@flashbots\/mev-share-client"/] },
	{
		name: /\bMEV Blocker\b/,
		runBy: ["test/integration/auction/mevBlocker.test.ts", /mevblocker_partialPendingTransactions/],
	},
	{ name: /`flashbots` \S+ of Python/, runBy: ["test/python/library.py", /from flashbots import flashbot/] },
	{
		name: /ethers-provider-bundle/,
		runBy: ["test/integration/auction/searcherLibraries.test.ts", /ethers-provider-bundle/],
	},
	{ name: /\b(alloy|ethclient|ethers-rs|ethers-flashbots|flashbotsrpc|lmittmann)\b/i, runBy: null },
	{ name: /\b(Rabby|Hardhat|forge|wagmi|Rainbow|Coinbase Wallet|Trust Wallet|Ledger|Trezor)\b/, runBy: null },
	{ name: /\bby (its|their) source\b/, runBy: null },
];

/** What is said of clients: all documents but the one that says what the code is made of, and the one that says what changed. */
const texts = [...documents()].filter(([path]) => !["docs/architecture.md", "CHANGELOG.md"].includes(path));

test("each client that a document names is imported or run by a test", () => {
	for (const { name, runBy } of CLIENTS) {
		const naming = texts.filter(([, text]) => name.test(text)).map(([path]) => path);
		if (runBy === null) {
			assert.deepEqual(naming, [], `${name}: no test runs it`);
			continue;
		}
		assert.notEqual(naming.length, 0, `${name} is named nowhere: take it off this list`);
		const [file, what] = runBy;
		assert.ok(what.test(readFileSync(join(ROOT, file), "utf8")), `${file} has no ${what}`);
	}
});

test("each row of a table of clients names one of them, and says where it was tried", () => {
	const rows = texts.flatMap(([path, text]) => {
		const tables = text.matchAll(/^\| (?:client|library) \|.*\n\|[-|]+\|\n((?:\|.*\n)+)/gm);
		return [...tables].flatMap(([, body = ""]) =>
			body
				.trimEnd()
				.split("\n")
				.map((row) => [path, row.split("|")[1] ?? ""] as const),
		);
	});
	assert.ok(rows.length > 8);
	for (const [path, cell] of rows) {
		assert.ok(
			CLIENTS.some(
				({ name, runBy }) => runBy !== null && name.test(cell.replace("mev-share-client", "MEV-Share")),
			),
			`${path}: ${cell}`,
		);
	}
});

test("the tests that documents name for a client are there", () => {
	const [, section = ""] = (documents().get("docs/searchers.md") ?? "").split("## Coming from elsewhere\n");
	const files = [...section.matchAll(/`(test\/[\w/]+\.test\.ts)`/g)].map(([, file = ""]) => file);
	assert.equal(files.length, 4);
	const all = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" });
	for (const file of files) assert.ok(all.includes(file.replace("test/", "")), file);
});
