// The examples in Python of docs/examples, on a real system.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { type BiddingFixture, startBidding } from "../support/biddingFixture.ts";
import { EXAMPLES, PAYER_ADDRESS, runBid, runSend } from "../support/examples.ts";
import { NEWEST, runPython } from "./python.ts";

test("what the examples need is what is tried", () => {
	const tried = readFileSync(NEWEST.requirements, "utf8").split("\n");
	const needed = readFileSync(`${EXAMPLES}/requirements.txt`, "utf8").trimEnd().split("\n");
	for (const line of needed) assert.ok(tried.includes(line), line);
});

describe("the examples", { skip: NEWEST.absent }, () => {
	let fixture: BiddingFixture;
	before(async () => {
		fixture = await startBidding({ chain: { slotSeconds: 12 } });
	});
	after(() => fixture.stop());
	const example = (file: string) => (env: Readonly<Record<string, string>>) =>
		runPython(NEWEST, `docs/examples/${file}`, [], env);

	test("bid.py sees a transaction, bids on it, and tells that it landed behind it", async () => {
		const { code, stdout, stderr, target, block } = await runBid(fixture, example("bid.py"), [2, 3]);
		assert.equal(code, 0, stderr);
		const at = block.transactions.findIndex(({ hash }) => hash === target);
		const backrun = block.transactions[at + 1];
		assert.deepEqual([backrun?.to, BigInt(backrun?.value ?? 0)], [PAYER_ADDRESS, 10n ** 12n]);
		assert.match(
			stdout,
			/bundle 0x\w{64} in block \d+: ACCEPTED\n(?:.*\n)*bundle 0x\w{64} in block \d+: INCLUDED\n$/,
		);
	});

	test("without their settings they say which are missing, and end", async () => {
		for (const [file, missing] of [
			["bid.py", "set PRIVATE_KEY, and PAYER to the contract's address\n"],
			["send.py", "set PRIVATE_KEY\n"],
		] as const) {
			const { code, stderr } = await runPython(NEWEST, `docs/examples/${file}`);
			assert.deepEqual([code, stderr], [1, missing]);
		}
	});

	test("send.py sends a private transaction, and tells its life up to its block", async () => {
		const { code, stdout, stderr, block } = await runSend(fixture, example("send.py"), 4);
		assert.equal(code, 0, stderr);
		const [, hash] = /^sent (0x\w{64})\n/.exec(stdout) ?? [];
		assert.ok(block.transactions.some((one) => one.hash === hash));
		assert.match(stdout, /^received \(block \d+\)\n(?:.*\n)*included \(block \d+\)\n$/m);
	});
});
