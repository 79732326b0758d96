// The short form of the control model test: after random sequences of what users, strangers and the
// chain do, relay, builders and node are as the model says. `npm run test:long` is the long form,
// which shrinks failures; CONTROL_SEED repeats a run.

import assert from "node:assert/strict";
import { it } from "node:test";
import { runSequences } from "../../model/run.ts";
import { sized } from "../../support/length.ts";

const SEQUENCES = sized(1, 2);
const STEPS = 18;

it("statuses, nonces and builders' orders agree with a model, for random commands", async (context) => {
	const seed = Number(process.env.CONTROL_SEED ?? Math.floor(Math.random() * 2 ** 31));
	context.diagnostic(`CONTROL_SEED=${seed}`);
	const { failure, sequences } = await runSequences({
		sequences: SEQUENCES,
		steps: STEPS,
		seed,
		shrinks: false,
	});
	assert.equal(failure, null, `CONTROL_SEED=${seed}: ${failure}`);
	assert.equal(sequences, SEQUENCES, "sequences that were run");
});
