// The least gas that each shape of transaction needs, by each fork's rules: go-ethereum refuses one
// gas less in the words in which the relay does, takes and mines exactly that. Without GETH on
// recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ForkReader } from "../../relay/chain/forkReader.ts";
import { firstRejection, STATIC_RULES } from "../../relay/domain/transactionRules.ts";
import { Background } from "../../shared/background.ts";
import type { Fork } from "../../shared/ethereum/forks.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import { floorDataGas, intrinsicGas } from "../../shared/ethereum/intrinsicGas.ts";
import { silentLogger } from "../../shared/log.ts";
import { type RecordedGeth, startRecordedGeth } from "../support/recordedGeth.ts";
import { signedTransaction, type TxOptions, testAccount } from "../support/txFactory.ts";

const OTHER = `0x${"0e".repeat(20)}`;
const NEW = `0x${"0f".repeat(20)}`;
const ETHER = 10n ** 18n;
/** The highest gas limit that each block has room for. */
const BLOCK_GAS = 200_000_000;

const zeros = (count: number) => Buffer.alloc(count);
const others = (count: number) => Buffer.alloc(count, 0xee);
const keys = (count: number) =>
	Array.from({ length: count }, (_, i) => `0x${(i + 1).toString(16).padStart(64, "0")}`);
const list = (addresses: number, keysEach: number) =>
	Array.from({ length: addresses }, (_, i) => ({
		address: `0x${(i + 1).toString(16).padStart(40, "0")}`,
		storageKeys: keys(keysEach),
	}));
const authorizations = (count: number) =>
	Array.from({ length: count }, (_, i) => ({ by: testAccount(900 + i), address: OTHER }));

type Shape = TxOptions & { readonly toItself?: true };

const SHAPES: Readonly<Record<string, Shape>> = {
	"a transfer of nothing to itself": { toItself: true },
	"a transfer to itself": { toItself: true, value: 1n },
	"a call without value": { to: OTHER },
	"a transfer": { to: OTHER, value: 1n },
	"a call of an account that does not exist": { to: NEW },
	"a transfer to an account that does not exist": { to: NEW, value: 1n },
	"a legacy transfer": { type: 0, to: OTHER, value: 1n },
	"an empty creation": { to: null },
	"an empty creation with value": { to: null, value: 1n },
	"a creation of a byte": { to: null, data: zeros(1) },
	"a creation of 33 other bytes with value": { to: null, value: 1n, data: others(33) },
	"a creation of 49,152 bytes": { to: null, data: zeros(49_152) },
	"a zero byte": { to: OTHER, data: zeros(1) },
	"100 zero bytes": { to: OTHER, data: zeros(100) },
	"10,000 zero bytes": { to: OTHER, data: zeros(10_000) },
	"100,000 zero bytes": { to: OTHER, data: zeros(100_000) },
	"another byte": { to: OTHER, data: others(1) },
	"100 other bytes with value": { to: OTHER, value: 1n, data: others(100) },
	"10,000 other bytes": { to: OTHER, data: others(10_000) },
	"100,000 other bytes": { to: OTHER, data: others(100_000) },
	"zero and other bytes to itself": {
		toItself: true,
		value: 1n,
		data: Buffer.concat([zeros(50), others(50)]),
	},
	"an access list of an address": { type: 1, to: OTHER, accessList: list(1, 0) },
	"an access list of ten addresses with ten keys each": { to: OTHER, accessList: list(10, 10) },
	"an access list of 500 keys beside calldata": { to: OTHER, data: others(500), accessList: list(1, 500) },
	"an access list beside a creation": { to: null, data: others(40), accessList: list(3, 1) },
	"an authorization": { type: 4, to: OTHER, authorizations: authorizations(1) },
	"ten authorizations to itself": { type: 4, toItself: true, authorizations: authorizations(10) },
	"a blob": { type: 3, to: OTHER, blobs: 1 },
	"three blobs with value and calldata": { type: 3, to: OTHER, value: 1n, blobs: 3, data: others(30) },
};

/**
 * Shapes that no gas limit is enough for, and the beginning of geth's refusal. Null: geth accepts
 * it with the least gas.
 */
const LIMITS: Readonly<Record<string, { shape: Shape; osaka: string | null; amsterdam: string | null }>> = {
	"a creation of more than 49,152 bytes": {
		shape: { to: null, data: zeros(49_153) },
		osaka: "max initcode size exceeded: code size 49153",
		amsterdam: null,
	},
	"5,000 addresses": {
		shape: { to: OTHER, accessList: list(5_000, 0) },
		osaka: null,
		amsterdam: "insufficient gas for floor data gas cost: intrinsic cost 20915000, floor: 6415000",
	},
	"more gas than 2^24": {
		shape: { to: OTHER, gasLimit: 2n ** 24n + 1n },
		osaka: "transaction gas limit too high (cap: 16777216, tx: 16777217)",
		amsterdam: null,
	},
};

const ACCOUNTS = [...Object.keys(SHAPES), ...Object.keys(LIMITS)].map((_, i) => testAccount(i));
const ALLOC = {
	...Object.fromEntries(
		ACCOUNTS.map(({ address }) => [address.slice(2), { balance: `0x${(100n * ETHER).toString(16)}` }]),
	),
	[OTHER.slice(2)]: { balance: "0x1" },
};

for (const [name, amsterdam] of [
	["Osaka", false],
	["Amsterdam", true],
] as const) {
	describe(`by the rules of ${name}`, () => {
		let geth: RecordedGeth;
		let fork: Fork;
		before(async () => {
			geth = await startRecordedGeth(`forkEdges${name}`, { amsterdam, alloc: ALLOC, gasLimit: BLOCK_GAS });
			const background = new Background({}, { log: silentLogger });
			const forks = new ForkReader({ chainId: 31_337n }, { node: geth.node, background, log: silentLogger });
			await forks.read();
			fork = forks.at(2_000_000_000);
		});
		after(() => geth?.stop());

		/** The relay's refusal of the transaction; null: none. */
		const judged = (tx: TxOptions): string | null => {
			const next = { ...{ number: 2, timestamp: 0, baseFee: 1n, blobBaseFee: 1n }, fork };
			const rules = { chainId: 31_337n };
			const block = { ...next, gasLimit: BigInt(BLOCK_GAS) };
			return firstRejection(STATIC_RULES, signedTransaction(tx), rules, block)?.message ?? null;
		};
		/** Geth's refusal of it; null: geth holds it. */
		const sent = async (tx: TxOptions): Promise<string | null> => {
			const raw = bytesToHex(signedTransaction(tx).raw);
			const answer = await geth.node.call({ method: "eth_sendRawTransaction", params: [raw] });
			return answer.ok ? null : answer.error.message;
		};
		const shaped = ({ toItself, ...options }: Shape, index: number): TxOptions => {
			const by = testAccount(index);
			return { by, ...options, ...(toItself === true ? { to: by.address } : {}) };
		};
		const least = (tx: TxOptions): bigint => {
			const decoded = signedTransaction(tx);
			const [intrinsic, floor] = [intrinsicGas(decoded, fork), floorDataGas(decoded, fork)];
			// biome-ignore lint/complexity/useMathMinMax: Math.max throws for bigints.
			return intrinsic > floor ? intrinsic : floor;
		};

		it("is asked for by what the node says", () => assert.equal(fork.name, name));

		for (const [index, [title, shape]] of Object.entries(SHAPES).entries()) {
			it(title, async () => {
				const tx = shaped(shape, index);
				const gasLimit = least(tx);
				const short = { ...tx, gasLimit: gasLimit - 1n };
				const refusal = judged(short);
				assert.ok(refusal !== null);
				assert.equal(await sent(short), refusal);
				const enough = { ...tx, gasLimit };
				assert.deepEqual([judged(enough), await sent(enough)], [null, null]);
			});
		}

		it("all of them are mined", async () => {
			await geth.mine();
			for (const { address } of ACCOUNTS.slice(0, Object.keys(SHAPES).length))
				assert.equal(await geth.rpc("eth_getTransactionCount", [address, "latest"]), "0x1");
		});

		for (const [i, [title, row]] of Object.entries(LIMITS).entries()) {
			it(title, async () => {
				const tx = shaped(row.shape, Object.keys(SHAPES).length + i);
				const expected = amsterdam ? row.amsterdam : row.osaka;
				const gasLimit = tx.gasLimit ?? least(tx);
				const asked = { ...tx, gasLimit };
				const [own, theirs] = [judged(asked), await sent(asked)];
				if (expected === null) return assert.deepEqual([own, theirs], [null, null]);
				assert.ok(own?.startsWith(expected), String(own));
				assert.ok(theirs?.startsWith(expected.replace(/: code.*/, "")), String(theirs));
			});
		}
	});
}
