// Fresh state before a refusal: who has just been paid can spend at once, and a searcher whose last
// transaction has just been mined can bid, also before the relay has heard of the block by itself.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { ask, HONEST, resultOf } from "../support/attacks/wire.ts";
import { PAYS_COINBASE } from "../support/auctionContracts.ts";
import { rawTransaction, type TestAccount, type TxOptions, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const ETHER = 10n ** 18n;
const PAYER = `0x${"e3".repeat(20)}`;

const [rich, poor, user, searcher] = [0, 1, 2, 3].map((i) => testAccount(810_000 + i)) as [
	...[TestAccount, TestAccount, TestAccount, TestAccount],
];

let fixture: AttackFixture;
before(async () => {
	// It does not look for heads by itself while the tests run.
	fixture = await startAttackFixture({ env: { HEAD_POLL_MS: "60000" } });
	await fixture.chain.rpc("anvil_setCode", [PAYER, PAYS_COINBASE]);
	for (const { address } of [rich, user, searcher]) await fixture.fund(address, 10n * ETHER);
});
after(() => fixture?.stop());

/** The outcome of a call on `/`. */
const asked = (method: string, params: readonly unknown[], path = "/") =>
	ask(method, params, { url: `${fixture.relay.url}${path}`, from: HONEST, deadlineMs: 5_000 });

function raw(by: TestAccount, options: Omit<TxOptions, "by"> = {}): string {
	return `0x${rawTransaction({ by, ...options }).toString("hex")}`;
}

/** Has `transactions` mined, past the relay. */
async function mined(...transactions: readonly string[]): Promise<void> {
	for (const transaction of transactions) await fixture.chain.rpc("eth_sendRawTransaction", [transaction]);
	await fixture.passBlock();
}

it("a searcher whose last transaction has just been mined can bid with the next nonce", async () => {
	const call = { url: `${fixture.relay.url}/maxbackruns`, from: HONEST, deadlineMs: 5_000 };
	const target = String(await resultOf("eth_sendRawTransaction", [raw(user)], call));
	await until("the target is shown", async () => (await fixture.relay.client.status(target)).shared);
	const bid = (nonce: number) =>
		asked("eth_sendBundle", [{ txs: [target, raw(searcher, { nonce, to: PAYER, value: 1_000 })] }]);
	assert.equal((await bid(0)).error, undefined);
	await mined(raw(searcher, { value: 1 }));
	const next = await bid(1);
	assert.equal(next.error, undefined, JSON.stringify(next));
});

it("a wallet that has just been paid, and reads that through the relay, can spend at once", async () => {
	const spending = raw(poor, { value: ETHER / 2n });
	const before = await asked("eth_sendRawTransaction", [spending], "/fast");
	assert.match(before.error?.message ?? "", /^insufficient funds/);
	await mined(raw(rich, { to: poor.address, value: ETHER }));
	const read = await asked("eth_getBalance", [poor.address, "latest"]);
	assert.equal(BigInt(String(read.result)), ETHER);
	const now = await asked("eth_sendRawTransaction", [spending], "/fast");
	assert.equal(now.error, undefined, JSON.stringify(now));
});
