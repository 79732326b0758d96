// Contract of eth_callMany on go-ethereum, case by case: promises of the interface that generated
// cases do not reach, on a node without the debug namespace. Without GETH on recorded answers: see
// recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { COINBASE, type GethFixture, type GethHead, startGethFixture } from "../support/callManyFixture.ts";
import { PLACES, word } from "../support/contracts.ts";
import { ETHER, GWEI } from "../support/simulationFixture.ts";
import { rawTransaction, type TestAccount, type TxOptions, testAccount } from "../support/txFactory.ts";

const hex = (value: number | bigint) => `0x${value.toString(16)}`;
const raw = (options: TxOptions) => `0x${rawTransaction(options).toString("hex")}`;
const RANDAO = `0x${"7a".repeat(32)}`;
const OWN = 3;
const POOR = testAccount(89);
const CONTRACT = testAccount(88);
/** The maximum cost of POOR's one transaction. */
const COST = 100_000n * 100n * GWEI + 1n;
const LIMIT_ERROR = /^out of gas: the node runs 2000000 at most/;

/** Words of PLACES.surroundings. */
function seenBy(value: string): Record<string, bigint> {
	const names = [
		"coinbase",
		"timestamp",
		"number",
		"baseFee",
		"gasLimit",
		"gasPrice",
		"coinbaseWei",
		"originWei",
	];
	const words = value.match(/.{64}/g) ?? [];
	return Object.fromEntries(names.map((name, i) => [name, BigInt(`0x${words[i]}`)]));
}

for (const amsterdam of [false, true]) {
	describe(amsterdam ? "on geth with Amsterdam" : "on geth with mainnet's forks", () => {
		let fixture: GethFixture;
		let head: GethHead;
		before(async () => {
			fixture = await startGethFixture(amsterdam ? "callManyAmsterdam" : "callManyRules", {
				amsterdam,
				alloc: {
					[POOR.address]: { balance: hex(COST) },
					[CONTRACT.address]: { balance: hex(ETHER), code: "0x00" },
				},
			});
			await fixture.geth.mine();
			const txs = Array.from({ length: OWN }, (_, i) =>
				raw({ by: rich(i), to: PLACES.counter, nonce: 0, gasLimit: 500_000 }),
			);
			await fixture.geth.mine({ txs, coinbase: COINBASE, prevRandao: RANDAO });
			head = await fixture.head();
		});
		after(() => fixture.stop());

		const rich = (index: number): TestAccount => {
			const account = fixture.rich[index];
			assert.ok(account !== undefined);
			return account;
		};
		const askSigned = async (txs: readonly string[], fields: object = {}) => {
			const params = { txs, blockNumber: hex(head.number + 1), stateBlockNumber: "latest", ...fields };
			const [inner = []] = await fixture.ask([params]);
			return inner;
		};
		const askCalls = async (transactions: readonly object[], context: object, override?: object) => {
			const blockOverride = override === undefined ? {} : { blockOverride: override };
			const [inner = []] = await fixture.ask([[{ transactions, ...blockOverride }], context]);
			return inner;
		};

		test("free calls see the block as it was, the base fee too, at every index, one or several", async () => {
			const surroundings = { to: PLACES.surroundings, from: rich(5).address };
			const counted = [{ to: PLACES.randao }, surroundings, { to: PLACES.counter }, { to: PLACES.counter }];
			for (const transactionIndex of [0, 1, 2, OWN, -1, undefined]) {
				const context = {
					blockNumber: hex(head.number),
					...(transactionIndex === undefined ? {} : { transactionIndex }),
				};
				const count = transactionIndex === undefined || transactionIndex < 0 ? OWN : transactionIndex;
				const [randao, seen, first, second] = await askCalls(counted, context);
				assert.deepEqual(
					[randao?.value, first?.value, second?.value],
					[RANDAO.slice(2), word(count + 1), word(count + 2)],
				);
				const [alone] = await askCalls([surroundings], context);
				for (const entry of [seen, alone]) {
					const { coinbaseWei: _, ...words } = seenBy(entry?.value ?? "");
					assert.deepEqual(words, {
						coinbase: BigInt(COINBASE),
						timestamp: BigInt(head.timestamp),
						number: BigInt(head.number),
						baseFee: head.baseFee,
						gasLimit: 30_000_000n,
						gasPrice: 0n,
						originWei: 10_000n * ETHER,
					});
				}
			}
		});

		test("overrides: one call behind the block may have any, several those that a block behind may have", async () => {
			const context = { blockNumber: hex(head.number) };
			const call = { to: PLACES.surroundings };
			const coinbase = testAccount(7).address;
			const all = { blockNumber: hex(7), timestamp: 5, coinbase, gasLimit: hex(9_000_000), baseFee: hex(77) };
			const [one] = await askCalls([call], context, all);
			const { coinbaseWei: _, originWei: __, gasPrice: ___, ...words } = seenBy(one?.value ?? "");
			assert.deepEqual(words, {
				coinbase: BigInt(coinbase),
				timestamp: 5n,
				number: 7n,
				baseFee: 77n,
				gasLimit: 9_000_000n,
			});
			const [number] = await askCalls([call], context, { blockNumber: hex(head.number + 1) });
			const seen = seenBy(number?.value ?? "");
			assert.deepEqual([seen.number, seen.timestamp], [BigInt(head.number + 1), BigInt(head.timestamp)]);
			const later = { blockNumber: hex(head.number + 40), timestamp: head.timestamp + 41 };
			const two = await askCalls([call, { to: PLACES.counter }], context, later);
			const behind = seenBy(two[0]?.value ?? "");
			assert.deepEqual(
				[behind.number, behind.timestamp],
				[BigInt(head.number + 40), BigInt(head.timestamp + 41)],
			);
			assert.equal(two[1]?.value, word(OWN + 1));
			const onlyNumber = await askCalls([call, call], context, { blockNumber: hex(head.number + 1) });
			for (const { value } of onlyNumber) {
				const { number, timestamp } = seenBy(value);
				assert.deepEqual([number, timestamp], [BigInt(head.number + 1), BigInt(head.timestamp + 1)]);
			}
		});

		test("each further bundle is one block later, on the state of those before", async () => {
			const transactions = [{ to: PLACES.counter }, { to: PLACES.surroundings }];
			const bundles = [{ transactions }, { transactions: [] }, { transactions }];
			for (const transactionIndex of [1, -1]) {
				const count = transactionIndex < 0 ? OWN : transactionIndex;
				const answer = await fixture.ask([bundles, { blockNumber: "latest", transactionIndex }]);
				assert.deepEqual(
					answer.map((inner) => inner.length),
					[2, 0, 2],
				);
				const [first, , third] = answer;
				assert.deepEqual([first?.[0]?.value, third?.[0]?.value], [word(count + 1), word(count + 2)]);
				const seen = seenBy(third?.[1]?.value ?? "");
				const expected = [head.number + 2, head.timestamp + 24].map(BigInt);
				assert.deepEqual([seen.number, seen.timestamp, seen.baseFee], [...expected, head.baseFee]);
			}
		});

		test("a failing call has its data and a reason, and stops nothing", async () => {
			const from = testAccount(77).address;
			const calls = [
				{ to: PLACES.revert, data: `0x${"ab".repeat(50)}` },
				{ to: PLACES.invalid, gas: hex(100_000) },
				{ to: PLACES.loop, gas: hex(50_000) },
				{ to: PLACES.echo, gas: hex(4_000) },
				{ to: PLACES.echo, from, value: hex(1) },
				{ to: PLACES.echo, from, gasPrice: hex(head.baseFee), gas: hex(50_000) },
				{ to: PLACES.echo, data: "0x1234" },
			];
			const expected = [
				{ value: "ab".repeat(50), error: "execution reverted: custom error 0xabababab" },
				{ value: "", error: "invalid opcode" },
				{ value: "", error: "out of gas" },
				{ value: "", error: "out of gas: intrinsic gas too low" },
				{ value: "", error: "insufficient funds for gas * price + value" },
				{ value: "", error: "insufficient funds for gas * price + value" },
				{ value: "1234" },
			];
			for (const transactionIndex of [0, 2, -1]) {
				const context = { blockNumber: "latest", transactionIndex };
				assert.deepEqual(await askCalls(calls, context), expected);
			}
			for (const [i, call] of calls.entries()) {
				assert.deepEqual(await askCalls([call], { blockNumber: "latest" }), [expected[i]]);
			}
			const long = {
				from: rich(0).address,
				to: PLACES.revert,
				gasPrice: hex(head.baseFee),
				gas: hex(1_000_000),
			};
			for (const transactionIndex of [0, -1]) {
				const context = { blockNumber: "latest", transactionIndex };
				const [entry] = await askCalls([{ ...long, data: `0x${"ab".repeat(5_000)}` }], context);
				assert.equal(entry?.value, "ab".repeat(5_000));
			}
		});

		test("calls that may use more gas than the block has are run all the same", async () => {
			const calls = Array(4).fill({ to: PLACES.counter, gas: hex(16_000_000) });
			for (const transactionIndex of [1, -1]) {
				const count = transactionIndex < 0 ? OWN : transactionIndex;
				const answer = await askCalls(calls, { blockNumber: "latest", transactionIndex });
				assert.deepEqual(
					answer,
					[1, 2, 3, 4].map((i) => ({ value: word(count + i) })),
				);
			}
		});

		test("signed transactions up to 30 blocks ahead, whatever a slot is", async () => {
			const txs = [raw({ by: rich(0), to: PLACES.surroundings, nonce: 1, gasLimit: 200_000 })];
			for (const [above, slot] of [
				[1, 12],
				[2, 12],
				[3, 2],
				[30, 12],
				[30, 1],
			] as const) {
				const params = { txs, blockNumber: hex(head.number + above), stateBlockNumber: "latest" };
				const [inner] = await fixture.askWith(slot, [params]);
				const seen = seenBy(inner?.[0]?.value ?? "");
				const told = [seen.number, seen.timestamp, seen.baseFee, seen.coinbase];
				const expected = [head.number + above, head.timestamp + above * slot].map(BigInt);
				assert.deepEqual(told, [...expected, head.nextBaseFee, BigInt(COINBASE)]);
			}
			const blockNumber = hex(head.number + 5);
			const [exact] = await askSigned(txs, { blockNumber, timestamp: head.timestamp + 5 });
			assert.equal(seenBy(exact?.value ?? "").timestamp, BigInt(head.timestamp + 5));
			await assert.rejects(askSigned(txs, { blockNumber, timestamp: head.timestamp + 4 }), {
				kind: "invalidParams",
				message: `invalid params: bundle.timestamp: expected ${head.timestamp + 5} at least`,
			});
		});

		test("a state that is not the newest", async () => {
			const txs = [raw({ by: rich(0), to: PLACES.counter, nonce: 0, gasLimit: 500_000 })];
			const fields = { blockNumber: hex(head.number), stateBlockNumber: hex(head.number - 1) };
			assert.deepEqual(await askSigned(txs, fields), [{ value: word(1) }]);
		});

		test("what can't run is left out, and what is behind it runs", async () => {
			const at = (options: TxOptions) => raw({ to: PLACES.counter, gasLimit: 500_000, ...options });
			const answer = await askSigned([
				at({ by: rich(4), nonce: 1 }),
				at({ by: rich(4), nonce: 0 }),
				at({ by: rich(4), nonce: 0 }),
				at({ by: rich(5), nonce: 0, chainId: 5n }),
				at({ by: rich(5), nonce: 0, maxFeePerGas: head.nextBaseFee - 1n, maxPriorityFeePerGas: 0n }),
				at({ by: rich(5), nonce: 0, value: 20_000n * ETHER }),
				at({ by: rich(5), nonce: 0, gasLimit: 30_000_001 }),
				at({ by: CONTRACT, nonce: 0 }),
				at({ by: rich(5), nonce: 0, to: null, data: "0x602a5f5260205ff3" }),
			]);
			assert.deepEqual(
				answer.map(({ value, error }) => error?.split(/: (?=max fee|gas limit|address)/)[0] ?? value),
				[
					"nonce too high: next nonce 0, tx nonce 1",
					word(OWN + 1),
					"nonce too low: next nonce 1, tx nonce 0",
					"invalid chain id for signer: have 5 want 31337",
					"max fee per gas less than block base fee",
					"insufficient funds for gas * price + value",
					"exceeds block gas limit",
					"sender not an eoa",
					word(42),
				],
			);
		});

		test("what does not fit into the block's gas can't run, and what is behind it can", async () => {
			const burn = (index: number) =>
				raw({ by: rich(index), to: PLACES.loop, gasLimit: 12_000_000, nonce: 0 });
			const txs = [
				burn(4),
				burn(5),
				burn(6),
				raw({ by: rich(7), to: PLACES.counter, gasLimit: 6_000_000, nonce: 0 }),
			];
			assert.deepEqual(await askSigned(txs), [
				{ value: "", error: "out of gas" },
				{ value: "", error: "out of gas" },
				{ value: "", error: "gas limit reached: gas limit 12000000, left in the block 6000000" },
				{ value: word(OWN + 1) },
			]);
		});

		test("what must be there is the most that it can cost, though it costs less", async () => {
			const tx = { by: POOR, nonce: 0, gasLimit: 100_000, maxFeePerGas: 100n * GWEI, to: PLACES.echo };
			assert.deepEqual(await askSigned([raw({ ...tx, value: 1n })]), [{ value: "" }]);
			const amounts = `balance ${COST}, tx cost ${COST + 1n}, overshot 1`;
			assert.deepEqual(await askSigned([raw({ ...tx, value: 2n })]), [
				{ value: "", error: `insufficient funds for gas * price + value: ${amounts}` },
			]);
		});

		test("delegated accounts: their own authorizations and creations take nonces", async () => {
			const by = rich(6);
			const authorizations = [{ by, address: PLACES.factory, nonce: 1n }];
			const txs = [
				raw({ by, type: 4, to: testAccount(77).address, authorizations, nonce: 0, gasLimit: 900_000 }),
				raw({ by: rich(7), to: by.address, data: "0x00", nonce: 0, gasLimit: 900_000 }),
				raw({ by, to: PLACES.counter, nonce: 2, gasLimit: 500_000 }),
				raw({ by, to: PLACES.counter, nonce: 3, gasLimit: 500_000 }),
			];
			const [, created, low, counted] = await askSigned(txs);
			assert.match(created?.value ?? "", /^0{24}[0-9a-f]{40}$/);
			assert.match(low?.error ?? "", /^nonce too low/);
			assert.deepEqual(counted, { value: word(OWN + 1) });
		});

		test("a block that the node does not have is said so, as is an index beyond it", async () => {
			await assert.rejects(askCalls([], { blockNumber: hex(1_000) }), { kind: "invalidParams" });
			await assert.rejects(askCalls([], { blockNumber: "latest", transactionIndex: OWN + 1 }), {
				message: `invalid params: context.transactionIndex: expected a number of ${OWN} at most, the number of transactions in the block`,
			});
		});
	});
}

describe("on a geth that gives 2,000,000 gas to a question", () => {
	let fixture: GethFixture;
	let head: GethHead;
	before(async () => {
		fixture = await startGethFixture("callManyCapped", { args: ["--rpc.gascap", "2000000"] });
		const [by] = fixture.rich;
		const burn = (nonce: number) => raw({ ...(by && { by }), to: PLACES.loop, gasLimit: 1_200_000, nonce });
		await fixture.geth.mine({ txs: [burn(0), burn(1)], coinbase: COINBASE });
		head = await fixture.head();
	});
	after(() => fixture.stop());

	test("a block beyond that is never replayed in part; one call behind it sees the base fee", async () => {
		const ask = (count: number, transactionIndex: number) =>
			fixture.ask([
				[{ transactions: Array(count).fill({ to: PLACES.surroundings, from: fixture.rich[3]?.address }) }],
				{ blockNumber: "latest", transactionIndex },
			]);
		const [[alone] = []] = await ask(1, -1);
		const seen = seenBy(alone?.value ?? "");
		assert.deepEqual([seen.baseFee, seen.gasPrice], [head.baseFee, head.baseFee]);
		assert.deepEqual([seen.number, seen.originWei], [BigInt(head.number), 10_000n * ETHER]);
		await assert.rejects(ask(2, -1), { message: `node cannot replay block ${head.number}` });
		const [two] = await ask(2, 1);
		assert.equal(two?.length, 2);
	});

	test("transactions that fail for want of the node's gas report that", async () => {
		const burn = (index: number, nonce: number) => {
			const by = fixture.rich[index];
			return raw({ ...(by && { by }), to: PLACES.loop, gasLimit: 1_500_000, nonce });
		};
		const params = {
			txs: [burn(1, 0), burn(2, 0)],
			blockNumber: hex(head.number + 1),
			stateBlockNumber: "latest",
		};
		const [inner] = await fixture.ask([params]);
		assert.equal(inner?.[0]?.error, "out of gas");
		assert.match(inner?.[1]?.error ?? "", LIMIT_ERROR);
	});
});
