// Which chain the journal is of: it is asked until somebody tells, a disk that fails stops nobody, another chain stops
// the start, and is told of where it shows later.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallResult } from "../../../../boost-proxy/domain/request.ts";
import { bindWhenKnown, OtherChainError } from "../../../../boost-proxy/journal/chain.ts";
import { Background } from "../../../../shared/background.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const TOLD: readonly CallResult[] = [{ ok: true, result: "0x7a69" }];

function fixture(answers: (readonly CallResult[] | null)[], binds: (Error | null)[] = []) {
	const clock = new ManualClock();
	const bound: bigint[] = [];
	const errors: string[] = [];
	const log = { ...silentLogger, error: (message: string) => errors.push(message) };
	const binding = bindWhenKnown({
		async bindTo(chainId) {
			const fault = binds.shift() ?? null;
			if (fault !== null) throw fault;
			bound.push(chainId);
		},
		chain: { batch: async () => answers.shift() ?? null },
		background: new Background({}, { log: silentLogger }),
		...{ clock, log },
	});
	return { binding, clock, bound, errors };
}

const otherChain = () => new OtherChainError("1", "31337");

test("it is bound at the start where somebody tells the chain", async () => {
	const { binding, bound } = fixture([TOLD]);
	await binding.start();
	assert.deepEqual(bound, [31_337n]);
	assert.equal(binding.chainId(), 31_337n);
});

test("where nobody does, the start goes on and it is asked again", async () => {
	const { binding, bound, clock } = fixture([null, [{ ok: true, result: "x" }], TOLD]);
	await binding.start();
	assert.equal(binding.chainId(), null);
	await clock.advance(1_000);
	assert.deepEqual(bound, []);
	await clock.advance(1_000);
	assert.deepEqual(bound, [31_337n]);
	assert.equal(clock.timers, 0);
});

test("a journal of another chain stops the start, and is told of where it shows later", async () => {
	await assert.rejects(fixture([TOLD], [otherChain()]).binding.start(), /another chain/);
	const later = fixture([null, TOLD], [otherChain()]);
	await later.binding.start();
	await later.clock.advance(1_000);
	assert.deepEqual(later.errors, ["the journal is of another chain"]);
	assert.equal(later.clock.timers, 0, "it is not asked any more");
});

test("a disk that fails is no other chain: it is asked again", async () => {
	const { binding, bound, clock, errors } = fixture([TOLD, TOLD], [new Error("disk")]);
	await binding.start();
	assert.equal(binding.chainId(), 31_337n, "the chain itself is known");
	await clock.advance(1_000);
	assert.deepEqual([bound, errors], [[31_337n], []]);
});

test("a stop ends the asking", async () => {
	const { binding, clock } = fixture([]);
	await binding.start();
	binding.stop();
	await clock.advance(5_000);
	assert.equal(clock.timers, 0);
});
