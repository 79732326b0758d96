// The refunds of an address, as JSON and CSV, the totals, and the operator's sums: what they say is
// what the blocks of the chain hold, over random reorganisations, restarts and long after; and who
// may ask.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ethers, Wallet } from "ethers";
import fc from "fast-check";
import { verify } from "../../../docs/examples/verify.ts";
import { WATCH_BLOCKS } from "../../../relay/domain/transaction.ts";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { AuctionFixture, DEV_COINBASE, startAuction, type Target } from "../../support/bidder.ts";
import { prepareBidding } from "../../support/biddingFixture.ts";
import { startBoostFixture } from "../../support/boostFixture.ts";
import { REVERTS } from "../../support/contracts.ts";
import { readCsv } from "../../support/csv.ts";
import { snippet } from "../../support/documents.ts";
import { sized } from "../../support/length.ts";
import { receiptOf } from "../../support/receipts.ts";
import {
	askRefunds,
	askSums,
	askTotals,
	type Refunds,
	type Sum,
	type Totals,
} from "../../support/refunds.ts";
import type { Signed } from "../../support/relayFixture.ts";
import { type TestAccount, testAccount } from "../../support/txFactory.ts";
import { READ_SIGNATURE, readHeader } from "../../support/typedSignatures.ts";
import { until } from "../../support/until.ts";

/** Accounts that get refunds of others' transactions. */
const RECIPIENTS = [testAccount(7_101), testAccount(7_102)];
const COLUMNS = ["block", "blockHash", "hash", "sender", "recipient", "wei", "payer", "owed", "paid"];

let fixture: AuctionFixture;
let url: string;
before(async () => {
	fixture = await startAuction({ proxied: true });
	({ url } = fixture.system.client);
});
after(() => fixture.system.stop());

/**
 * Asks the server at `base` for an account's refunds as its owner does; `query` is more of the
 * query.
 */
function get(
	account: TestAccount,
	query = "",
	{ accept = "application/json", base = url } = {},
): Promise<Response> {
	return askRefunds(base, account, query, accept);
}

async function refundsOf(account: TestAccount, query = ""): Promise<Refunds> {
	const answer = await get(account, query);
	assert.equal(answer.status, 200);
	return (await answer.json()) as Refunds;
}

const totals = (base = url) => askTotals(base);

/** Every target that was submitted, by hash, with the backrun behind it. */
const submitted = new Map<
	string,
	{ readonly target: Target; readonly backrun: Signed; readonly to: string }
>();
/** Those that were in a block that has left the chain. */
const exposed = new Set<string>();

/** A target with a backrun that pays `value` wei behind it. */
async function bidOn(path = "/fast", value = 10n ** 16n): Promise<Target> {
	const target = await fixture.target(path);
	const { backrun } = await fixture.offerOut(target, value);
	const to = path.split("refundRecipient=")[1] ?? target.user.address;
	submitted.set(target.hash, { target, backrun, to });
	return target;
}

/** The same in a block, with its refund. */
async function refunded(path?: string): Promise<Target> {
	const target = await bidOn(path);
	await fixture.system.nextBlock();
	await fixture.event(target, "refunded");
	return target;
}

/** So many blocks that what was mined is final; few enough at a time for the relay to read each. */
async function becomeFinal(): Promise<void> {
	for (let left = WATCH_BLOCKS; left > 0; left -= 32) {
		await fixture.system.chain.rpc("anvil_mine", [`0x${Math.min(32, left).toString(16)}`, "0xc"]);
		await fixture.seesHead(await fixture.head());
	}
}

/**
 * The payments to each recipient in the blocks of the chain, read from the chain alone: for each
 * backrun right behind its target, the transfer from the coinbase behind it.
 */
async function paidByBlocks(): Promise<
	ReadonlyMap<string, { readonly block: number; readonly wei: bigint }[]>
> {
	const head = await fixture.head();
	const blocks = await Promise.all(Array.from({ length: head + 1 }, (_, number) => fixture.block(number)));
	const paid = new Map<string, { block: number; wei: bigint }[]>();
	for (const [block, { transactions }] of blocks.entries()) {
		for (const [at, { hash }] of transactions.entries()) {
			const bid = submitted.get(hash);
			if (bid === undefined || transactions[at + 1]?.hash !== bid.backrun.hash) continue;
			const payment = transactions.find(
				({ from, to }, i) => i > at + 1 && from === DEV_COINBASE && to === bid.to,
			);
			if (payment !== undefined)
				paid.set(bid.to, [...(paid.get(bid.to) ?? []), { block, wei: payment.value }]);
		}
	}
	return paid;
}

describe("the refunds of an address", () => {
	it("are returned to its owner, as JSON and as CSV: those paid to it, and those of its transactions", async () => {
		const recipient = testAccount(7_001);
		const target = await refunded(`/fast?refundRecipient=${recipient.address}`);
		const event = await fixture.event(target, "refunded");
		const { hash: blockHash } = await fixture.block(Number(event.block));
		const row = {
			...{ block: event.block, blockHash, hash: target.hash, sender: target.user.address },
			...{ recipient: recipient.address, wei: event.paid, payer: DEV_COINBASE },
			...{ owed: event.owed, paid: event.paid },
		};
		const told = await refundsOf(recipient);
		const { since, ...rest } = told;
		assert.deepEqual(rest, {
			...{ address: recipient.address, owed: event.owed, paid: event.paid },
			...{ refunds: [row], next: null },
		});
		assert.ok(Date.parse(since) <= Date.now());
		assert.equal(await fixture.balance(recipient.address), BigInt(told.paid));
		assert.deepEqual((await refundsOf(target.user.account)).refunds, [row], "its sender sees it, too");
		for (const [query, accept] of [
			["&format=csv", "application/json"],
			["", "text/csv"],
		] as const) {
			const csv = await get(recipient, query, { accept });
			assert.equal(csv.headers.get("content-type"), "text/csv; charset=utf-8; header=present");
			assert.equal(
				csv.headers.get("content-disposition"),
				`attachment; filename="refunds-${recipient.address}.csv"`,
			);
			assert.equal(csv.headers.get("cache-control"), "no-store");
			const [head, ...lines] = readCsv(await csv.text());
			assert.deepEqual(head, COLUMNS);
			assert.deepEqual(lines, [Object.values(row).map(String)]);
		}
		await fixture.passBlock();
		const later = `&fromBlock=${Number(event.block) + 1}`;
		assert.deepEqual((await refundsOf(recipient, later)).refunds, []);
		assert.deepEqual((await refundsOf(recipient, `&toBlock=${event.block}`)).refunds, [row]);
	});

	it("are asked for as docs/wallets.md has it", async () => {
		const target = await refunded();
		const wallet = new Wallet(target.user.account.keyHex);
		const run = new Function(
			"ethers",
			"wallet",
			"base",
			`return (async () => {${snippetWithoutImports()}})()`,
		);
		const told = (await run(ethers, wallet, url)) as Refunds;
		assert.deepEqual(
			told.refunds.map(({ hash }) => hash),
			[target.hash],
		);
	});

	it("are returned to nobody else, and each refusal says what was expected", async () => {
		const target = await refunded();
		const { account } = target.user;
		const other = testAccount(7_002);
		const path = `/refunds/${account.address}`;
		const own = await readHeader(account.keyHex, { scope: "refunds" });
		const cases: readonly (readonly [string, string | null, number, string])[] = [
			[
				path,
				null,
				401,
				"X-Leeward-Signature: expected address=0x…, relay=<name>, until=<seconds since 1970>",
			],
			[path, "0x12", 401, "X-Leeward-Signature: expected address="],
			[
				path,
				await readHeader(other.keyHex, { scope: "refunds" }),
				403,
				`expected a signature by ${account.address}; this one is by ${other.address}`,
			],
			[
				`/refunds/${other.address}`,
				own,
				403,
				`expected a signature by ${other.address}; this one is by ${account.address}`,
			],
			[
				path,
				await readHeader(account.keyHex),
				401,
				`X-Leeward-Signature: expected a signature by ${account.address} over Read(relay "127.0.0.1", scope "refunds"`,
			],
			["/refunds/0x12", own, 400, "expected an address of 20 bytes as 0x hex"],
			[`${path}?format=xml`, own, 400, "format: expected json or csv"],
			[`${path}?fromBlock=0x10`, own, 400, "fromBlock, toBlock: expected a block's number in decimal digits"],
			[`${path}?fromBlock=2&toBlock=1`, own, 400, "fromBlock: expected toBlock or an earlier block"],
		];
		for (const [asked, header, status, error] of cases) {
			const headers: Record<string, string> = header === null ? {} : { [READ_SIGNATURE]: header };
			const answer = await fetch(`${url}${asked}`, { headers });
			const body = (await answer.json()) as { error: string };
			assert.equal(answer.status, status, `${asked}: ${body.error}`);
			assert.ok(body.error.startsWith(error), `${body.error} begins with ${error}`);
		}
		// A body's signature covers no time, and no relay.
		const text = createBodySigner(account.keyHex).sign(`refunds of ${account.address} until 9999999999`);
		const replayed = { headers: { "x-flashbots-signature": text } };
		assert.equal((await fetch(`${url}${path}?until=9999999999`, replayed)).status, 401);
		const headers = { [READ_SIGNATURE]: own };
		const capitals = `/refunds/0x${account.address.slice(2).toUpperCase()}`;
		assert.equal((await fetch(`${url}${capitals}`, { headers })).status, 200);
	});

	it("that is pending is in no answer, and in no count, until it is mined", async () => {
		const actor = await fixture.actor();
		await fixture.submit("/fast", actor.sign({ nonce: 1 }));
		const before = await totals();
		const target = await bidOn();
		assert.deepEqual((await refundsOf(target.user.account)).refunds, []);
		await fixture.system.nextBlock();
		const { paid } = await fixture.event(target, "refunded");
		const sum = String(BigInt(before.refundedWei) + BigInt(String(paid)));
		const now = await until("it is counted", async () => {
			const all = await totals();
			return all.refundedWei === sum && all;
		});
		assert.equal(now.transactions, before.transactions + 1, "a waiting transaction is not counted");
	});
});

/** The block of the documents, with what it imports given. */
function snippetWithoutImports(): string {
	return snippet("docs/wallets.md", "const { chainId, name } =").replace(
		"console.log(await answer.json());",
		"return answer.json();",
	);
}

/** Two targets of new users, with backruns; the second one's refund goes to somebody else. */
async function twoBids(value: bigint, which: number): Promise<void> {
	for (const path of [
		"/fast",
		`/noreverts?referrer=%3Dshop%2C&refundRecipient=${RECIPIENTS[which]?.address}`,
	])
		await bidOn(path, value);
	await fixture.system.nextBlock();
}

/**
 * The last blocks go; in the new ones is what the old ones had, with the refunds or without them,
 * or nothing.
 */
async function reorganise(depth: number, again: "nothing" | "unpaid" | "whole"): Promise<void> {
	const { chain, node } = fixture.system;
	const head = await fixture.head();
	const pairs: [string, number][] = [];
	for (let number = head - depth + 1; number <= head; number += 1) {
		for (const { hash, from } of (await fixture.block(number)).transactions) {
			if (submitted.has(hash)) exposed.add(hash);
			if (again === "nothing" || (again === "unpaid" && from === DEV_COINBASE)) continue;
			const raw = await chain.rpc("eth_getRawTransactionByHash", [hash]);
			pairs.push([String(raw), number - head + depth - 1]);
		}
	}
	const release = node?.hold();
	await chain.rpc("anvil_reorg", [depth, pairs]).finally(release);
	await fixture.passBlock();
}

/**
 * Waits until the relay reports for each address the refunds in the chain's blocks, and in the
 * totals and in the operator's list their sum.
 */
async function agrees(): Promise<void> {
	const paid = await paidByBlocks();
	await sumsAgree(paid);
	const users = [...submitted.values()].map(({ target }) => target.user.account);
	for (const account of [...users, ...RECIPIENTS]) {
		const wanted = (paid.get(account.address) ?? []).map(({ block, wei }) => `${block} ${wei}`);
		let told: Refunds | null = null;
		await until(`the refunds of ${account.address}`, async () => {
			told = await refundsOf(account);
			const rows = told.refunds.filter((row) => row.recipient === account.address && row.paid !== "0");
			const found = rows.map((row) => `${row.block} ${row.paid}`);
			return found.sort().join() === wanted.sort().join();
		}).catch((thrown: Error) => {
			throw new Error(`${thrown.message}: ${wanted.join()} and not ${JSON.stringify(told)}`);
		});
	}
	const sum = [...paid.values()].flat().reduce((all, { wei }) => all + wei, 0n);
	let count = 0;
	for (const [hash, { target }] of submitted)
		if (!exposed.has(hash) && (await fixture.receipt(target))?.ok === true) count += 1;
	let last: Totals | null = null;
	await until("the totals", async () => {
		last = await totals();
		return last.refundedWei === String(sum) && last.transactions === count;
	}).catch((thrown: Error) => {
		throw new Error(`${thrown.message}: ${count} and ${sum}, and not ${JSON.stringify(last)}`);
	});
}

/**
 * Waits until the operator's list has for each recipient what the chain's blocks paid, and lists
 * unpaid refunds first.
 */
async function sumsAgree(paid: Awaited<ReturnType<typeof paidByBlocks>>): Promise<void> {
	const wanted = [...paid].map(
		([recipient, all]) => `${recipient} ${all.reduce((sum, { wei }) => sum + wei, 0n)}`,
	);
	let last: readonly Sum[] = [];
	await until("the operator's sums", async () => {
		last = await askSums(url);
		const sums = new Map<string, bigint>();
		for (const one of last) sums.set(one.recipient, (sums.get(one.recipient) ?? 0n) + BigInt(one.paid));
		const found = [...sums].filter(([, sum]) => sum > 0n).map(([recipient, sum]) => `${recipient} ${sum}`);
		return found.sort().join() === wanted.sort().join();
	}).catch((thrown: Error) => {
		throw new Error(`${thrown.message}: ${wanted.join()} and not ${JSON.stringify(last)}`);
	});
	const unpaid = last.map((one) => one.unpaid !== "0");
	assert.deepEqual(
		unpaid,
		unpaid.toSorted((one, other) => Number(other) - Number(one)),
	);
	const isOther = RECIPIENTS.map(({ address }) => address);
	for (const one of last) {
		assert.equal(BigInt(one.unpaid), BigInt(one.owed) - BigInt(one.paid));
		assert.equal(one.builder, "dev");
		assert.equal(one.month, new Date().toISOString().slice(0, 7));
		// A spreadsheet must not run it.
		assert.equal(one.referrer, isOther.includes(one.recipient) ? "'=shop," : "");
	}
}

/**
 * Asserts that the receipt of each transaction gets the verdict that follows from the chain's
 * blocks: a backrun behind it without a payment breaks the promise, and nothing else does.
 */
async function receiptsAgree(): Promise<void> {
	const rpc = fixture.system.chain.url;
	for (const { target, backrun, to } of submitted.values()) {
		const { verdict, by, why } = await verify(await receiptOf(url, target, target.user.account), { rpc });
		const mined = await fixture.receipt(target);
		if (mined === null) {
			assert.notEqual(verdict, "broken", why);
			continue;
		}
		const { coinbase, transactions } = await fixture.block(mined.block);
		const behind = transactions.slice(mined.index + 1);
		const isOwed = behind[0]?.hash === backrun.hash;
		const isPaid = behind.some((tx) => tx.from === DEV_COINBASE && tx.to === to);
		const builder = `the builder of block ${mined.block} (${coinbase})`;
		const expected = isOwed && !isPaid ? ["broken", builder] : ["kept", undefined];
		assert.deepEqual([verdict, by], expected, why);
	}
}

const step = fc.oneof(
	{
		weight: 4,
		arbitrary: fc.record({
			kind: fc.constant("bids" as const),
			value: fc.bigInt(1n, 10n ** 16n),
			which: fc.nat(1),
		}),
	},
	{
		weight: 4,
		arbitrary: fc.record({
			kind: fc.constant("reorg" as const),
			depth: fc.integer({ min: 1, max: 4 }),
			again: fc.constantFrom("nothing" as const, "unpaid" as const, "whole" as const),
		}),
	},
	{ weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
	{ weight: 1, arbitrary: fc.record({ kind: fc.constant("final" as const) }) },
);

describe("over random reorganisations, restarts and the time after which a block is final", () => {
	it("the refunds of each address, the totals, the operator's sums and the receipts are those of the chain's blocks", async () => {
		const { since } = await totals();
		await fc.assert(
			fc.asyncProperty(fc.array(step, { minLength: sized(4, 6), maxLength: sized(5, 8) }), async (steps) => {
				for (const one of steps) {
					if (one.kind === "bids") await twoBids(one.value, one.which);
					else if (one.kind === "reorg") await reorganise(one.depth, one.again);
					else if (one.kind === "restart") await fixture.system.restart();
					else await becomeFinal();
					await agrees();
				}
				await receiptsAgree();
				await becomeFinal();
				await agrees();
				await fixture.system.restart();
				await agrees();
				await receiptsAgree();
				assert.equal((await totals()).since, since);
			}),
			{ numRuns: sized(1, 6), endOnFailure: true },
		);
	});
});

describe("the totals", () => {
	it("count what is in a block and did not revert, and the last day of it", async () => {
		await becomeFinal();
		const before = await until("the totals", async () => totals());
		await refunded();
		const tx = (await fixture.actor()).sign({ to: await fixture.placeCode(REVERTS) });
		await fixture.submit("/nochecks", tx);
		await fixture.waitUntilSent(tx);
		await fixture.system.nextBlock();
		await fixture.reaches(tx, "REVERTED");
		const now = await until("the new ones", async () => {
			const all = await totals();
			return all.transactions > before.transactions && all;
		});
		assert.equal(now.transactions, before.transactions + 1);
		assert.deepEqual(now.lastDay, { transactions: now.transactions, refundedWei: now.refundedWei });
		assert.equal(now.since, before.since);
	});
});

describe("through boost", () => {
	it("refunds and totals are the relay's, and 503 while the relay is down", async (t) => {
		const whole = await startBoostFixture({ system: { env: { TRUST_PROXY: "1" } } });
		t.after(() => whole.stop());
		await prepareBidding(whole.system);
		const auction = new AuctionFixture(whole.system);
		const target = await auction.target();
		await auction.offerOut(target, 10n ** 16n);
		await whole.system.nextBlock();
		await auction.event(target, "refunded");
		const { account } = target.user;
		const [relay, boost] = [whole.system.client.url, whole.boost.url];
		const told = (await (await get(account, "", { base: boost })).json()) as Refunds;
		assert.deepEqual(told, await (await get(account, "", { base: relay })).json());
		assert.deepEqual(
			told.refunds.map(({ hash }) => hash),
			[target.hash],
		);
		const csv = await get(account, "&format=csv", { base: boost });
		assert.match(csv.headers.get("content-disposition") ?? "", /^attachment; filename="refunds-0x/);
		assert.equal(readCsv(await csv.text())[1]?.[2], target.hash);
		assert.equal((await totals(boost)).transactions, 1);
		const strange = await fetch(`${boost}/refunds/${account.address}`);
		assert.equal(strange.status, 401);
		await whole.fails();
		for (const answer of [await get(account, "", { base: boost }), await fetch(`${boost}/totals`)]) {
			const { error } = (await answer.json()) as { error: string };
			assert.deepEqual([answer.status, error], [503, "no relay available: the relay is down"]);
		}
	});
});
