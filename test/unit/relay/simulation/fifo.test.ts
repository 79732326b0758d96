// Values go in and come out at both ends; checked against a plain array over many random steps.

import assert from "node:assert/strict";
import { it } from "node:test";
import { Fifo } from "../../../../relay/simulation/fifo.ts";

it("is empty at first", () => {
	const fifo = new Fifo<number>();
	assert.equal(fifo.length, 0);
	assert.equal(fifo.shift(), undefined);
	assert.equal(fifo.pop(), undefined);
	assert.deepEqual(
		fifo.remove(() => true),
		[],
	);
});

it("does what an array does, whatever the order of the steps", () => {
	const fifo = new Fifo<number>();
	const model: number[] = [];
	let seed = 7;
	const random = (below: number) => {
		seed = (seed * 48_271) % 2_147_483_647;
		return seed % below;
	};
	for (let step = 0; step < 40_000; step++) {
		// First it grows, then it shrinks, so that the front moves far.
		const grows = step < 20_000;
		const kind = random(100);
		if (kind < (grows ? 60 : 30)) {
			fifo.push(step);
			model.push(step);
		} else if (kind < 90) {
			assert.equal(fifo.shift(), model.shift());
		} else if (kind < 99) {
			assert.equal(fifo.pop(), model.pop());
		} else {
			const odd = (value: number) => value % 17 === 0;
			assert.deepEqual(fifo.remove(odd), model.filter(odd));
			model.splice(0, model.length, ...model.filter((value) => !odd(value)));
		}
		assert.equal(fifo.length, model.length);
	}
	assert.deepEqual(
		fifo.remove(() => true),
		model,
	);
});
