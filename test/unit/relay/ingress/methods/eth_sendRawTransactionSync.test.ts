// eth_sendRawTransactionSync behind a real dispatcher: what it waits for, in which order and how long.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Submission } from "../../../../../relay/domain/transaction.ts";
import type { MethodDependencies } from "../../../../../relay/ingress/methodDependencies.ts";
import { eth_sendRawTransactionSync } from "../../../../../relay/ingress/methods/transactions.ts";
import { type CallContext, callContext } from "../../../../../shared/http/callContext.ts";
import type { SyncCall } from "../../../../../shared/http/syncWaits.ts";
import { createDispatcher } from "../../../../../shared/jsonrpc/dispatch.ts";
import { methodTable } from "../../../../../shared/jsonrpc/method.ts";
import { silentLogger } from "../../../../../shared/log.ts";
import { ManualClock } from "../../../../support/manualClock.ts";

const ADDRESS = "2001:db8::7";
const METHOD = "eth_sendRawTransactionSync";

/** A submitter and waits that remember what they were asked; a submission takes `submitMs`, a wait a second. */
function start(submitMs = 0) {
	const clock = new ManualClock();
	const submissions: Submission[] = [];
	const waits: SyncCall[] = [];
	const fixture = {
		clock,
		submissions,
		waits,
		send: async (body: unknown, path = "/fast", search = "") => {
			const client = { address: ADDRESS, signer: null, vouched: false };
			const context = callContext({ path, search }, client, null, null);
			const { text } = await dispatcher.dispatch(JSON.stringify(body), context);
			return text === null ? null : JSON.parse(text);
		},
	};
	const later = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
	const needs: Pick<MethodDependencies, "submitter" | "receipts" | "clock"> = {
		submitter: {
			async submit(submission) {
				submissions.push(submission);
				const hash = `0x${Buffer.from(submission.raw).toString("hex")}`;
				if (submitMs > 0) await later(submitMs);
				return { outcome: "accepted", hash };
			},
		},
		receipts: {
			async wait(request) {
				waits.push(request);
				await later(1_000);
				return { transactionHash: request.hash };
			},
		},
		clock,
	};
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch: 100 },
		// The other needs are other methods'.
		{
			methods: methodTable([eth_sendRawTransactionSync], needs as MethodDependencies),
			log: silentLogger,
			clock,
		},
	);
	return fixture;
}

function call(id: number | undefined, ...params: unknown[]) {
	return { jsonrpc: "2.0", ...(id === undefined ? {} : { id }), method: METHOD, params };
}

test("how long it waits is counted from the call, whatever the submission took", async () => {
	for (const [timeout, ms] of [
		[[], 20_000],
		[[1], 1],
		[[25_000], 25_000],
		// What is more counts as that.
		[[25_001], 25_000],
		[[36_000], 25_000],
	] as const) {
		const fixture = start(700);
		await fixture.clock.advance(50);
		const answer = fixture.send(call(1, "0x0a", ...timeout));
		await fixture.clock.advance(1_700);
		await answer;
		assert.deepEqual(
			fixture.waits.map(({ begun, until }) => [begun, until]),
			[[50, 50 + ms]],
		);
	}
});

test("no wait of a batch goes beyond the time of the whole batch", async () => {
	const fixture = start(9_000);
	const answer = fixture.send([call(1, "0x01"), call(2, "0x02"), call(3, "0x03", 5_000)]);
	await fixture.clock.advance(29_000);
	assert.deepEqual(
		fixture.waits.map(({ begun, until }) => [begun, until]),
		[
			[0, 20_000],
			[9_000, 28_000],
			[18_000, 23_000],
		],
	);
	assert.equal((await answer).length, 3);
});
