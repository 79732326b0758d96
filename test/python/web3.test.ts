// web3.py, unmodified, at the relay and at boost: what docs/wallets.md says was run through it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type BoostFixture, startBoostFixture } from "../support/boostFixture.ts";
import { EMITS, REVERTS } from "../support/contracts.ts";
import { until } from "../support/until.ts";
import { FLASHBOTS, NEWEST, runPython } from "./python.ts";

describe("web3.py 6 and 8", { skip: FLASHBOTS.absent || NEWEST.absent }, () => {
	let fixture: BoostFixture;
	before(async () => {
		fixture = await startBoostFixture();
	});
	after(() => fixture.stop());

	for (const [version, environment, at] of [
		[6, FLASHBOTS, "relay"],
		[8, NEWEST, "relay"],
		[8, NEWEST, "boost"],
	] as const) {
		test(`${version} at the ${at}: balance, nonces, fees, a transfer, a contract, its logs, filters, a replacement, a refusal`, async () => {
			const { users, system, boost } = fixture;
			const actor = await users.actor();
			const contracts = [await users.placeCode(EMITS), await users.placeCode(REVERTS)];
			const url = at === "relay" ? system.client.url : boost.url;
			const running = runPython(environment, "test/python/wallet.py", [
				url,
				actor.account.keyHex,
				...contracts,
			]);
			let isOver = false;
			void running.finally(() => {
				isOver = true;
			});
			let known = system.builder.requests().length;
			await until(
				"its end",
				async () => {
					const now = system.builder.requests().length;
					if (now > known) {
						known = now;
						await system.nextBlock();
					}
					return isOver;
				},
				60_000,
			);
			const { code, stdout, stderr } = await running;
			assert.equal(code, 0, stderr);
			const { refusal, balance, gasPrice, ...told } = JSON.parse(stdout) as Record<string, unknown>;
			assert.equal(balance, 100 * 1e18);
			assert.ok(Number(gasPrice) > 0);
			assert.deepEqual(told, {
				pending: null,
				nonce: 1,
				transfer: [1, true],
				hash: true,
				inBlock: true,
				contract: [1, 1],
				logs: 1,
				filters: [true, 1],
				replacement: [1, true],
			});
			assert.match((refusal as { message: string }).message, /^nonce too low/);
		});
	}
});
