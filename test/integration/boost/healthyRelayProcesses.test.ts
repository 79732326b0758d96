// The promises of healthyRelay.test.ts on processes and real slots: one client sends null ids and
// calls that wait for receipts, and the relay serves an honest user throughout. The control: once
// the relay is killed, the user's transaction goes to the fallback.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { CallOptions } from "../../support/boostFixture.ts";
import { sized } from "../../support/length.ts";
import { type PathFixture, startPath } from "../../support/pathFixture.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { rawTransaction, signedTransaction, type TestAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

/** Two clients, of two networks. */
const ATTACKER: CallOptions = { headers: { "x-forwarded-for": "203.0.113.9" } };
const USER: CallOptions = { headers: { "x-forwarded-for": "198.51.100.7" } };
const SUBMISSIONS = 30;

for (const slotSeconds of sized([2], [2, 6, 12])) {
	describe(`with slots of ${slotSeconds} s`, () => {
		let path: PathFixture;
		let since: string;
		before(async () => {
			// On a busy machine an answer takes longer than usual, and what is late goes to the fallback.
			const env = { TRUST_PROXY: "1", REQUEST_BUDGET_MS: "25000", PROBE_TIMEOUT_MS: "20000" };
			path = await startPath({ withEdge: false, slotSeconds, env });
			await path.boost.isWell();
			({ since } = (await path.boost.status()).relay);
		});
		after(() => path?.stop());

		const signed = (by: TestAccount, nonce: number) => {
			const options = { by, nonce };
			const raw = `0x${rawTransaction(options).toString("hex")}`;
			return { raw, hash: signedTransaction(options).hash };
		};
		const call = (id: number | null, method: string, ...params: readonly unknown[]) => ({
			...{ jsonrpc: "2.0", id, method, params },
		});

		/** The user's submission: the relay answers it, and nothing else is asked. */
		const submits = async (by: TestAccount, nonce: number): Promise<void> => {
			const { raw, hash } = signed(by, nonce);
			const { headers, json } = await path.boost.call("eth_sendRawTransaction", [raw], USER);
			assert.equal((json as WireAnswer).result, hash);
			assert.deepEqual([headers["x-boost-upstream"], headers["x-boost-breaker"]], ["relay", "closed"]);
		};
		const assertHealthy = async (): Promise<void> => {
			const { state, reason, since: now } = (await path.boost.status()).relay;
			assert.deepEqual([state, reason, now], ["closed", null, since]);
			assert.deepEqual(path.fallback.methods, []);
		};

		it("null ids in submissions and cancels", async () => {
			const { boost } = path;
			const [attacker, user] = [path.account(), path.account()];
			for (let nonce = 0; nonce < SUBMISSIONS; nonce += 1) {
				const { raw, hash } = signed(attacker, nonce);
				const [sent] = await Promise.all([
					boost.post(call(null, "eth_sendRawTransaction", raw), ATTACKER),
					submits(user, nonce),
				]);
				assert.deepEqual(sent.json, { jsonrpc: "2.0", id: null, result: hash });
			}
			const last = signed(attacker, SUBMISSIONS);
			await boost.post(call(1, "eth_sendRawTransaction", last.raw), ATTACKER);
			const cancelled = await boost.post(call(null, "eth_cancelTransaction", last.hash), ATTACKER);
			assert.deepEqual(cancelled.json, { jsonrpc: "2.0", id: null, result: true });
			await assertHealthy();
		});

		it("calls right after a block that wait for their receipts", async () => {
			const { boost } = path;
			const height = async () => Number(await boost.result("eth_blockNumber"));
			const [first, user] = [await height(), path.account()];
			await until("a block", async () => (await height()) > first);
			const waiting = Array.from({ length: 3 }, async () => {
				const { raw, hash } = signed(path.account(), 0);
				const body = call(1, "eth_sendRawTransactionSync", raw, 60_000);
				const { json } = await boost.post(body, ATTACKER);
				const receipt = (json as WireAnswer).result as { readonly transactionHash?: string } | undefined;
				assert.equal(receipt?.transactionHash, hash, JSON.stringify(json));
			});
			let isOver = false;
			const ended = Promise.all(waiting).finally(() => {
				isOver = true;
			});
			let nonce = 0;
			await until("all have their receipts", async () => {
				await submits(user, nonce);
				nonce += 1;
				return isOver;
			});
			await ended;
			await assertHealthy();
		});

		it("the control: a killed relay is left at once, and the fallback has the user's transaction", async () => {
			await path.core.kill();
			const { raw, hash } = signed(path.account(), 0);
			assert.equal(await path.boost.result("eth_sendRawTransaction", [raw], USER), hash);
			const forwarded = path.fallback.posts.flatMap(({ calls }) => calls.map(({ params }) => params[0]));
			assert.ok(forwarded.includes(raw));
		});
	});
}
