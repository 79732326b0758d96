// Tables of the texts that are cut out of other servers' words, and of those that must stay.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cutterFor } from "../../../shared/secrets.ts";

const KEY = "hL3xK9mPq2Vb7NcZ4tRw8Ys1Ad6Fg0Je";
const URL_OF_NODE = `https://user:p%40ssword@eth-mainnet.provider.example:8545/v2/${KEY}?apikey=short1&net=mainnet`;
const { text, value } = cutterFor(URL_OF_NODE, "ws://node:8546/topsecretpath");

/** Words of real nodes and providers, which say what to ask instead: nothing in them may change. */
const KEPT: readonly string[] = [
	"query returned more than 10000 results. Try with this block range [0xBDE5F8, 0x102DBCC].",
	"Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0x133e71]",
	"Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x123c9b2, 0x123c9bb].",
	"eth_getLogs is limited to a 10,000 range",
	"exceed maximum block range: 50000",
	"ranges over 10000 blocks are not supported on freetier",
	"query exceeds max results 20000, retry with the range 25766988-25775072",
	"block range is larger than max block range, block range = 5120, max block range = 5000",
	"requested too many blocks from 0 to 16777216, maximum is set to 2048",
	"range 1000000 exceeds limit of 10000",
	"missing trie node 9b9c0e8f2a1d4c7b6e5f0a3d2c1b4e7f8a9d0c3b6e5f2a1d4c7b8e9f0a3d6c5b (path ) state 0x9b9c0e8f2a1d4c7b6e5f0a3d2c1b4e7f8a9d0c3b6e5f2a1d4c7b8e9f0a3d6c5b is not available",
	"invalid argument 0: json: cannot unmarshal hex string of odd length into Go value of type common.Address",
	"json: cannot unmarshal string into Go struct field TransactionArgs.from of type common.Address",
	"err: max fee per gas less than block base fee: address 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045, maxFeePerGas: 1, baseFee: 33 (supplied gas 50000000)",
	"insufficient funds for gas * price + value: address 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045 have 0 want 1",
	"execution reverted: ERC20: transfer amount exceeds balance",
	"execution reverted: custom error 0xf4d678b8: ERC721InsufficientApprovalForAll",
	"EVM error: InvalidFEOpcode",
	"BlockOutOfRangeError: block height is 1 but requested was 65535",
	"header not found",
	"No state available for block 0x1b4, at 12:30:45",
	"execution timeout (timeout = 5s), limit:10000",
	"unknown key fromBlok",
	"Geth/v1.17.8-stable/linux-amd64/go1.24",
	"distance to target block exceeds maximum proof window. e.g. 10",
];

const CUT: readonly (readonly [given: string, expected: string])[] = [
	[
		`Post "${URL_OF_NODE}": dial tcp 10.0.0.17:8545: connect: connection refused`,
		'Post "[url]": dial tcp [host]: connect: connection refused',
	],
	["see https://infura.io/dashboard for your limits", "see [url] for your limits"],
	["wss://user:pw@10.1.2.3/k closed", "[url] closed"],
	[`upstream eth-mainnet.provider.example:8545 is down`, "upstream [host] is down"],
	[`upstream ETH-MAINNET.provider.example is down`, "upstream [host] is down"],
	[`no app for ${KEY}, ${KEY.toUpperCase()}`, "no app for [key], [key]"],
	[`/v2/${KEY} is not found`, "/[key] is not found"],
	["user p@ssword refused; p%40ssword", "[key] [key] refused; [key]"],
	["short1 is out of credits", "[key] is out of credits"],
	["topsecretpath on node:8546, a trie node", "[key] on [host], a trie node"],
	[
		"reduce calls per second or upgrade your account at quicknode.com",
		"reduce calls per second or upgrade your account at [host]",
	],
	["backend erigon-3.eth.svc.cluster.local:8545 timed out", "backend [host] timed out"],
	["backend geth-0.prod/api/k3y timed out", "backend [host] timed out"],
	["dial tcp: lookup geth-0 on 10.0.0.2:53: no such host", "dial tcp: lookup [host] on [host]: no such host"],
	["connect ECONNREFUSED 127.0.0.1:8545", "connect ECONNREFUSED [host]"],
	["connect to [fd00::12]:8545 failed, also fd00:1:2:3::12", "connect to [host] failed, also [host]"],
	["tried localhost:8545", "tried [host]"],
	["invalid project id 9aa3d95b3bc440fa88ea12eaa4456161", "invalid project id [key]"],
	["Invalid API key: abcdef", "Invalid API key: [key]"],
	["apikey=abcdef12 is disabled", "apikey=[key] is disabled"],
	["key 9aa3d95b3bc440fa88ea12eaa4456161 is unknown", "key [key] is unknown"],
	["team 7f0c9c1e-53b1-4ad7-9c5e-2f6d2a9b1c11 has no credits", "team [key] has no credits"],
	["token eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE1MTYyMzkwMjJ9.c2lnbmF0dXJl has expired", "token [key] has expired"],
	["docs-demo aB3dE5fG7hJ9kL1mN2pQ4rS6 is over quota", "docs-demo [key] is over quota"],
];

test("what an error is about stays to the letter", () => {
	for (const words of KEPT) assert.equal(text(words), words);
});

test("URLs, hosts and keys are cut out", () => {
	for (const [given, expected] of CUT) assert.equal(text(given), expected);
});

test("data keeps its numbers, ranges and hex; its other texts are cut like messages", () => {
	const revert = `0x08c379a0${"00".repeat(100_000)}`;
	const range = { from: "0xBDE5F8", limit: 10_000, to: "0x102DBCC" };
	for (const one of [revert, range, null, undefined, 7, false, [range, "0x"], { "0xAB": ["reverted"] }]) {
		assert.deepEqual(value(one), one);
	}
	const rate = { see: "https://infura.io/dashboard", rate: { allowed_rps: 1, hosts: ["10.0.0.1:80"] } };
	assert.deepEqual(value({ ...rate, [KEY]: KEY }), {
		...{ see: "[url]", rate: { allowed_rps: 1, hosts: ["[host]"] } },
		"[key]": "[key]",
	});
});

test("no part of the configured URL gets through, whatever stands around it", () => {
	const around = fc.string({ maxLength: 12 });
	const part = fc.constantFrom(URL_OF_NODE, KEY, "eth-mainnet.provider.example", `v2/${KEY}`);
	fc.assert(
		fc.property(around, part, around, (before, secret, behind) => {
			const shown = text(`${before}${secret}${behind}`).toLowerCase();
			for (const one of [KEY, "provider.example"]) assert.ok(!shown.includes(one.toLowerCase()), shown);
		}),
	);
});

test("hostile texts take no time", () => {
	for (const unit of ["a", "a-", "a.", "0.", ":", "a:", "[", "eyJ", "A1b", "apikey ", "a/", "http:", "/"]) {
		const begun = performance.now();
		text(unit.repeat(100_000));
		assert.ok(performance.now() - begun < 1_000, unit);
	}
});
