// Errors with the exact messages of geth, reth, Nethermind, providers and anvil: each gets its code
// and the relay's own message, without the node's text.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readAnswer, readExecutionError } from "../../../../../relay/simulation/engines/verdicts.ts";
import { errorString } from "../../../../support/contracts.ts";

const INTRINSIC = "OUT_OF_GAS: out of gas: intrinsic gas too low";
const FUNDS = "INSUFFICIENT_FUNDS: insufficient funds for gas * price + value";
const FEE_CAP = "FEE_CAP_TOO_LOW: max fee per gas less than block base fee";
const UNKNOWN = "EXECUTION_FAILED: execution failed";

/** Code and words of the node; `fault`, `refused`, or `code: message`. */
const ANSWERS: readonly (readonly [code: number, text: string, expected: string])[] = [
	[-38010, "nonce too low", "NONCE_TOO_LOW: nonce too low"],
	[-38011, "nonce too high", "NONCE_GAP: nonce too high"],
	[-38012, "whatever", FEE_CAP],
	[-38013, "whatever", INTRINSIC],
	[-38014, "whatever", FUNDS],
	[-38015, "block gas limit reached: 30000000 >= 30000000", "GAS_LIMIT_TOO_HIGH: exceeds block gas limit"],
	[-38021, "block timestamps must be in order", "fault"],
	[-38024, "sender is not an EOA", "EXECUTION_FAILED: execution failed: sender is a contract"],
	[-38025, "max initcode size exceeded", "EXECUTION_FAILED: execution failed: max initcode size exceeded"],
	[-38025, "block gas limit exceeded", "GAS_LIMIT_TOO_HIGH: exceeds block gas limit"],
	[-32601, "the method eth_simulateV1 does not exist/is not available", "unsupported"],
	[-32602, 'Failed to build transaction: missing keys: ["to"]', "unsupported"],
	[-32602, "BlockOutOfRangeError: block height is 0 but requested was 1", "fault"],
	[-32004, "method not supported", "unsupported"],
	[-32000, "intrinsic gas too low: have 20999, want 21000 (supplied gas 20999)", INTRINSIC],
	[-32000, "intrinsic gas too high -- CallGasCostMoreThanGasLimit", INTRINSIC],
	[-32000, "insufficient funds for gas * price + value: address 0xab have 1 want 2", FUNDS],
	[-32000, "insufficient funds for transfer", FUNDS],
	[-32000, "max fee per gas less than block base fee: address 0xab, maxFeePerGas: 1, baseFee: 2", FEE_CAP],
	[
		-32000,
		"max fee per blob gas less than block blob gas fee: address 0xab blobGasFeeCap: 1, blobBaseFee: 2",
		"BLOB_FEE_CAP_TOO_LOW: max fee per blob gas less than block blob base fee",
	],
	[-32000, "nonce too low: address 0xab, tx: 1 state: 2", "NONCE_TOO_LOW: nonce too low"],
	[-32000, "nonce too high: address 0xab, tx: 3 state: 2", "NONCE_GAP: nonce too high"],
	[-32000, "exceeds block gas limit", "GAS_LIMIT_TOO_HIGH: exceeds block gas limit"],
	[
		-32000,
		"transaction gas limit too high (cap: 16777216, tx: 20000000)",
		"GAS_LIMIT_TOO_HIGH: transaction gas limit too high",
	],
	[-32000, "out of gas", "OUT_OF_GAS: out of gas"],
	[-32000, "invalid opcode: INVALID", "INVALID_OPCODE: invalid opcode"],
	[-32015, "stack underflow (0 <=> 2)", "EXECUTION_FAILED: execution failed: stack underflow"],
	[-32603, "EVM error OutOfGas", "OUT_OF_GAS: out of gas"],
	[-32603, "EVM error CreateCollision", "EXECUTION_FAILED: execution failed: contract address is taken"],
	[-32603, "EVM error SomethingNew", UNKNOWN],
	[-32000, "something secret 0xabcdef", "unsupported"],
	[-32000, "RPC gas cap exhausted: need 5, remaining 4", "unsupported"],
	[-32000, "eth_simulateV1 is not available on your plan", "unsupported"],
	[-32000, "Method eth_simulateV1 is not whitelisted", "unsupported"],
	[-32000, "the method has been disabled", "unsupported"],
	[-38026, "too many blocks", "unsupported"],
	[-38026, "Client adjustable limit reached", "unsupported"],
	[-32600, "unsupported method: eth_simulateV1", "unsupported"],
	[-32015, "something secret 0xabcdef", UNKNOWN],
	[-32603, "something secret 0xabcdef", "fault"],
	[-32005, "daily request count exceeded, request rate limited", "fault"],
	[-32001, "block not found: 0x7", "fault"],
	[-32000, "header not found", "fault"],
	[-32000, "missing trie node 0123 (path ) state 0x4567 is not available", "fault"],
	[-32000, "execution aborted (timeout = 5s)", "fault"],
	[429, "rate limit reached", "fault"],
	[12345, "never seen", "fault"],
];

describe("a node's error", () => {
	for (const [code, text, expected] of ANSWERS) {
		it(`${code} ${text}`, () => {
			const answer = readAnswer({ ok: false, error: { code, message: text } });
			const read = answer.kind === "failed" ? `${answer.error.code}: ${answer.error.message}` : answer.kind;
			assert.equal(read, expected);
		});
	}

	it("is a revert by its code, or by the words, with its data", () => {
		const data = errorString("out of gas");
		const error = { code: "EXECUTION_REVERTED", message: "execution reverted: out of gas", data };
		for (const [code, message] of [
			[3, "execution reverted: out of gas"],
			[-32000, "execution reverted"],
			[-32015, "Reverted"],
		] as const) {
			const answer = readAnswer({ ok: false, error: { code, message, data } });
			assert.deepEqual(answer, { kind: "failed", error });
		}
	});

	it("is none where there is a result", () => {
		assert.deepEqual(readAnswer({ ok: true, result: null }), { kind: "result", value: null });
	});
});

describe("a failed execution", () => {
	const rows: readonly (readonly [code: number | null, text: string, expected: string | null])[] = [
		[null, "out of gas", "OUT_OF_GAS: out of gas"],
		[null, "contract creation code storage out of gas", "OUT_OF_GAS: out of gas"],
		[null, "PrecompileOOG", "OUT_OF_GAS: out of gas"],
		[null, "invalid opcode: opcode 0xc not defined", "INVALID_OPCODE: invalid opcode"],
		[null, "invalid jump destination", "EXECUTION_FAILED: execution failed: invalid jump destination"],
		[null, "stack limit reached 1024 (1023)", "EXECUTION_FAILED: execution failed: stack overflow"],
		[null, "max code size exceeded", "EXECUTION_FAILED: execution failed: max code size exceeded"],
		[
			null,
			"invalid code: must not begin with 0xef",
			"EXECUTION_FAILED: execution failed: contract code starts with 0xEF",
		],
		[null, "contract address collision", "EXECUTION_FAILED: execution failed: contract address is taken"],
		[null, "insufficient balance for transfer", FUNDS],
		[-38014, "anything", FUNDS],
		[-32015, "something new", null],
		[-3200, "execution failed", null],
	];
	for (const [code, text, expected] of rows) {
		it(`${code} ${text}`, () => {
			const error = readExecutionError(code, text, "0x");
			assert.equal(error === null ? null : `${error.code}: ${error.message}`, expected);
		});
	}
});
