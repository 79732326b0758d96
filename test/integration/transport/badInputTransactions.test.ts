// Bad transactions against running relays: broken bytes, whole ones that are not for this chain or
// account, replacements that pay too little, a sender with too many, and gas limits where a chain
// has other ones. Each gets its exact answer, a transaction just within a rule is accepted, and the
// relays are healthy afterwards.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { keccak256 } from "../../../shared/ethereum/signatures.ts";
import { verifiesBlobs } from "../../support/systems.ts";
import { rawTransaction, type TestAccount, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { ENCODING_ROWS } from "./badInput/encoding.ts";
import {
	type BadInputFixture,
	failure,
	hex,
	prepareAccounts,
	refusal,
	startFixture,
	success,
	testCallRows,
	type WireError,
} from "./badInput/fixture.ts";
import { ACCOUNT_RULES, refused, ruleRows, SIZE_RULES, taken } from "./badInput/rules.ts";

const GWEI = 10n ** 9n;
/** Under the base fee, which may fall to it. */
const LOW = GWEI / 10n;
const MAX_PENDING = 64;

const UNDERPRICED = refusal(
	"UNDERPRICED",
	"replacement transaction underpriced: expected 10 % more on every fee",
);
const SENDER_FULL = refusal("SENDER_FULL", "txpool is full: 64 transactions of this sender", {
	scope: "sender",
});

const RULE_ROWS = ruleRows([...ACCOUNT_RULES, ...SIZE_RULES], 1_000);
/** A chain before Osaka: no limit of gas for one transaction, and blocks of 30 million. */
const PRAGUE_ROWS = ruleRows(
	[
		refused(
			"BLOCK_GAS_LIMIT",
			"a gas more than a block has",
			{ gasLimit: 30_000_001 },
			"exceeds block gas limit: gas limit 30000001, block gas limit 30000000",
		),
		refused(
			"BLOCK_GAS_LIMIT",
			"2^64-1 gas",
			{ gasLimit: 2n ** 64n - 1n },
			`exceeds block gas limit: gas limit ${2n ** 64n - 1n}, block gas limit 30000000`,
		),
		taken("a gas more than EIP-7825 allows, where the chain does not have it", { gasLimit: 2 ** 24 + 1 }),
		taken("all gas of a block", { gasLimit: 30_000_000 }),
	],
	3_000,
);

const accounts = Array.from({ length: 8 }, (_, i) => testAccount(2_000 + i));
const [legacy, dynamic, blobs, free, full, twice, hopeless] = accounts as [
	...[TestAccount, TestAccount, TestAccount, TestAccount, TestAccount, TestAccount, TestAccount],
];

let fixture: BadInputFixture;
let prague: BadInputFixture;
before(async () => {
	// With the usual limit a blob transaction that is too large could not even be sent.
	const env = { MAX_BODY_BYTES: String(4 * 1024 * 1024), ACCOUNT_TIMEOUT_MS: "20000" };
	fixture = await startFixture({ env });
	const users = accounts.map((account) => ({ account, standing: {} }));
	await prepareAccounts(fixture.system.chain, [...RULE_ROWS, ...users]);
	prague = await startFixture({ chain: { hardfork: "prague", gasLimit: 30_000_000 } });
	await prepareAccounts(prague.system.chain, PRAGUE_ROWS);
});
after(async () => {
	await fixture.stop();
	await prague.stop();
});

/** One step of a table: a transaction, and the error it gets; null where it is taken. */
type Step = readonly [name: string, options: TxOptions, error: WireError | null];

/** Sends the steps one after another, all with the nonce 0 of `by`. */
async function replaceInTurn(by: TestAccount, steps: readonly Step[]): Promise<void> {
	for (const [name, options, error] of steps) {
		const raw = rawTransaction({ by, nonce: 0, ...options });
		const body = { jsonrpc: "2.0", id: name, method: "eth_sendRawTransaction", params: [hex(raw)] };
		const answer = JSON.parse((await fixture.wire.send({ body: JSON.stringify(body) })).body);
		if (error !== null) assert.deepEqual(answer, { jsonrpc: "2.0", id: name, error });
		else if (options.type === 3)
			assert.match(String(answer.result), /^0x[0-9a-f]{64}$/, `${name}: ${JSON.stringify(answer.error)}`);
		else assert.deepEqual(answer, success(name, hex(keccak256(raw))));
	}
	fixture.checkLog();
}

/** Fees of type 2 in wei; `value` keeps transactions of equal fees apart. */
const fees = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint, value = 1): TxOptions => ({
	maxFeePerGas,
	maxPriorityFeePerGas,
	value,
});

test("a replacement needs 10 % more on both fees", () =>
	replaceInTurn(dynamic, [
		["the first", fees(100n * GWEI, 10n * GWEI), null],
		["the same fees", fees(100n * GWEI, 10n * GWEI, 2), UNDERPRICED],
		["lower fees", fees(50n * GWEI, 5n * GWEI), UNDERPRICED],
		["more for one fee alone", fees(200n * GWEI, 10n * GWEI), UNDERPRICED],
		["more for the other alone", fees(100n * GWEI, 20n * GWEI), UNDERPRICED],
		["a wei too little on the cap", fees(110n * GWEI - 1n, 11n * GWEI), UNDERPRICED],
		["a wei too little on the priority fee", fees(110n * GWEI, 11n * GWEI - 1n), UNDERPRICED],
		["10 % on both", fees(110n * GWEI, 11n * GWEI), null],
		["the same bytes again", fees(110n * GWEI, 11n * GWEI), null],
		["what was replaced, again", fees(100n * GWEI, 10n * GWEI), null],
		["another one that would have replaced the first", fees(115n * GWEI, 12n * GWEI), UNDERPRICED],
		["11 % on both", fees(123n * GWEI, 13n * GWEI), null],
	]));

test("a gas price counts as both fees, in both directions", () =>
	replaceInTurn(legacy, [
		["the first", { type: 0, gasPrice: 10n * GWEI }, null],
		["a wei too little", { type: 0, gasPrice: 11n * GWEI - 1n }, UNDERPRICED],
		["a wei too little, of another type", { type: 1, gasPrice: 11n * GWEI - 1n }, UNDERPRICED],
		["a priority fee below the gas price", fees(50n * GWEI, GWEI), UNDERPRICED],
		["10 % more", { type: 1, gasPrice: 11n * GWEI }, null],
		["both fees above it", fees(20n * GWEI, 12_100_000_000n), null],
		["a gas price above one of them", { type: 0, gasPrice: 15n * GWEI }, UNDERPRICED],
		["a gas price above both", { type: 0, gasPrice: 22n * GWEI }, null],
	]));

test("blobs need 10 % more on the blob fee too", async () => {
	const blob = (percent: bigint, maxFeePerBlobGas: bigint): TxOptions => ({
		...{ type: 3, ...fees((LOW * percent) / 100n, (LOW * percent) / 100n), maxFeePerBlobGas },
	});
	const first = blob(100n, 100n);
	await verifiesBlobs(fixture.system.client, hex(rawTransaction({ by: blobs, nonce: 0, ...first })));
	await replaceInTurn(blobs, [
		["the first", first, null],
		["more for gas alone", blob(200n, 100n), UNDERPRICED],
		["a wei too little", blob(110n, 109n), UNDERPRICED],
		["more for blobs alone", blob(109n, 200n), UNDERPRICED],
		["10 % more on all", blob(110n, 110n), null],
	]);
});

test("a transaction without a priority fee is replaced by one with a wei", () =>
	replaceInTurn(free, [
		["the first", fees(LOW, 0n), null],
		["nothing again", fees(LOW, 0n, 2), UNDERPRICED],
		["a higher cap and no priority fee", fees(2n * LOW, 0n, 3), UNDERPRICED],
		["a wei of it", fees(2n * LOW, 1n), null],
	]));

test("a fee cap that the base fee can't fall to within the life of 25 blocks is refused", async () => {
	const { chain } = fixture.system;
	const { baseFeePerGas } = (await chain.rpc("eth_getBlockByNumber", ["pending", false])) as Record<
		string,
		string
	>;
	const base = BigInt(baseFeePerGas ?? 0);
	const least = (base * 7n ** 25n + 8n ** 25n - 1n) / 8n ** 25n;
	const send = async (options: TxOptions): Promise<{ result?: string; error?: WireError }> => {
		const params = [hex(rawTransaction({ by: hopeless, ...options }))];
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params });
		return JSON.parse((await fixture.wire.send({ body })).body);
	};
	for (const [options, type] of [
		[fees(least - 1n, 0n), 2],
		[fees(0n, 0n), 2],
		[{ type: 0, gasPrice: least - 1n }, 0],
		[{ type: 3, ...fees(least - 1n, 0n) }, 3],
	] as const) {
		const { error } = await send(options);
		assert.match(error?.message ?? "", /^max fee per gas less than block base fee: /, `type ${type}`);
		assert.deepEqual([error?.code, error?.data], [-32000, { reason: "FEE_CAP_TOO_LOW" }]);
	}
	assert.match((await send(fees(least, 0n))).result ?? "", /^0x/);
	fixture.checkLog();
});

test("a sender has 64 transactions at most, and may replace them", async () => {
	const waiting: TxOptions = { by: full, maxFeePerGas: LOW, maxPriorityFeePerGas: 100 };
	const call = (id: number, options: TxOptions) => ({
		...{ jsonrpc: "2.0", id, method: "eth_sendRawTransaction" },
		params: [hex(rawTransaction({ ...waiting, ...options }))],
	});
	const nonces = Array.from({ length: MAX_PENDING + 1 }, (_, nonce) => nonce);
	const body = JSON.stringify(nonces.map((nonce) => call(nonce, { nonce })));
	const answers = JSON.parse((await fixture.wire.send({ body })).body) as { result?: unknown }[];
	assert.deepEqual(answers.at(-1), { jsonrpc: "2.0", id: MAX_PENDING, error: SENDER_FULL });
	assert.equal(answers.filter(({ result }) => typeof result === "string").length, MAX_PENDING);

	const more = JSON.stringify([
		call(1, { nonce: 64, maxFeePerGas: 10n ** 12n }),
		call(2, { nonce: 63, maxFeePerGas: 2n * LOW, maxPriorityFeePerGas: 109 }),
		call(3, { nonce: 63, maxFeePerGas: 2n * LOW, maxPriorityFeePerGas: 110 }),
		call(4, { nonce: 0 }),
		call(5, { nonce: 65 }),
	]);
	const [over, cheap, better, again, high] = JSON.parse((await fixture.wire.send({ body: more })).body);
	assert.deepEqual(over, { jsonrpc: "2.0", id: 1, error: SENDER_FULL });
	assert.deepEqual(cheap, { jsonrpc: "2.0", id: 2, error: UNDERPRICED });
	assert.equal(typeof better.result, "string", JSON.stringify(better));
	assert.equal(typeof again.result, "string", JSON.stringify(again));
	const tooHigh = "nonce too high: next nonce 0, tx nonce 65";
	assert.deepEqual(high, failure(5, -32000, tooHigh, { reason: "NONCE_TOO_HIGH" }));
	const pending = ["eth_getTransactionCount", [full.address, "pending"]] as const;
	assert.equal(await fixture.system.client.call(...pending), "0x40");
	fixture.checkLog();
});

test("of two with one nonce in one batch the second one replaces, or is refused", async () => {
	const call = (id: number, options: TxOptions) => ({
		...{ jsonrpc: "2.0", id, method: "eth_sendRawTransaction" },
		params: [hex(rawTransaction({ by: twice, nonce: 0, ...options }))],
	});
	const fee = (percent: bigint) => fees((LOW * percent) / 100n, (LOW * percent) / 100n);
	const body = JSON.stringify([
		call(1, fee(100n)),
		call(2, fee(109n)),
		call(3, fee(110n)),
		call(4, fee(110n)),
	]);
	const [first, second, third, fourth] = JSON.parse((await fixture.wire.send({ body })).body);
	assert.equal(typeof first.result, "string");
	assert.deepEqual(second, { jsonrpc: "2.0", id: 2, error: UNDERPRICED });
	assert.equal(typeof third.result, "string");
	assert.equal(fourth.result, third.result);
	fixture.checkLog();
});

testCallRows(ENCODING_ROWS, () => fixture);
testCallRows(
	RULE_ROWS.map(({ row }) => row),
	() => fixture,
	(hash) => fixture.archived(String(hash)),
);
testCallRows(
	PRAGUE_ROWS.map(({ row }) => row),
	() => prague,
);

test("both relays still work after all this", async () => {
	await fixture.stillWell();
	await prague.stillWell();
});
