// Calls behind pending transactions on go-ethereum: what the node answers with their changes as
// state overrides is what it answers once they are mined, for each kind of change. Without GETH on
// recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { getCreateAddress } from "ethers";
import { nextBlockReader } from "../../relay/chain/nextBlock.ts";
import { Passthrough } from "../../relay/chain/passthrough.ts";
import type { Block } from "../../relay/domain/chain.ts";
import { readHeader } from "../../relay/domain/nodeJson.ts";
import type { ChainLink } from "../../relay/domain/transaction.ts";
import { ReadsBehind } from "../../relay/simulation/readsBehind.ts";
import { systemClock } from "../../shared/clock.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import { Slots } from "../../shared/ethereum/slots.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import { ForeignRpcError } from "../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../shared/log.ts";
import { devAccounts } from "../devnet/devChain.ts";
import * as contracts from "../support/contracts.ts";
import { always, OSAKA } from "../support/forks.ts";
import { type RecordedGeth, startRecordedGeth } from "../support/recordedGeth.ts";
import { addressOf } from "../support/simulationFixture.ts";
import { accountOf, signedTransaction, type TxOptions } from "../support/txFactory.ts";

const SLOTS = new Slots({ setMs: 12_000 }, { clock: systemClock });

const COINBASE = "0x00000000000000000000000000000000facade02";
/** Reverts unless its slot 0 is set; with call data it sets the slot to the first word. */
const GATE = addressOf(1);
const REVERTS = addressOf(2);
const ANSWERS_ONE = addressOf(3);
const ALLOC = Object.fromEntries(
	[
		// CALLDATASIZE PUSH1 14 JUMPI, PUSH0 SLOAD PUSH1 12 JUMPI PUSH0 PUSH0 REVERT, JUMPDEST STOP,
		// JUMPDEST PUSH0 CALLDATALOAD PUSH0 SSTORE STOP
		[GATE, "0x36600e575f54600c575f5ffd5b005b5f355f5500"],
		[REVERTS, contracts.REVERTS],
		// PUSH1 1 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN
		[ANSWERS_ONE, "0x60015f5260205ff3"],
	].map(([address = "", code = ""]) => [address.slice(2), { code, balance: "0x0" }]),
);
const word = (value: number) => `0x${value.toString(16).padStart(64, "0")}`;
const READS = ["eth_call", "eth_estimateGas", "eth_createAccessList"] as const;
const SENDER = accountOf(devAccounts(2)[1]?.privateKey ?? "");
const CALLER = { client: "198.51.100.1", life: { onGone() {} } };

let geth: RecordedGeth;
before(async () => {
	geth = await startRecordedGeth("readsBehind", { alloc: ALLOC });
});
after(() => geth.stop());

/**
 * The reads on the present head. `refused`: a method that the node, like anvil, serves without
 * state overrides only.
 */
async function readsNow(refused = ""): Promise<ReadsBehind> {
	const json = (await geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, unknown>;
	const header = readHeader(json);
	assert.ok(header !== null);
	const head: Block = { ...header, transactions: [], touched: [] };
	const next = await nextBlockReader({ slots: SLOTS }, { node: geth.node, forks: always(OSAKA) })(head);
	const call = async (asked: RpcCall): Promise<RpcAnswer> =>
		asked.method === refused && asked.params.length > 2
			? { ok: false, error: { code: -32602, message: "too many arguments, want at most 2", data: undefined } }
			: geth.node.call(asked);
	const node = new Passthrough(
		{},
		{ node: { call, batch: (calls) => geth.node.batch(calls) }, head: () => head, log: silentLogger },
	);
	const tip = { head: () => head, next: () => next };
	return new ReadsBehind({ node, tip, feeRecipientOf: () => COINBASE, clock: systemClock });
}

interface Case {
	readonly what: string;
	/** In the order of their nonces. */
	readonly pending: readonly (Omit<TxOptions, "by" | "nonce"> & { readonly mayFail?: boolean })[];
	readonly call: { readonly to?: string; readonly data?: string; readonly value?: string };
	/** How many of the pending ones count. Default all. */
	readonly count?: number;
	/** Whether the call passes then. Default true. */
	readonly passes?: boolean;
}

const CREATED = getCreateAddress({ from: SENDER.address, nonce: 0 }).toLowerCase();
const AUTHORITY = accountOf(`0x${"77".repeat(32)}`);
const DELEGATES = {
	type: 4,
	gasLimit: 200_000,
	authorizations: [{ by: AUTHORITY, address: ANSWERS_ONE }],
} as const;

const CASES: readonly Case[] = [
	{ what: "a slot set", pending: [{ to: GATE, data: word(1) }], call: { to: GATE } },
	{
		what: "a slot set and cleared",
		pending: [
			{ to: GATE, data: word(1) },
			{ to: GATE, data: word(0) },
		],
		call: { to: GATE },
		passes: false,
	},
	{
		what: "a contract created",
		pending: [{ to: null, data: contracts.deploying("0x60015f5260205ff3") }],
		call: { to: CREATED },
	},
	{
		what: "code by a delegation",
		pending: [{ ...DELEGATES, to: GATE, data: word(1) }],
		call: { to: AUTHORITY.address },
	},
	{
		what: "ether spent",
		pending: [{ to: GATE, data: word(1), value: 9_000n * 10n ** 18n }],
		call: { to: GATE, value: "0x56bc75e2d631000000" },
		passes: false,
	},
	{
		what: "what reverts and may not, and what is behind it, do not count",
		pending: [{ to: REVERTS }, { to: GATE, data: word(1) }],
		count: 0,
		call: { to: GATE },
		passes: false,
	},
	{
		what: "what reverts and is sent all the same counts with what is behind it",
		pending: [
			{ to: REVERTS, mayFail: true },
			{ to: GATE, data: word(1) },
		],
		call: { to: GATE },
	},
	{
		what: "one with too low fees for the next block does not count, nor what is behind it",
		pending: [
			{ to: GATE, data: word(1) },
			{ to: GATE, data: word(0), maxFeePerGas: 2n, maxPriorityFeePerGas: 1n },
		],
		count: 1,
		call: { to: GATE },
	},
];

async function outcome(reading: Promise<unknown>): Promise<unknown> {
	try {
		return await reading;
	} catch (thrown) {
		if (!(thrown instanceof ForeignRpcError)) throw thrown;
		return { code: thrown.code, message: thrown.message };
	}
}

for (const { what, pending, call, count = pending.length, passes = true } of CASES) {
	it(what, async () => {
		const chain = pending.map(({ mayFail = false, ...options }, nonce): ChainLink => {
			return { tx: signedTransaction({ gasLimit: 150_000, ...options, by: SENDER, nonce }), mayFail };
		});
		const reads = await readsNow();
		const object = { from: SENDER.address, ...call };
		const behind = [];
		for (const method of READS) {
			behind.push(
				await outcome(
					reads.answer(method, [object, "pending"], chain, CALLER).then((answer) => answer?.result ?? null),
				),
			);
		}
		if (count === 0) {
			assert.deepEqual(behind, [null, null, null], "the chain alone");
			return;
		}
		const traced = await (await readsNow("eth_createAccessList")).answer(
			"eth_createAccessList",
			[object, "pending"],
			chain,
			CALLER,
		);
		const head = Number(await geth.rpc("eth_blockNumber"));
		const txs = chain.slice(0, count).map(({ tx }) => bytesToHex(tx.raw));
		await geth.mine({ txs, coinbase: COINBASE });
		const mined = [];
		for (const method of READS) {
			const answer = await geth.node.call({ method, params: [object, "latest"] });
			mined.push(answer.ok ? answer.result : { code: answer.error.code, message: answer.error.message });
		}
		await geth.revert(head);
		assert.deepEqual(behind, mined);
		assert.equal(typeof behind[1] === "string", passes);
		assert.deepEqual(
			traced?.result ?? null,
			"code" in (mined[2] as object) ? null : mined[2],
			"the list by a trace",
		);
	});
}
