// Contract of the ways to simulate, on a real node: the same transactions must have the same outcomes by all of them, to
// the code and the message.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { getCreateAddress, type TransactionLike } from "ethers";
import type { BlockContext, SimulationOutcome } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import * as contracts from "../support/contracts.ts";
import {
	addressOf,
	ETHER,
	fundedWallet,
	GWEI,
	nextBlock,
	placeContracts,
	requestFor,
	type SimulationChain,
	signed,
	simulatorOn,
	WAYS_ON_NODES,
} from "../support/simulationFixture.ts";

const CUSTOM = "0xdeadbeef0000000000000000000000000000000000000000000000000000000000000007";
const LONG = `0xdeadbeef${"ab".repeat(10_000)}`;

const EMITS = addressOf(1);
const EMITS_AND_REVERTS = addressOf(2);
const SHOWS = addressOf(3);
const PLACED: Readonly<Record<string, string>> = {
	[EMITS]: contracts.EMITS,
	[EMITS_AND_REVERTS]: contracts.EMITS_AND_REVERTS,
	[SHOWS]: contracts.SHOWS_SURROUNDINGS,
	[addressOf(4)]: contracts.calling(EMITS),
	[addressOf(5)]: contracts.calling(EMITS_AND_REVERTS),
	[addressOf(6)]: contracts.revertingWith(contracts.errorString("too late")),
	[addressOf(7)]: contracts.revertingWith(contracts.panic(0x11)),
	[addressOf(8)]: contracts.revertingWith(CUSTOM),
	[addressOf(9)]: contracts.REVERTS,
	[addressOf(10)]: contracts.LOOPS,
	[addressOf(11)]: contracts.INVALID,
	[addressOf(12)]: contracts.UNDERFLOWS,
	[addressOf(13)]: contracts.JUMPS_ASTRAY,
	[addressOf(14)]: contracts.revertingWith(LONG),
};

interface Row {
	readonly fields: TransactionLike;
	readonly emits?: boolean;
	readonly gasUsed?: bigint;
	readonly fails?: readonly [code: string, message: string, data?: string];
}

const ROWS: Readonly<Record<string, Row>> = {
	"plain transfer": { fields: { to: addressOf(99), value: 5n }, emits: false, gasUsed: 21_000n },
	"legacy transfer": {
		fields: { to: addressOf(99), gasPrice: 5n * GWEI, type: 0 },
		emits: false,
		gasUsed: 21_000n,
	},
	"transfer with an access list": {
		fields: {
			type: 1,
			to: addressOf(99),
			gasPrice: 5n * GWEI,
			accessList: [{ address: EMITS, storageKeys: [] }],
		},
		emits: false,
		gasUsed: 23_400n,
	},
	"an event": { fields: { to: EMITS }, emits: true, gasUsed: 21_379n },
	"an event of a call in it": { fields: { to: addressOf(4) }, emits: true },
	"an event that is undone": { fields: { to: addressOf(5) }, emits: false },
	"Error(string)": {
		fields: { to: addressOf(6) },
		fails: ["EXECUTION_REVERTED", "execution reverted: too late", contracts.errorString("too late")],
	},
	"Panic(uint256)": {
		fields: { to: addressOf(7) },
		fails: [
			"EXECUTION_REVERTED",
			"execution reverted: panic 0x11 (arithmetic overflow)",
			contracts.panic(0x11),
		],
	},
	"custom error": {
		fields: { to: addressOf(8) },
		fails: ["EXECUTION_REVERTED", "execution reverted: custom error 0xdeadbeef", CUSTOM],
	},
	"revert data beyond the limit": {
		fields: { to: addressOf(14) },
		fails: ["EXECUTION_REVERTED", "execution reverted: custom error 0xdeadbeef", LONG.slice(0, 2 + 2 * 4096)],
	},
	"revert without data": {
		fields: { to: addressOf(9) },
		fails: ["EXECUTION_REVERTED", "execution reverted"],
	},
	"out of gas": { fields: { to: addressOf(10) }, fails: ["OUT_OF_GAS", "out of gas"] },
	"invalid opcode": {
		fields: { to: addressOf(11) },
		fails: ["INVALID_OPCODE", "invalid opcode"],
	},
	"stack underflow": {
		fields: { to: addressOf(12) },
		fails: ["EXECUTION_FAILED", "execution failed: stack underflow"],
	},
	"jump to nowhere": {
		fields: { to: addressOf(13) },
		fails: ["EXECUTION_FAILED", "execution failed: invalid jump destination"],
	},
	"gas below the intrinsic gas": {
		fields: { to: addressOf(99), gasLimit: 20_999n },
		fails: ["OUT_OF_GAS", "out of gas: intrinsic gas too low"],
	},
	creation: { fields: { data: contracts.deploying(contracts.EMITS) }, emits: false },
	"creation that reverts": {
		fields: { data: contracts.revertingWith(contracts.errorString("no")) },
		fails: ["EXECUTION_REVERTED", "execution reverted: no", contracts.errorString("no")],
	},
	"creation that is too dear": {
		fields: { data: contracts.deploying(`0x${"00".repeat(2_000)}`) },
		fails: ["OUT_OF_GAS", "out of gas"],
	},
	"creation of code that starts with 0xEF": {
		fields: { data: contracts.deploying("0xef") },
		fails: ["EXECUTION_FAILED", "execution failed: contract code starts with 0xEF"],
	},
};

for (const [way, abilities, name, start] of WAYS_ON_NODES) {
	describe(`simulation by ${way} on ${name}`, () => {
		let chain: SimulationChain;
		let node: SimulationNode;
		let block: BlockContext;
		before(async () => {
			chain = await start(`simulationBy${way.replace(/\W/g, "")}`);
			({ node } = chain);
			await placeContracts(chain, PLACED);
			block = await nextBlock(chain);
		});
		after(() => chain.stop());

		const simulator = () => simulatorOn(node, abilities);

		for (const [title, row] of Object.entries(ROWS)) {
			it(title, async () => {
				const tx = await signed(chain.wallet(0), row.fields);
				const outcomes = await simulator().simulate(requestFor(block, 10_000n * ETHER, [tx]));
				assert.equal(outcomes.length, 1);
				checkRow(row, outcomes[0]);
			});
		}

		function checkRow(row: Row, outcome: SimulationOutcome | undefined): void {
			if (row.fails !== undefined) {
				const [code, message, data] = row.fails;
				const error = data === undefined ? { code, message } : { code, message, data };
				assert.deepEqual(outcome, { ok: false, error });
				return;
			}
			assert.ok(outcome?.ok);
			assert.equal(outcome.emitsEvents, row.emits);
			assert.equal(outcome.paid, null);
			if (row.gasUsed !== undefined) assert.equal(outcome.gasUsed, row.gasUsed);
		}

		it("shows the transaction the next block, and the price that it pays", async () => {
			const tx = await signed(chain.wallet(0), { to: SHOWS });
			const [outcome] = await simulator().simulate(requestFor(block, 10_000n * ETHER, [tx]));
			assert.ok(outcome !== undefined && !outcome.ok);
			assert.deepEqual(contracts.readSurroundings(outcome.error.data ?? ""), {
				coinbase: BigInt(block.feeRecipient),
				coinbaseBalance: 0n,
				timestamp: BigInt(block.timestamp),
				number: BigInt(block.number),
				baseFee: block.baseFee,
				gasLimit: block.gasLimit,
				gasPrice: block.baseFee + GWEI,
				senderBalance: 10_000n * ETHER - 200_000n * (block.baseFee + GWEI),
			});
		});

		it("answers for a chain up to the first failure", async () => {
			const wallet = chain.wallet(0);
			const txs = [
				await signed(wallet, { to: EMITS, nonce: 0 }),
				await signed(wallet, { to: addressOf(10), nonce: 1 }),
				await signed(wallet, { to: EMITS, nonce: 2 }),
			];
			const outcomes = await simulator().simulate(requestFor(block, 10_000n * ETHER, txs));
			assert.equal(outcomes.length, 2);
			assert.equal(outcomes[0]?.ok, true);
			const error = { code: "OUT_OF_GAS", message: "out of gas" };
			assert.deepEqual(outcomes[1], { ok: false, error });
		});

		it("goes on behind what may fail, with the nonces and the balances that it leaves", async () => {
			const [one, other] = [chain.wallet(0), chain.wallet(1)];
			const failing = await signed(one, { to: addressOf(9) });
			const txs = [
				await signed(other, { to: EMITS }),
				failing,
				await signed(other, { to: addressOf(9), nonce: 1 }),
				await signed(one, { to: EMITS, nonce: 1 }),
			];
			const accounts = new Map(txs.map(({ from }) => [from, { nonce: 0n, balance: 10_000n * ETHER }]));
			const request = { ...requestFor(block, 0n, txs), accounts };
			const told = async (mayFail: readonly string[]) =>
				(await simulator().simulate({ ...request, mayFail: new Set(mayFail) })).map(({ ok }) => ok);
			assert.deepEqual(await told([]), [true, false]);
			assert.deepEqual(await told([failing.hash]), [true, false, false]);
			assert.deepEqual(await told([failing.hash, txs[2]?.hash ?? ""]), [true, false, false, true]);
		});

		it("simulates on a state that is no longer the newest", async () => {
			const wallet = await fundedWallet(chain, ETHER);
			const at = await nextBlock(chain);
			// By a mined transaction: what anvil_set… changes, it also changes in the state of the block before.
			const spent = await signed(wallet, { to: addressOf(99), value: (ETHER * 9n) / 10n });
			await chain.rpc("eth_sendRawTransaction", [bytesToHex(spent.raw)]);
			await chain.rpc("evm_mine");
			assert.ok(BigInt(String(await chain.rpc("eth_getBalance", [wallet.address, "latest"]))) < ETHER / 10n);
			const tx = await signed(wallet, { to: addressOf(99), value: ETHER / 2n });
			const [outcome] = await simulator().simulate(requestFor(at, ETHER, [tx]));
			assert.equal(outcome?.ok, true);
		});

		it("runs a chain with a creation in its middle", async () => {
			const wallet = await fundedWallet(chain, ETHER);
			const created = getCreateAddress({ from: wallet.address, nonce: 1 });
			const txs = [
				await signed(wallet, { to: addressOf(99), value: 1n, nonce: 0 }),
				await signed(wallet, { data: contracts.deploying(contracts.EMITS), nonce: 1 }),
				await signed(wallet, { to: created, nonce: 2 }),
			];
			const outcomes = await simulator().simulate(requestFor(await nextBlock(chain), ETHER, txs));
			const told = outcomes.map((outcome) => (outcome.ok ? outcome.emitsEvents : outcome.error.code));
			assert.deepEqual(told, [false, false, true]);
		});
	});
}
