// `npm run demo` as a process: it tells its scenario in order and ends with 0; with a relay that
// refunds another share it ends with 1 at the line that does not hold; stopped in the middle it
// leaves nothing behind.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock, withDeadline } from "../../../shared/clock.ts";
import { snippet } from "../../support/documents.ts";
import { until } from "../../support/until.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** The demo has a deadline of its own before that. */
const END_MS = 120_000;

interface Demo {
	readonly child: ChildProcess;
	readonly lines: readonly string[];
	/** Its exit code, once all it printed is read. */
	readonly code: Promise<number | null>;
}

function runDemo(
	env: NodeJS.ProcessEnv = {},
	[command = "", ...args]: readonly string[] = [process.execPath, ...process.execArgv, "test/devnet/demo.ts"],
): Demo {
	const { PATH, HOME, TMPDIR } = process.env;
	const child = spawn(command, args, {
		cwd: ROOT,
		stdio: ["ignore", "pipe", "pipe"],
		env: { PATH, HOME, TMPDIR, ...env },
	});
	let text = "";
	for (const stream of [child.stdout, child.stderr]) {
		stream.setEncoding("utf8").on("data", (chunk: string) => {
			text += chunk;
		});
	}
	const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
	const code = withDeadline(systemClock, "end of the demo", END_MS, () => closed).catch((thrown: unknown) => {
		child.kill("SIGTERM");
		throw thrown;
	});
	return {
		child,
		get lines() {
			return text.split("\n");
		},
		code,
	};
}

/** Lines of the output, in this order; other lines stand between. */
const SCENARIO: readonly RegExp[] = [
	/^The stage/,
	/^ {7}starting the dev chain and its builder …$/,
	/^ {7}relay {7}http:\/\/127\.0\.0\.1:\d+/,
	/^ {2}ok {3}no round trip through both gains anything now$/,
	/^The user changes their mind$/,
	/^ {2}ok {3}the builder has it for the next block$/,
	/^ {2}ok {3}the relay answers eth_cancelTransaction with true$/,
	/^ {2}ok {3}GET \/tx\/\{hash\}\/events: 1 of 1 builders confirmed$/,
	/^ {2}ok {3}the builder would not mine it any more$/,
	/^ {2}ok {3}eth_getTransactionByHash says null$/,
	/^ {2}ok {3}nonce \d+ is free again$/,
	/^The user swaps, privately$/,
	/^ {2}ok {3}the relay answers its hash 0x[0-9a-f]{64}$/,
	/^ {2}ok {3}the chain's public mempool does not have it$/,
	/^The searcher sees it and bids$/,
	/^ {2}ok {3}what it is shown has no signature/,
	/^ {7}bid {9}\d+ wei \(0\.\d+ ETH\) to block\.coinbase$/,
	/^ {2}ok {3}the relay takes it for block \d+ as bundle 0x[0-9a-f]{64}$/,
	/^The block: target, backrun, refund$/,
	/^ {9}\[\d+\] target {2}0x[0-9a-f]{64}$/,
	/^ {9}\[\d+\] backrun 0x[0-9a-f]{64}$/,
	/^ {9}\[\d+\] refund {2}0x[0-9a-f]{64}$/,
	/^ {2}ok {3}the backrun stands right behind the target$/,
	/^ {2}ok {3}right behind it stands a transfer from the block's coinbase to the user$/,
	/^ {2}ok {3}without the swap before it the same backrun reverts: NotProfitable$/,
	/^The money, read from the chain$/,
	/^ {7}so it brought \d+ wei \(0\.\d+ ETH\)$/,
	/^ {2}ok {3}90 % of that is owed to the user, and paid: \d+ wei \(0\.\d+ ETH\)$/,
	/^ {2}ok {3}gas aside, the user's balance rose by exactly what is owed: \d+ wei \(0\.\d+ ETH\)$/,
	/^The relay's own account$/,
	/^ {2}ok {3}GET \/tx\/\{hash\} says INCLUDED$/,
	/^ {2}ok {5}paid: \d+ wei \(0\.\d+ ETH\)$/,
	/^ {2}ok {3}the searcher is notified: bundle INCLUDED in block \d+, bid \d+ wei$/,
	/^And what was taken back$/,
	/^ {2}ok {3}nonce \d+ went to the swap$/,
	/^ {2}ok {3}what was taken back is in no block$/,
	/^The relay is killed, and boost carries on$/,
	/^ {7}fallback {4}http:\/\/127\.0\.0\.1:\d+/,
	/^ {7}boost {7}http:\/\/127\.0\.0\.1:\d+/,
	/^ {2}ok {3}boost answers its hash 0x[0-9a-f]{64}$/,
	/^ {2}ok {5}X-Boost-Upstream: relay$/,
	/^ {7}kill -9 \d+: the relay is gone/,
	/^ {2}ok {3}boost has opened its breaker: \w+$/,
	/^ {2}ok {3}GET \/tx\/\{hash\} says HELD$/,
	/^ {2}ok {5}X-Boost-Upstream: fallback$/,
	/^ {2}ok {3}the chain's public mempool has neither$/,
	/^ {2}ok {3}both succeeded, in their order$/,
	/^ {2}ok {3}the builder has them from the fallback alone$/,
	/^The relay returns$/,
	/^ {2}ok {3}boost has closed its breaker by its own probes$/,
	/^ {2}ok {3}boost has nothing left to answer for$/,
	/^ {2}ok {5}X-Boost-Upstream: relay$/,
	/^ {2}ok {3}it is mined in block \d+; the builder has it from the relay alone$/,
	/^All of it held: 52 claims\.$/,
];

/** Two at a time: they wait for their blocks most of the time. */
describe("the demo", { concurrency: 2 }, () => {
	it("prints all claims in order, and its amounts agree", async () => {
		const [line = ""] = /^npm run demo\b[^#]*/m.exec(snippet("README.md", "npm ci && npm start")) ?? [];
		const demo = runDemo({}, line.trim().split(" "));
		const code = await demo.code;
		const told = demo.lines.join("\n");
		assert.equal(code, 0, told);
		let at = 0;
		for (const expected of SCENARIO) {
			const found = demo.lines.findIndex((line, i) => i >= at && expected.test(line));
			assert.notEqual(found, -1, `${expected} behind line ${at} of\n${told}`);
			at = found + 1;
		}
		assert.doesNotMatch(told, /FAIL/);
		const wei = (what: RegExp): bigint => BigInt(what.exec(told)?.[1] ?? -1);
		const brought = wei(/so it brought (\d+) wei/);
		assert.equal(wei(/priority fee (\d+) wei/) + wei(/by transfer what was bid: (\d+) wei/), brought);
		assert.equal(wei(/balance rose by exactly what is owed: (\d+) wei/), (brought * 90n) / 100n);
	});

	it("fails at the refund's line with a relay that refunds one percent less", async () => {
		const less = runDemo({ REFUND_PERCENT: "89" });
		assert.equal(await less.code, 1);
		const told = less.lines.join("\n");
		const failed = less.lines.filter((line) => line.startsWith("  FAIL"));
		assert.equal(failed.length, 1, told);
		const [line = ""] = failed;
		const owed = BigInt(
			/^ {2}FAIL 90 % of that is owed to the user, and paid: (\d+) wei/.exec(line)?.[1] ?? -1,
		);
		const brought = BigInt(/so it brought (\d+) wei/.exec(told)?.[1] ?? -2);
		assert.equal(owed, (brought * 90n) / 100n);
		const paid = BigInt(/^ {7}found: (\d+) wei/m.exec(told)?.[1] ?? -1);
		assert.equal(paid, (brought * 89n) / 100n);
		assert.match(told, /The demo has failed\.\n$/);
	});

	it("exits with 1 when it is stopped, and stops what it had started", async () => {
		const demo = runDemo();
		const pid = await until(
			"the relay is there",
			() => {
				return Number(/a process of its own \((\d+)\)/.exec(demo.lines.join("\n"))?.[1]) || undefined;
			},
			60_000,
		);
		const chain = /dev chain {3}(http:\S+),/.exec(demo.lines.join("\n"))?.[1] ?? "";
		demo.child.kill("SIGTERM");
		assert.equal(await demo.code, 1);
		assert.match(demo.lines.join("\n"), /^Stopped by SIGTERM\.$/m);
		assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
		await assert.rejects(fetch(chain));
	});
});
