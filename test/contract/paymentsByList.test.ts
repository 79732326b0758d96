// Payments of transactions to the coinbase, read from block access lists (EIP-7928), equal those in
// traces, to the wei, in random blocks of go-ethereum with Amsterdam. This geth serves the lists to
// consensus nodes alone, so its own list of the block that it builds is put in the shape of
// `eth_getBlockAccessList`. Without GETH on recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { paymentReader } from "../../relay/inclusion/payments.ts";
import { receivedByFrames } from "../../relay/simulation/engines/traces.ts";
import { RlpReader } from "../../shared/ethereum/rlp.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import { GETH, payloadAttributes } from "../devnet/gethChain.ts";
import * as contracts from "../support/contracts.ts";
import { type RecordedGeth, startRecordedGeth } from "../support/recordedGeth.ts";
import { SeededRandom } from "../support/seededRandom.ts";
import { addressOf } from "../support/simulationFixture.ts";
import { accountOf, rawTransaction, type TestAccount } from "../support/txFactory.ts";

const SEED = 20_261_126;
/** All of them on a real geth; fewer are recorded. */
const BLOCKS = GETH !== undefined && process.env.RECORD_GETH !== "1" ? 200 : 12;
const GWEI = 10n ** 9n;

const CALLED = [
	contracts.PAYS_COINBASE,
	contracts.PAYS_COINBASE_AND_REVERTS,
	contracts.PRETENDS_TO_PAY,
	contracts.GIVES_HALF_BACK,
	contracts.DESTROYS_ITSELF,
	contracts.CREATES_A_PAYER,
	contracts.CREATES_A_DESTROYER,
	contracts.calling(addressOf(1)),
	contracts.forwarding(addressOf(1)),
	contracts.REVERTS,
	contracts.LOOPS,
].map((code, i) => ({ address: addressOf(i + 1), code }));
const ALLOC = Object.fromEntries(
	CALLED.map(({ address, code }) => [address.slice(2), { code, balance: "0xf4240" }]),
);

let geth: RecordedGeth;
let accounts: readonly TestAccount[];
const nonces = new Map<string, number>();
const random = new SeededRandom(SEED);

before(async () => {
	geth = await startRecordedGeth("paymentsByList", { amsterdam: true, alloc: ALLOC });
	accounts = geth.accounts.map(({ privateKey }) => accountOf(privateKey));
});
after(() => geth?.stop());

/**
 * Three to seven transactions, in the order of their senders' nonces; sometimes of the coinbase or
 * to it.
 */
function drawn(coinbase: string): readonly string[] {
	return Array.from({ length: 3 + random.below(5) }, () => {
		const by = random.pick(accounts);
		const nonce = nonces.get(by.address) ?? 0;
		nonces.set(by.address, nonce + 1);
		const to = random.oneIn(5)
			? coinbase
			: random.oneIn(6)
				? random.pick(accounts).address
				: random.pick(CALLED).address;
		const value = BigInt(random.below(1_000_000));
		const fees = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: BigInt(random.below(3)) * GWEI };
		const gasLimit = random.oneIn(8) ? 60_000 : 600_000;
		return `0x${rawTransaction({ by, nonce, to, value, gasLimit, ...fees }).toString("hex")}`;
	});
}

/** The balance changes of a block access list in RLP, as nodes that serve it show them. */
function balancesIn(list: string): readonly object[] {
	const reader = new RlpReader(Buffer.from(list.slice(2), "hex"), 0);
	const quantity = (field: string) => `0x${reader.uint(field, 32).toString(16)}`;
	const accountsIn = reader.list("list", () => {
		const end = reader.openList("account");
		const address = reader.fixedHex("address", 20);
		reader.skip("storage changes");
		reader.skip("storage reads");
		const balanceChanges = reader.list("balances", () => {
			const changeEnd = reader.openList("change");
			const change = { index: quantity("index"), value: quantity("value") };
			reader.closeList("change", changeEnd);
			return change;
		});
		reader.skip("nonces");
		reader.skip("code");
		reader.closeList("account", end);
		return { address, balanceChanges };
	});
	assert.equal(reader.fault, null);
	return accountsIn;
}

/** Mines a block, and returns its hash and its access list. */
async function mined(coinbase: string): Promise<{ readonly hash: string; readonly list: readonly object[] }> {
	const txs = drawn(coinbase);
	const head = (await geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const [number, timestamp] = [Number(head.number) + 1, Number(head.timestamp) + 12];
	const attributes = payloadAttributes(number, timestamp, { coinbase });
	const built = (await geth.rpc("testing_buildBlockV1", [head.hash, attributes, txs, "0x"])) as {
		readonly executionPayload: { readonly blockHash: string; readonly blockAccessList: string };
	};
	const { blockHash, blockAccessList } = built.executionPayload;
	assert.equal(await geth.mine({ txs, coinbase }), blockHash);
	return { hash: blockHash, list: balancesIn(blockAccessList) };
}

it(`equals what traces show in ${BLOCKS} random blocks`, async () => {
	let count = 0;
	for (let i = 0; i < BLOCKS; i++) {
		const coinbase = random.oneIn(4) ? random.pick(accounts).address : addressOf(900 + random.below(3));
		const { hash, list } = await mined(coinbase);
		const listing = (call: RpcCall): Promise<RpcAnswer> => {
			if (call.method === "eth_getBlockAccessList") return Promise.resolve({ ok: true, result: list });
			assert.ok(!call.method.startsWith("debug_"), "a node with lists need not trace");
			return geth.node.call(call);
		};
		const byList = paymentReader({ node: { call: listing }, received: receivedByFrames });
		const byTrace = paymentReader({ node: geth.node, received: receivedByFrames });
		const block = await byList.block(hash);
		assert.ok(block?.accessListOf === hash);
		const { accessListOf: _, ...unlisted } = block;
		for (const [at, tx] of block.transactions.entries()) {
			const told = await byList.brought(tx.hash, block);
			assert.deepEqual(told, await byTrace.brought(tx.hash, unlisted), `block ${i}, transaction ${at}`);
			if (told.transfers !== 0n) count += 1;
		}
	}
	assert.ok(count >= BLOCKS, `only ${count} paid`);
});
