// Answers of eth_simulateV1 to the questions around a measured transaction come in; what it paid goes out, whatever the
// node's logs say and whatever it credits for gas.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { simulateV1 } from "../../../../../relay/simulation/engines/simulateV1.ts";
import { BLOCK, fakeTransaction, SENDER } from "../../../../support/simulationFakes.ts";

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const passed = { status: "0x1", gasUsed: "0x5208", returnData: "0x", logs: [] };
const word = (wei: number) => wei.toString(16).padStart(64, "0");

describe("a measured transaction", () => {
	const other = "0x0000000000000000000000000000000000000b1d";
	/** A transfer of `wei` to the fee recipient, as the node would log it. */
	const log = (wei: number) => ({
		address: "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE",
		topics: [TRANSFER, `0x${"5e4".padStart(64, "0")}`, `0x${BLOCK.feeRecipient.slice(2).padStart(64, "0")}`],
		data: `0x${word(wei)}`,
	});
	const measured = (length: number) => {
		const chain = Array.from({ length }, (_, i) => fakeTransaction({ nonce: BigInt(i) }));
		const last = fakeTransaction({ from: other, gasPrice: null });
		return { block: BLOCK, chain: [...chain.slice(1), last], measured: true, overrides: {} };
	};
	const paidOf = async (length: number, calls: readonly unknown[]) => {
		const answer = await simulateV1.run(measured(length), async () => ({
			kind: "result",
			value: [{ calls }],
		}));
		const outcome = answer.kind === "ran" ? answer.steps.at(-1)?.outcome : undefined;
		return outcome?.ok ? outcome.paid : outcome;
	};

	for (const length of [1, 3]) {
		it(`asks twice in front of it, at its price first, and once behind it, as number ${length}`, async () => {
			let told: unknown;
			await simulateV1.run(measured(length), async ({ params }) => {
				told = params[0];
				return { kind: "fault" };
			});
			const [{ calls, stateOverrides }] = (
				told as { blockStateCalls: [{ calls: Record<string, string>[]; stateOverrides: object }] }
			).blockStateCalls;
			const question = `0x${other.slice(2).padStart(64, "0")}${BLOCK.feeRecipient.slice(2).padStart(64, "0")}`;
			const shown = calls.map(({ from, input, gasPrice }) =>
				input === "0x" ? from : `${input === question} ${gasPrice}`,
			);
			const around = ["true 0xb", "true undefined", other, "true undefined"];
			const before = length === 1 ? [] : [SENDER, "false undefined", SENDER];
			assert.deepEqual(shown, [...before, ...around]);
			assert.deepEqual(stateOverrides, {
				"0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b71": { code: "0x5f35315f526020353160205260405ff3" },
				"0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b72": { balance: "0x10c8e0" },
			});
		});
	}

	/** Gas of the questions here: a tenth of the transaction's. */
	const asking = (feeRecipients: number) => ({
		...passed,
		gasUsed: "0x834",
		returnData: `0x${word(1)}${word(feeRecipients)}`,
	});
	const rows: readonly (readonly [title: string, balances: number[], logs: number[], paid: bigint | null])[] =
		[
			["without fees", [100, 100, 107], [7], 7n],
			["with a fee of one wei a gas", [100, 2_200, 23_207], [7], 7n],
			["where the node shows no log of it", [100, 2_200, 23_207], [], 7n],
			["where a log is there and no wei", [100, 2_200, 23_200], [7], 0n],
			["of fees alone", [100, 2_200, 23_200], [], 0n],
			["of one that takes from it", [100, 2_200, 23_100], [], 0n],
		];
	for (const [title, [first = 0, second = 0, third = 0], logs, paid] of rows) {
		it(`reads the payment ${title}`, async () => {
			const calls = [asking(first), asking(second), { ...passed, logs: logs.map(log) }, asking(third)];
			assert.equal(await paidOf(1, calls), paid);
			assert.equal(await paidOf(2, [{ ...passed, logs: [log(9)] }, ...calls]), paid);
		});
	}

	it("can't tell a payment where a question is not answered", async () => {
		const good = [asking(100), asking(2_200), passed, asking(23_207)];
		const bad = [
			{ ...asking(1), status: "0x0" },
			{ ...asking(1), returnData: "0x" },
		];
		for (const i of [0, 1, 3]) {
			for (const one of bad) assert.equal(await paidOf(1, good.with(i, one)), null);
		}
		assert.equal(await paidOf(1, good.with(0, { ...asking(1), gasUsed: "0x0" })), null);
	});
});
