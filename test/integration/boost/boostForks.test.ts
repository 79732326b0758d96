// While the relay is down boost judges what takes another's place by the fork that its node tells:
// what those rules take is given to the fallback, what they don't is refused in the node's words.
// The node is an anvil whose eth_config is the test's.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { GWEI } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

const OSAKA = { activationTime: 0, precompiles: { P256VERIFY: "0x0100" }, systemContracts: {} };
const AMSTERDAM = { ...OSAKA, systemContracts: { BUILDER_DEPOSIT_CONTRACT_ADDRESS: "0x02" } };
/** A transfer to oneself, which needs 21,000 gas until Osaka and 12,000 since Amsterdam. */
const GAS = 12_000;

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture({ system: { proxied: true } });
});
after(() => fixture?.stop());

/** The node tells these rules from now on, and the fallback has learnt them. */
async function runs(name: string, current: object): Promise<void> {
	const node = fixture.system.node as NodeProxy;
	node.setFault({ kind: "result", result: { current, next: null, last: null } }, { methods: ["eth_config"] });
	// It asks each hundred blocks, for those behind the one at which it asks.
	await fixture.system.chain.rpc("anvil_mine", ["0xc8", "0x1"]);
	await until(`the fallback knows ${name}`, async () => {
		await fixture.system.chain.rpc("anvil_mine", ["0x1"]);
		const info = (await (await fetch(`${fixture.fallbackUrl}/info`)).json()) as { fork: string };
		return info.fork === name;
	});
}

for (const [name, config, message] of [
	["Osaka", OSAKA, "intrinsic gas too low: gas 12000, minimum needed 21000"],
	["Amsterdam", AMSTERDAM, null],
] as const) {
	it(`by ${name}'s rules a cancel with 12,000 gas is ${message === null ? "taken" : "refused"}`, async () => {
		await runs(name, config);
		const ETH_RPC_URL = (fixture.system.node as NodeProxy).url;
		const boost = await fixture.startBoost({ env: { ETH_RPC_URL } });
		await fixture.fails({ kind: "refuse" }, boost);
		const actor = await fixture.users.actor();
		const first = actor.sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [first.raw]), first.hash);
		const fees = { maxFeePerGas: 90n * GWEI, maxPriorityFeePerGas: 9n * GWEI };
		const cancel = actor.sign({ to: actor.address, value: 0n, gasLimit: GAS, ...fees });
		const { json, headers } = await boost.call("eth_sendRawTransaction", [cancel.raw]);
		const { result, error } = json as WireAnswer;
		const told = [result ?? error?.message, headers["x-boost-upstream"]];
		assert.deepEqual(told, message === null ? [cancel.hash, "fallback"] : [message, "boost"]);
		await fixture.recovers(boost);
	});
}
