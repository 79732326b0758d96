// What a fork allows, by what nodes say of it, before it comes and when it does.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ForkRules } from "../../../../relay/chain/nextBlock.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { ScriptedNode } from "../../../support/scriptedNode.ts";

const PRAGUE = { activationTime: 0, precompiles: { ECREC: "0x01" }, systemContracts: {} };
const OSAKA = { ...PRAGUE, precompiles: { ECREC: "0x01", P256VERIFY: "0x0100" } };
const AMSTERDAM = { ...OSAKA, systemContracts: { BUILDER_DEPOSIT_CONTRACT_ADDRESS: "0x02" } };
const OLD = [null, 49_152];
const CAPPED = [16_777_216n, 49_152];
const LIFTED = [null, 131_072];

function rulesOf(config: () => unknown, chainId = 31_337n) {
	const node = new ScriptedNode({ eth_config: config });
	const running: Promise<void>[] = [];
	const background = { run: (_: string, task: () => Promise<void>) => void running.push(task()) };
	const rules = new ForkRules({ chainId }, { node, background });
	const settled = async () => void (await Promise.all(running));
	return { rules, node, settled, allows: () => [rules.maxTxGas, rules.maxInitCodeBytes] };
}

describe("a fork's rules", () => {
	const rows: readonly (readonly [title: string, config: unknown, chainId: bigint, allows: unknown[]])[] = [
		["of Prague", { current: PRAGUE, next: null }, 1n, OLD],
		["of Osaka", { current: OSAKA, next: null }, 5n, CAPPED],
		["of Amsterdam", { current: AMSTERDAM, next: null }, 5n, LIFTED],
		["of mainnet, by a node that does not say", null, 1n, CAPPED],
		["of another chain, by a node that does not say", null, 5n, OLD],
		["of another chain, by a node that says something else", { current: { precompiles: 7 } }, 5n, OLD],
	];
	for (const [title, config, chainId, allows] of rows) {
		it(title, async () => {
			const fixture = rulesOf(() => config, chainId);
			await fixture.rules.read();
			assert.deepEqual(fixture.allows(), allows);
		});
	}

	it("change with the first block of an announced fork, and not before", async () => {
		let config: object = { current: OSAKA, next: { ...AMSTERDAM, activationTime: 1_012 } };
		const fixture = rulesOf(() => config);
		await fixture.rules.read();
		fixture.rules.setNext({ number: 1, timestamp: 1_000 });
		assert.deepEqual(fixture.allows(), CAPPED);
		fixture.rules.setNext({ number: 2, timestamp: 1_012 });
		assert.deepEqual(fixture.allows(), LIFTED);
		config = { current: AMSTERDAM, next: null };
		fixture.rules.setNext({ number: 3, timestamp: 1_024 });
		await fixture.settled();
		assert.deepEqual(fixture.allows(), LIFTED);
		const asked = fixture.node.calls.length;
		fixture.rules.setNext({ number: 4, timestamp: 1_036 });
		assert.equal(fixture.node.calls.length, asked);
	});

	it("are asked for again now and then: the node may have been updated", async () => {
		let config: object = { current: OSAKA, next: null };
		const fixture = rulesOf(() => config);
		fixture.rules.setNext({ number: 500, timestamp: 1_000 });
		await fixture.settled();
		config = { current: OSAKA, next: { ...AMSTERDAM, activationTime: 9_000 } };
		fixture.rules.setNext({ number: 599, timestamp: 9_000 });
		await fixture.settled();
		assert.deepEqual(fixture.allows(), CAPPED);
		fixture.rules.setNext({ number: 600, timestamp: 9_012 });
		await fixture.settled();
		assert.deepEqual(fixture.allows(), LIFTED);
	});

	it("stay as they are while the node does not answer", async () => {
		let answers = true;
		const fixture = rulesOf(() => {
			if (!answers) throw new UpstreamError("timeout");
			return { current: AMSTERDAM, next: null };
		});
		await fixture.rules.read();
		answers = false;
		await fixture.rules.read();
		assert.deepEqual(fixture.allows(), LIFTED);
	});
});
