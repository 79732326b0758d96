// Each sentence of README and documents that names a client or a bot is run by a test with that
// client, which stands beside it here; or the name must go.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { documents, ROOT } from "./support/documents.ts";

/** How documents call a client, and what of it a test imports or runs. */
const CLIENTS: readonly (readonly [name: RegExp, runs: RegExp])[] = [
	[/\bMetaMask\b/, /MetaMaskWallet|"@metamask\/transaction-controller"/],
	[/\bethers\b(?!-)/, /from "ethers"|"import \{ JsonRpcProvider"/],
	[/\bviem\b/, /from "viem"|"import \{ createWalletClient"/],
	[/\bweb3\.js\b/, /from "web3"/],
	[/(?<!-)\bcast\b/, /\bcast\(|npx cast/],
	[/\bweb3\.py\b/, /from web3 import|wallet\.py/],
	[/\bMEV-Share\b|mev-share-client/, /support\/mevShare\.ts/],
	[/\bMEV Blocker\b/, /mevblocker_partialPendingTransactions/],
	[/`flashbots` \S+ of Python/, /library\.py/],
	[/ethers-provider-bundle/, /ethers-provider-bundle/],
];
/** Clients that no test can run here, and words for what was only read. */
const UNTRIED = [
	/\b(alloy|ethclient|ethers-rs|ethers-flashbots|flashbotsrpc|lmittmann)\b/i,
	/\b(Rabby|Hardhat|forge|wagmi|Rainbow|Coinbase Wallet|Trust Wallet|Ledger|Trezor)\b/,
	/\bby (its|their) source\b/,
];

const [SUBMIT, CHAIN, AUCTION] = ["integration/submit/", "integration/chain/", "integration/auction/"];
const METAMASK = ["metamask/metamask.test.ts"];
const SOFT_CANCEL = ["metamask/softCancel.test.ts"];
const OUTAGE = ["metamask/outage.test.ts", "integration/boost/boostOutageClients.test.ts"];
const PENDING = ["integration/boost/pendingTransactionClients.test.ts"];
const MEV_SHARE = [`${AUCTION}mevShareStream.test.ts`, `${AUCTION}mevShareBundles.test.ts`];
const MEV_BLOCKER = [`${AUCTION}mevBlocker.test.ts`];
const LIBRARIES = [`${AUCTION}searcherLibraries.test.ts`];
const READS = [`${CHAIN}clientsReads.test.ts`];
const START = ["integration/deploy/start.test.ts"];

/** By document: what stands in a line, and the tests that run what it says, below test/. */
const SENTENCES: Readonly<Record<string, readonly (readonly [words: string, tests: readonly string[]])[]>> = {
	"README.md": [
		[
			"MetaMask, ethers, viem, web3.js and cast work",
			[...METAMASK, ...READS, `${SUBMIT}clientsSend.test.ts`],
		],
		["Flashbots' MEV-Share client", MEV_SHARE],
		["MEV Blocker bots can bid", MEV_BLOCKER],
		["[cast](https://getfoundry.sh)", START],
		["refunds, ethers, viem, MetaMask", [...START, ...METAMASK]],
		["coming from Flashbots, MEV-Share or MEV Blocker", [...MEV_SHARE, ...MEV_BLOCKER]],
	],
	"CONTRIBUTING.md": [["MetaMask's own code", METAMASK]],
	"docs/api.md": [
		["`mev_simBundle` | bundle", MEV_SHARE],
		["### MEV-Share's events", MEV_SHARE],
		["for [MEV-Share's clients]", MEV_SHARE],
	],
	"docs/scale.md": [["and viem and others make", ["integration/boost/boostFilters.test.ts"]]],
	"docs/searchers.md": [
		["If you come from [Flashbots]", MEV_SHARE],
		["[MEV Blocker](#from-mev-blocker), begin there", MEV_BLOCKER],
		['ethers\' `on("pending")`', PENDING],
		["Flashbots' `mev-share-client`", MEV_SHARE],
		["`flashbots` 2.0.0 of Python", ["python/flashbots.test.ts"]],
		["ethers-provider-bundle` 1.0.0", LIBRARIES],
		["### From MEV-Share", MEV_SHARE],
		["MEV-Share's matching of hints", MEV_SHARE],
		["### From MEV Blocker", MEV_BLOCKER],
		["A bot as MEV Blocker's documentation makes it", MEV_BLOCKER],
	],
	"docs/wallets.md": [
		["With ethers:", START],
		["With viem:", START],
		["viem and others make a new filter on it", ["integration/boost/boostFilters.test.ts"]],
		["(ethers'", PENDING],
		["nothing in ethers catches an error", PENDING],
		["an error with id null (ethers' `error`", PENDING],
		["(viem's `onError`, ethers' log)", PENDING],
		["## MetaMask", METAMASK],
		["MetaMask drops the other", METAMASK],
		["MetaMask shows it as pending until", METAMASK],
		["MetaMask cannot know that", SOFT_CANCEL],
		["(MetaMask's custom nonce field)", SOFT_CANCEL],
		["for which MetaMask has no button", SOFT_CANCEL],
		["A MetaMask that keeps resending", SOFT_CANCEL],
		["| ethers 6, viem 2 |", [...READS, "integration/transport/clientsErrors.test.ts"]],
		["| web3.js 4 |", [...READS, `${SUBMIT}clientsSend.test.ts`]],
		["| cast |", [...READS, `${CHAIN}signatureHiding.test.ts`]],
		["| MetaMask's controllers |", [...METAMASK, "metamask/outage.test.ts"]],
		["| web3.py 6 and 8 |", ["python/web3.test.ts"]],
		["viem's HTTP transport gives up", [`${SUBMIT}sendSync.test.ts`]],
		["ethers sends batches by default", READS],
		["ethers, viem, web3.js and cast take hash and sender", READS],
		["as viem and ethers make them", [`${SUBMIT}blobs.test.ts`]],
		["| MetaMask | our reason", OUTAGE],
		["| ethers, viem, web3.js | our reason", OUTAGE],
	],
};

/**
 * The documents whose statements about clients are checked: all but the description of the code and
 * the list of changes.
 */
const texts = [...documents()].filter(([path]) => !["docs/architecture.md", "CHANGELOG.md"].includes(path));
const isNamed = (line: string) => CLIENTS.some(([name]) => name.test(line));
const linesOf = (text: string) => text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "").split("\n");
const testText = (file: string) => readFileSync(join(ROOT, "test", file), "utf8");

test("each line that names a client is one of those that a test runs, and no line of these is gone", () => {
	for (const [path, text] of texts) {
		const known = SENTENCES[path] ?? [];
		const naming = linesOf(text).filter(isNamed);
		const untried = naming.filter((line) => !known.some(([words]) => line.includes(words)));
		assert.deepEqual(untried, [], `${path}: name the test that runs what is said, in this one`);
		const gone = known.filter(([words]) => !naming.some((line) => line.includes(words)));
		assert.deepEqual(gone, [], path);
	}
});

test("the tests of a line import or run each client that it names", () => {
	for (const [path, text] of texts) {
		for (const line of linesOf(text).filter(isNamed)) {
			const files = (SENTENCES[path] ?? []).flatMap(([words, tests]) => (line.includes(words) ? tests : []));
			const all = files.map(testText).join("\n");
			for (const [name, runs] of CLIENTS) {
				if (name.test(line)) assert.ok(runs.test(all), `${path}: ${line}: ${files} do not run ${name}`);
			}
		}
	}
});

test("what no test can run is not named", () => {
	for (const [path, text] of texts) {
		for (const name of UNTRIED) assert.ok(!name.test(text), `${path} names ${name.exec(text)?.[0]}`);
	}
});

test("a line without a test is noticed", () => {
	assert.ok(isNamed("Works with viem."));
	assert.ok(isNamed("- MEV-Share's client"));
	assert.ok(!isNamed("what is broadcast, and forecast"));
});
