// The pool against a naive model of it: thousands of random steps from seeds, compared after each one.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AccountState } from "../../../../relay/domain/chain.ts";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { Pool, type PoolEntry } from "../../../../relay/transactions/pool.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { type SeededRandom, seededRandom } from "../../shared/ethereum/seededRandom.ts";

const SEEDS = [1, 2, 3, 4];
const STEPS = 1_000;
const MIB = 1024 * 1024;
/** Of the whole pool and of one transaction; clients. In the one the pool fills up, in the other what may wait does. */
const SIZES = [
	{ maxBytes: 12 * MIB, bytes: MIB / 2, clients: 24 },
	{ maxBytes: 128 * MIB, bytes: MIB, clients: 3 },
];
const BASE_FEES = [900n, 1_050n, 1_150n, 1_500n];
const ACCOUNTS = [0, 1, 2].map(testAccount);
const FEES = [100, 105, 110, 121, 140];

/** Signed once: 3 senders, 12 nonces, 5 fees. */
const TRANSACTIONS: readonly PrivateTransaction[] = ACCOUNTS.flatMap((by) =>
	Array.from({ length: 12 }, (_, nonce) => nonce).flatMap((nonce) =>
		FEES.map((fee) => privateTransaction({ by, nonce, maxFeePerGas: fee * 10, maxPriorityFeePerGas: fee })),
	),
);

/** The obvious way to say the same: one list, searched anew each time. */
class Model {
	entries: PoolEntry[] = [];
	/** Accounts whose nonce the pool was told while it had something of theirs. */
	readonly told = new Set<string>();
	/** What the chain says. */
	readonly nonces = new Map(ACCOUNTS.map(({ address }) => [address, 0n]));
	readonly maxBytes: number;
	baseFee = 0n;

	constructor(maxBytes: number) {
		this.maxBytes = maxBytes;
	}

	of(address: string): PoolEntry[] {
		return this.entries
			.filter((entry) => entry.transaction.tx.from === address)
			.sort((a, b) => Number(a.transaction.tx.nonce - b.transaction.tx.nonce));
	}

	add(transaction: PrivateTransaction): string {
		const { tx } = transaction;
		const own = this.of(tx.from);
		const old = own.find((entry) => entry.transaction.tx.nonce === tx.nonce);
		if (old !== undefined) {
			const held = old.transaction.tx;
			const dear = (fresh: bigint, before: bigint) => Number(fresh) >= Number(before) * 1.1 - 1e-9;
			const may =
				dear(tx.maxFeePerGas, held.maxFeePerGas) && dear(tx.maxPriorityFeePerGas, held.maxPriorityFeePerGas);
			if (!may) return "UNDERPRICED";
		}
		const entry = { transaction } as PoolEntry;
		const entries = [...this.entries.filter((other) => other !== old), entry];
		const full = this.full(entries, transaction.origin, this.maxBytes / 16, this.maxBytes);
		if (full !== null) return full;
		const parked = this.parked(entries);
		if (parked.includes(entry)) {
			const waits = this.full(parked, transaction.origin, 4 * MIB, this.maxBytes / 2);
			if (waits !== null) return waits;
		}
		return old === undefined ? "added" : "replaced";
	}

	full(entries: readonly PoolEntry[], client: string, mostOfClient: number, most: number): string | null {
		const bytes = (some: readonly PoolEntry[]) =>
			some.reduce((sum, { transaction }) => sum + transaction.tx.size + 512, 0);
		if (bytes(entries.filter(({ transaction }) => transaction.origin === client)) > mostOfClient)
			return "CLIENT_FULL";
		return bytes(entries) > most ? "POOL_FULL" : null;
	}

	/** What can't be in the next block. */
	parked(entries: readonly PoolEntry[]): readonly PoolEntry[] {
		return entries.filter(({ transaction: { tx } }) => {
			for (let nonce = this.nonce(tx.from); nonce <= tx.nonce; nonce += 1n) {
				const link = entries.find(
					(one) => one.transaction.tx.from === tx.from && one.transaction.tx.nonce === nonce,
				);
				if (link === undefined || link.transaction.tx.maxFeePerGas < this.baseFee) return true;
			}
			return false;
		});
	}

	chain(address: string): { ready: string[]; waiting: string[] } {
		const all = this.of(address).filter(({ transaction }) => transaction.tx.nonce >= this.nonce(address));
		const writing = all.findIndex((entry) => !entry.durable);
		const shown = writing < 0 ? all : all.slice(0, writing);
		const ready = shown.filter(
			({ transaction }, i) => transaction.tx.nonce === this.nonce(address) + BigInt(i),
		);
		return { ready: hashes(ready), waiting: hashes(shown.slice(ready.length)) };
	}

	pendingNonce(address: string, base: bigint): bigint {
		const taken = new Set(this.of(address).map(({ transaction }) => transaction.tx.nonce));
		// Nobody is told a nonce that is known to be used.
		const known = this.told.has(address) ? this.nonce(address) : 0n;
		let next = base > known ? base : known;
		while (taken.has(next)) next += 1n;
		return next;
	}

	nonce(address: string): bigint {
		return this.nonces.get(address) ?? 0n;
	}
}

for (const [i, seed] of SEEDS.entries()) {
	const { maxBytes, bytes, clients } = SIZES[i % SIZES.length] ?? { maxBytes: 0, bytes: 0, clients: 1 };
	const transactions = TRANSACTIONS.map((transaction, i) => ({
		...transaction,
		origin: `10.0.0.${i % clients}`,
		tx: { ...transaction.tx, size: bytes - 512 },
	}));
	test(`the pool does what the model does, seed ${seed}`, () => {
		const random = seededRandom(seed);
		const pool = new Pool({ maxBytes });
		const model = new Model(maxBytes);
		const seen = new Set<string>();
		for (let block = 1; block <= STEPS; block += 1) {
			seen.add(step(random, pool, model, block, transactions));
			compare(pool, model, `seed ${seed}, step ${block}`);
		}
		// A run that never came to a corner would prove nothing about it.
		for (const outcome of [
			"added",
			"replaced",
			"UNDERPRICED",
			"CLIENT_FULL",
			...(clients > 3 ? ["POOL_FULL"] : []),
			"priced",
			"mined",
			"reorged",
		]) {
			assert.ok(seen.has(outcome), `never ${outcome}`);
		}
	});
}

/** One random step on both; answers what it was. */
function step(
	random: SeededRandom,
	pool: Pool,
	model: Model,
	block: number,
	transactions: readonly PrivateTransaction[],
): string {
	const kind = random.below(21);
	if (kind < 12) return add(random.pick(transactions), pool, model, block);
	if (kind === 20) {
		model.baseFee = random.pick(BASE_FEES);
		pool.setNext({ number: block + 1, timestamp: 0, baseFee: model.baseFee, blobBaseFee: 1n, gasLimit: 1n });
		const parked = model.parked(model.entries);
		for (const { address } of ACCOUNTS) {
			const first = model
				.of(address)
				.find(({ transaction }) => transaction.tx.nonce === model.nonce(address));
			assert.equal(pool.canGoOut(address), first !== undefined && !parked.includes(first));
		}
		return "priced";
	}
	if (kind < 15) {
		for (const entry of model.entries) if (random.below(2) === 0) entry.durable = true;
		return "written";
	}
	if (kind < 17 && model.entries.length > 0) {
		const entry = random.pick(model.entries);
		model.entries = model.entries.filter((other) => other !== entry);
		pool.remove(entry);
		if (model.of(entry.transaction.tx.from).length === 0) model.told.delete(entry.transaction.tx.from);
		// Its write failed, or a reorganisation brings it back: only where nobody took the place.
		if (random.below(2) === 0) {
			const { from } = entry.transaction.tx;
			assert.ok(pool.insert(entry, model.nonce(from), block));
			model.entries.push(entry);
		}
		return "removed";
	}
	const { address } = random.pick(ACCOUNTS);
	const forward = random.below(4) > 0;
	const nonce = model.nonce(address);
	const next = forward ? nonce + BigInt(random.below(3)) : nonce - BigInt(random.below(Number(nonce) + 1));
	if (next > 8n) return "none";
	model.nonces.set(address, next);
	if (!forward) pool.rewind(block - 1);
	const used = pool.setAccount(state(model, address, block));
	if (model.of(address).length > 0) model.told.add(address);
	const expected = model.of(address).filter(({ transaction }) => transaction.tx.nonce < next);
	assert.deepEqual(hashes(used), hashes(expected));
	for (const entry of used) pool.remove(entry);
	model.entries = model.entries.filter((entry) => !expected.includes(entry));
	return forward ? "mined" : "reorged";
}

function add(transaction: PrivateTransaction, pool: Pool, model: Model, block: number): string {
	const { tx } = transaction;
	if (pool.get(tx.hash) !== undefined || tx.nonce < model.nonce(tx.from)) return "none";
	const expected = model.add(transaction);
	const old = pool.at(tx.from, tx.nonce);
	const outcome = pool.add(transaction, state(model, tx.from, block));
	if (outcome.outcome === "refused") {
		assert.equal(outcome.rejection.code, expected);
		return expected;
	}
	assert.equal(outcome.outcome, expected);
	if (outcome.outcome === "replaced") assert.equal(outcome.old, old);
	model.entries = [...model.entries.filter((entry) => entry !== old), outcome.entry];
	model.told.add(tx.from);
	return expected;
}

function state(model: Model, address: string, block: number): AccountState {
	return { address, block, nonce: model.nonce(address), balance: 1n, code: "none" };
}

function hashes(entries: readonly PoolEntry[]): string[] {
	return entries.map((entry) => entry.transaction.tx.hash);
}

function compare(pool: Pool, model: Model, where: string): void {
	for (const { address } of ACCOUNTS) if (model.of(address).length === 0) model.told.delete(address);
	assert.equal(pool.size, model.entries.length, where);
	for (const entry of model.entries) assert.equal(pool.get(entry.transaction.tx.hash), entry, where);
	const holders = ACCOUNTS.filter(({ address }) => model.of(address).length > 0);
	assert.deepEqual([...pool.senders()].sort(), holders.map(({ address }) => address).sort(), where);
	for (const { address } of ACCOUNTS) {
		const { ready, waiting } = pool.chain(address);
		assert.deepEqual({ ready: hashes(ready), waiting: hashes(waiting) }, model.chain(address), where);
		for (const base of [0n, model.nonce(address), 5n]) {
			assert.equal(pool.pendingNonce(address, base), model.pendingNonce(address, base), where);
		}
	}
}
