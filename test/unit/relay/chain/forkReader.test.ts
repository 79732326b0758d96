// Which fork's rules hold, by what the node says, announces and shows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ForkReader } from "../../../../relay/chain/forkReader.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { AMSTERDAM, OSAKA, PRAGUE } from "../../../support/forks.ts";
import { ScriptedNode } from "../../../support/nodes.ts";

const OLD = { activationTime: 0, precompiles: { ECREC: "0x01" }, systemContracts: {} };
const WITH_OSAKA = { ...OLD, precompiles: { ECREC: "0x01", P256VERIFY: "0x0100" } };
const WITH_AMSTERDAM = { ...WITH_OSAKA, systemContracts: { BUILDER_DEPOSIT_CONTRACT_ADDRESS: "0x02" } };
const UNKNOWN = { ...WITH_AMSTERDAM, precompiles: { ...WITH_OSAKA.precompiles, ONE_MORE: "0x0200" } };

function reading(config: () => unknown, chainId = 31_337n) {
	const node = new ScriptedNode({ eth_config: config });
	const running: Promise<void>[] = [];
	const background = { run: (_: string, task: () => Promise<void>) => void running.push(task()) };
	const warned: string[] = [];
	const told: string[] = [];
	const log = {
		...silentLogger,
		info: (message: string) => void told.push(message),
		warn: (_: string, fields?: object) => void warned.push(JSON.stringify(fields)),
	};
	const forks = new ForkReader({ chainId }, { node, background, log });
	/** The fork of the next block as it is known before the node was asked. */
	const setNext = async (number: number, timestamp: number) => {
		forks.setNext({ number, timestamp });
		const atOnce = forks.at(timestamp).name;
		await Promise.all(running);
		return atOnce;
	};
	return { forks, node, setNext, warned, told };
}

const NOW = 1_000;
const ROWS: readonly (readonly [title: string, config: unknown, chainId: bigint, name: string])[] = [
	["Prague", { current: OLD, next: null }, 1n, "Prague"],
	["Osaka", { current: WITH_OSAKA, next: null }, 5n, "Osaka"],
	["Amsterdam", { current: WITH_AMSTERDAM, next: null }, 5n, "Amsterdam"],
	["one that is not known here", { current: UNKNOWN, next: null }, 5n, "Amsterdam"],
	["mainnet's, by a node that does not say", null, 1n, "Osaka"],
	["another chain's, by a node that does not say", null, 5n, "Prague"],
	["another chain's, by a node that says something else", { current: { precompiles: 7 } }, 5n, "Prague"],
];
for (const [title, config, chainId, name] of ROWS) {
	test(`the fork is ${title}`, async () => {
		const { forks } = reading(() => config, chainId);
		await forks.read();
		assert.equal(forks.at(NOW).name, name);
	});
}

test("it changes with the first block of an announced fork, and not before", async () => {
	let config: object = { current: WITH_OSAKA, next: { ...WITH_AMSTERDAM, activationTime: 1_012 } };
	const { forks, node, setNext, told } = reading(() => config);
	await forks.read();
	assert.equal(await setNext(1, 1_000), "Osaka");
	assert.deepEqual([forks.at(1_011), forks.at(1_012)], [OSAKA, AMSTERDAM]);
	assert.equal(await setNext(2, 1_012), "Amsterdam");
	config = { current: WITH_AMSTERDAM, next: null };
	await setNext(3, 1_024);
	assert.equal(forks.at(1_024), AMSTERDAM);
	const asked = node.calls.length;
	await setNext(4, 1_036);
	assert.equal(node.calls.length, asked);
	const rules = (name: string) => `next block has the rules of ${name}`;
	assert.deepEqual(told, [rules("Osaka"), rules("Amsterdam")]);
});

test("the node is asked again now and then, since it may have been updated; while it does not answer nothing changes", async () => {
	let config: object | null = { current: WITH_OSAKA, next: null };
	const { forks, setNext } = reading(() => {
		if (config === null) throw new UpstreamError("timeout");
		return config;
	});
	await setNext(500, 1_000);
	config = { current: WITH_OSAKA, next: { ...WITH_AMSTERDAM, activationTime: 9_000 } };
	await setNext(599, 9_000);
	assert.equal(forks.at(9_000), OSAKA);
	await setNext(600, 9_012);
	assert.equal(forks.at(9_012), AMSTERDAM);
	config = null;
	await setNext(700, 9_024);
	assert.equal(forks.at(9_024), AMSTERDAM);
});

test("a header shows the fork where the node does not say, and goes over what an old answer says", async () => {
	for (const config of [null, { current: WITH_OSAKA, next: null }]) {
		const { forks } = reading(() => config);
		await forks.read();
		assert.equal(forks.after({}, NOW), config === null ? PRAGUE : OSAKA);
		assert.equal(forks.after({ shownFork: AMSTERDAM }, NOW), AMSTERDAM);
		assert.equal(forks.at(NOW), AMSTERDAM);
	}
});

test("what is not known here is said once", async () => {
	const { forks, warned } = reading(() => ({ current: UNKNOWN, next: null }));
	await forks.read();
	await forks.read();
	assert.deepEqual(warned, [JSON.stringify({ reason: "ONE_MORE" })]);
});
