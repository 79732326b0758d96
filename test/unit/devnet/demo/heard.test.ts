// Waiting for news: past ones and those to come, the first that fits, and the deadline.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Heard } from "../../../devnet/demo/heard.ts";
import { staysUp } from "../../../devnet/staysUp.ts";

const above =
	(least: number) =>
	(one: number): number | null =>
		one > least ? one : null;

test("the first that fits, past or to come", async () => {
	const heard = new Heard<number>();
	heard.hear(1);
	heard.hear(7);
	heard.hear(9);
	assert.equal(await heard.first("one above 5", 1_000, above(5)), 7);
	const coming = heard.first("one above 20", 1_000, above(20));
	heard.hear(15);
	heard.hear(30);
	assert.equal(await coming, 30);
	assert.deepEqual(heard.all(), [1, 7, 9, 15, 30]);
});

test("what is not heard in time is named", async () => {
	const heard = new Heard<number>();
	const waiting = staysUp(heard.first("one above 5", 5, above(5)));
	await assert.rejects(waiting, /one above 5: no answer within 5 ms/);
});
