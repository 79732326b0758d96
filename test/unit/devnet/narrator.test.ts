// What `npm start` makes of the processes' log lines.

import assert from "node:assert/strict";
import { test } from "node:test";
import { told } from "../../devnet/narrator.ts";

const hash = `0x${"ab".repeat(32)}`;

test("transactions and breakers are told in sentences, all else only where it is trouble", () => {
	const rows: [who: string, line: object, text: string | null][] = [
		[
			"the relay",
			{ msg: "transaction accepted", hash, path: "fast", block: 7 },
			"0xabababab…  the relay: accepted (/fast, block 7)",
		],
		[
			"the relay",
			{ msg: "transaction mined", hash, path: "fast", block: 8, ms: 2340 },
			"0xabababab…  the relay: mined (/fast, block 8, 2.3 s)",
		],
		[
			"the relay",
			{ msg: "transaction refused", path: "fast", code: "UNDECODABLE", hash },
			"0xabababab…  the relay: refused (/fast, UNDECODABLE)",
		],
		[
			"boost",
			{ msg: "transaction accepted", hash, path: "fast", upstream: "fallback" },
			"0xabababab…  boost: taken by the fallback (/fast)",
		],
		[
			"boost",
			{ msg: "transaction handed over", hash, upstream: "relay" },
			"0xabababab…  boost: handed over (to the relay)",
		],
		["boost", { msg: "transaction ended", hash, stage: "mined" }, null],
		[
			"boost",
			{ msg: "breaker opened", level: 40, upstream: "relay", reason: "refused" },
			"boost: the breaker of the relay has opened, since it refuses connections",
		],
		[
			"boost",
			{ msg: "breaker closed", level: 30, upstream: "relay" },
			"boost: the breaker of the relay has closed: it serves again",
		],
		["the relay", { msg: "listening", level: 30 }, null],
		[
			"the relay",
			{
				msg: "the node does not answer yet",
				level: 40,
				fault: { code: "unreachable", host: "n:1", reason: "ECONNREFUSED" },
			},
			"the relay: the node does not answer yet (ECONNREFUSED, n:1)",
		],
	];
	for (const [who, line, text] of rows) assert.equal(told(who, JSON.stringify(line)), text);
	assert.equal(told("the relay", "Error: no JSON"), "the relay: Error: no JSON");
	assert.equal(told("the relay", ""), null);
});
