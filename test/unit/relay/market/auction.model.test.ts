// Tests the auction against a small model with random bids, replacements, cancels, heads, reorganisations, failing or missing
// simulations, restricted builders, barred bidders, and targets that fail, end or come back. After each step each builder must
// have exactly the best distinct valid bids, which the model finds by brute force.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Block } from "../../../../relay/domain/chain.ts";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { type Command, command, OWNERS, TARGETS } from "./auctionCommands.ts";
import type { Pays } from "./auctionFakes.ts";
import { AuctionFixture } from "./auctionFixture.ts";

const RUNS = Number(process.env.AUCTION_RUNS ?? 100);
const BUILDERS = ["a", "b"];
const RETRY_MS = 600;

interface ModelBid {
	readonly label: string;
	readonly hash: string;
	readonly target: number;
	readonly owner: string;
	readonly sender: string;
	readonly contract: string;
	readonly nonce: number;
	readonly uuid: string | null;
	readonly builders: readonly string[] | null;
	readonly first: number;
	readonly last: number;
	/** In the order in which they were accepted. */
	readonly seq: number;
	/** What it pays from the next head on. */
	coming: bigint;
	/** What it pays now; null: it fails, and is never valid again. */
	value: bigint | null;
	landed: string | null;
	over: boolean;
}

/** Fixture and model side by side. */
class Run {
	readonly fixture = new AuctionFixture({ places: 3, refunding: BUILDERS });
	readonly seen = new Set<string>();
	#targets: (PrivateTransaction | null)[] = [];
	readonly #entries: PrivateTransaction[] = [];
	#bids: ModelBid[] = [];
	#seq = 0;
	/** Clients whose bids the node gives no verdict on, and targets that fail there: as from the last head on, and the next. */
	#out = { now: new Set<string>(), coming: new Set<string>() };
	#failing = { now: new Set<number>(), coming: new Set<number>() };
	/** Facts by the hash of their block. */
	#facts: { readonly block: string; readonly kind: "short" | "lost"; readonly bid: ModelBid }[] = [];
	#chain: Block[] = [];
	/** What each builder would put behind a target: by builder and name, with the block. */
	readonly #held = new Map<string, { label: string; target: string; block: number }>();

	constructor() {
		for (let i = 0; i < TARGETS; i += 1) {
			const target = this.fixture.target(`T${i}`);
			this.#targets.push(target);
			this.#entries.push(target);
		}
		const { builders } = this.fixture;
		builders.sendBundle = (bundle, names, _answered, leaves) => {
			leaves?.();
			const [target, backrun] = bundle.transactions.map(({ tx }) => builders.labelOf(tx.hash));
			for (const name of names)
				this.#held.set(`${name} ${bundle.name}`, {
					...{ label: backrun ?? "?", target: target ?? "?", block: bundle.block },
				});
			return names;
		};
		builders.cancelBundle = (name, _block, names) => {
			for (const builder of names)
				assert.ok(this.#held.delete(`${builder} ${name}`), "cancelled what was not out");
		};
	}

	async step(one: Command): Promise<void> {
		if (one.do === "bid") await this.#bid(one);
		if (one.do === "cancel") await this.#cancel(OWNERS[one.owner] ?? "", `u${one.uuid}`);
		if (one.do === "head") await this.#head(one.mines);
		if (one.do === "reorg") await this.#reorganise(one.keeps);
		if (one.do === "falls") this.#fall(one.bid, one.value);
		if (one.do === "out") this.#set(this.#out.coming, OWNERS[one.owner] ?? "", one.isUnavailable);
		if (one.do === "fails") this.#set(this.#failing.coming, one.target, one.fails);
		if (one.do === "short" || one.do === "loses")
			await this.#judge(one.bid, one.do === "short" ? "short" : "lost");
		if (one.do === "ends") await this.#end(one.target);
		await this.fixture.turn();
		this.#compare(JSON.stringify(one));
	}

	async #bid(one: Extract<Command, { do: "bid" }>): Promise<void> {
		const { fixture } = this;
		const target = this.#targets[one.target];
		if (!target) return;
		const label = `B${this.#seq}`;
		const contract = `0x${"c".repeat(39)}${one.contract}`;
		const tx = {
			by: testAccount(700 + one.signer),
			nonce: one.nonce,
			to: contract,
			value: BigInt(this.#seq),
		};
		const { hash, from } = signedTransaction(tx);
		fixture.label(hash, label);
		const owner = OWNERS[one.owner] ?? "";
		const uuid = one.uuid === null ? null : `u${one.uuid}`;
		const first = fixture.next + one.ahead;
		const modelBid: ModelBid = {
			...{
				label,
				hash,
				target: one.target,
				owner,
				sender: from,
				contract,
				nonce: one.nonce,
				uuid,
				seq: this.#seq,
			},
			...{ builders: one.builders, first, last: first + one.span, coming: BigInt(one.value) },
			...{ value: BigInt(one.value), landed: null, over: false },
		};
		this.#seq += 1;
		fixture.simulations.pays.set(label, this.#pays(modelBid));
		const outcome = await fixture
			.send({
				...{ owner, network: owner, uuid, builders: one.builders, target: target.tx.hash },
				blocks: { first: BigInt(first), last: BigInt(first + one.span) },
				backrun: rawTransaction(tx),
			})
			.catch((thrown: Error) => ({ outcome: "refused" as const, code: thrown.message }));
		const isBarred = this.#isParty(modelBid, "short");
		const isUnknown = this.#out.now.has(owner) || this.#failing.now.has(one.target);
		const expected = isBarred || isUnknown ? "refused" : "accepted";
		assert.equal(outcome.outcome, expected, JSON.stringify(outcome));
		if (outcome.outcome === "refused") {
			if (isBarred) assert.equal(outcome.code, "BARRED");
			this.seen.add(isBarred ? "barred" : "refused");
			return;
		}
		for (const old of this.#bids)
			if (uuid !== null && old.owner === owner && old.uuid === uuid) this.#over(old, "replaced");
		this.#bids.push(modelBid);
	}

	async #cancel(owner: string, uuid: string): Promise<void> {
		for (const old of this.#bids) if (old.owner === owner && old.uuid === uuid) this.#over(old, "cancelled");
		this.fixture.table.cancel(owner, uuid);
	}

	async #head(mines: number | null): Promise<void> {
		this.#advance();
		await this.fixture.block(this.#mined(mines));
		await this.#worked();
	}

	async #reorganise(keeps: boolean): Promise<void> {
		const { fixture } = this;
		const [gone] = this.#chain.length === 0 ? [] : fixture.chain.unmake(1);
		if (gone === undefined) return;
		this.#chain.pop();
		this.seen.add("reorganised");
		const mined = gone.transactions.map(({ hash, from }) => ({ tx: { hash, from } }));
		this.#advance();
		for (const [i, entry] of this.#entries.entries()) {
			if (!gone.transactions.some(({ hash }) => hash === entry.tx.hash)) continue;
			fixture.emit(entry, { type: "reorged", at: 3, block: gone.number });
			const unsent = { sentForBlock: null, sentForBlockTo: new Set<string>(), everSentTo: new Set<string>() };
			fixture.pool.insert({ transaction: entry, durable: true, ...unsent });
			this.#targets[i] = entry;
		}
		for (const one of this.#bids) {
			if (one.landed === gone.hash) {
				one.landed = null;
				this.seen.add("came back");
			}
		}
		const block = fixture.chain.make(keeps ? mined : [], `r${this.#seq++}`);
		await fixture.came({ applied: [block], reverted: [gone] });
		this.#land(block);
		// It passes over its number and comes back: the same facts count again with the same block only.
		await this.#worked();
	}

	/** Less from the next head on. Not more: a bid that by what is known can't win is not simulated again. */
	#fall(index: number, value: number): void {
		const one = this.#bids[index];
		if (one !== undefined && value < one.coming) one.coming = BigInt(value);
	}

	#set<T>(set: Set<T>, value: T, isIn: boolean): void {
		if (isIn) set.add(value);
		else set.delete(value);
	}

	/** What one has bid is found short, or lost three times, in the head. */
	async #judge(index: number, kind: "short" | "lost"): Promise<void> {
		const { fixture } = this;
		const one = this.#bids[index];
		const head = this.#chain.at(-1);
		if (one === undefined || head === undefined) return;
		const bidder = { owner: one.owner, client: one.owner, sender: one.sender, contract: one.contract };
		const accepted = [{ at: 0, builder: "a", kind: "bundle" as const, answer: "accepted" as const }];
		const times = kind === "short" ? ["x"] : ["x", "y", "z"];
		await fixture.market.conduct.judge(head, {
			...{ time: 10_000, makers: ["a"] },
			bids: times.map((n) => ({
				...{ bundle: `${one.label} ${kind} ${n}`, backrun: one.hash + kind, bidder, value: 100n },
				deliveries: accepted,
			})),
			landed: kind === "lost" ? null : { backrun: one.hash + kind, transfers: 1n, brought: 1n },
		});
		this.#facts.push({ block: head.hash, kind, bid: one });
		this.seen.add(kind);
		fixture.market.auctioneer.conductChanged();
		for (const other of this.#bids)
			if (this.#isLive(other) && this.#isParty(other, "short")) this.#over(other, "left");
	}

	async #end(target: number): Promise<void> {
		const entry = this.#targets[target];
		if (!entry) return;
		for (const one of this.#bids)
			if (one.target === target && one.landed === null) this.#over(one, "target ended");
		this.#targets[target] = null;
		this.fixture.pool.remove(this.fixture.entry(entry));
		this.fixture.emit(entry, { type: "expired", at: 4, block: this.fixture.head.number });
	}

	#over(one: ModelBid, how: string): void {
		if (one.over) return;
		if (this.#isLive(one)) this.seen.add(how);
		one.over = true;
	}

	/** What the next head brings. */
	#advance(): void {
		this.#out.now = new Set(this.#out.coming);
		this.#failing.now = new Set(this.#failing.coming);
		for (const one of this.#bids) {
			if (one.value !== null) one.value = one.coming === 0n ? null : one.coming;
			this.fixture.simulations.pays.set(one.label, this.#pays(one));
		}
	}

	#pays(one: ModelBid): Pays {
		if (this.#out.now.has(one.owner)) return "NODE_UNAVAILABLE";
		if (this.#failing.now.has(one.target)) return "targetFails";
		return one.value ?? "EXECUTION_REVERTED";
	}

	/** A target and what the first builder holds behind it: the block that it makes. */
	#mined(mines: number | null) {
		const target = mines === null ? null : this.#targets[mines];
		if (!target) return [];
		const next = this.fixture.next;
		const held = [...this.#held].find(
			([name, one]) => name.startsWith("a ") && one.block === next && one.target === `T${mines}`,
		);
		const backrun = this.#bids.find(({ label }) => label === held?.[1].label);
		return [target, ...(backrun === undefined ? [] : [{ tx: { hash: backrun.hash, from: backrun.sender } }])];
	}

	#land(block: Block): void {
		this.#chain.push(block);
		const hashes = block.transactions.map(({ hash }) => hash);
		for (const [i, target] of this.#targets.entries()) {
			if (!target || !hashes.includes(target.tx.hash)) continue;
			for (const one of this.#bids) {
				if (one.target !== i) continue;
				if (hashes.includes(one.hash) && !one.over) one.landed = block.hash;
				else if (one.landed === null) this.#over(one, "target mined");
			}
			this.#targets[i] = null;
		}
		for (const one of this.#bids)
			if (one.landed === null && (one.last <= block.number || !this.#targets[one.target])) one.over = true;
	}

	async #worked(): Promise<void> {
		const { fixture } = this;
		if (this.#chain.at(-1) !== fixture.head && !this.#chain.includes(fixture.head)) this.#land(fixture.head);
		for (const target of this.#targets) if (target) await fixture.look(target);
		// What the node gave no verdict on is tried again, in vain.
		await fixture.clock.advance(RETRY_MS);
	}

	#isLive(one: ModelBid): boolean {
		return !one.over && one.landed === null && this.#targets[one.target] !== null;
	}

	/** Whether by facts of the chain as it stands something is held against one of its bidder's names. */
	#isParty(one: ModelBid, kind: "short" | "lost"): boolean {
		return this.#facts.some(
			(fact) =>
				fact.kind === kind &&
				this.#chain.some(({ hash }) => hash === fact.block) &&
				(fact.bid.owner === one.owner ||
					fact.bid.sender === one.sender ||
					fact.bid.contract === one.contract),
		);
	}

	#isValid(one: ModelBid): boolean {
		const isKnown = !this.#out.now.has(one.owner) && !this.#failing.now.has(one.target) && one.value !== null;
		const { next } = this.fixture;
		return this.#isLive(one) && isKnown && one.first <= next && next <= one.last;
	}

	/** The best distinct three of each target at a builder: the next best of what is left, again and again. */
	#best(builder: string): readonly ModelBid[] {
		const chosen: ModelBid[] = [];
		for (;;) {
			const free = this.#bids.filter(
				(one) =>
					this.#isValid(one) &&
					(one.builders?.includes(builder) ?? true) &&
					chosen.every((other) => !isRival(one, other)),
			);
			const left = free.filter(({ target }) => chosen.filter((one) => one.target === target).length < 3);
			if (left.length < free.length) this.seen.add("no place");
			const [first] = left;
			if (first === undefined) return chosen;
			const rank = (one: ModelBid) => (this.#isParty(one, "lost") ? 0 : 1);
			const isBetter = (one: ModelBid, than: ModelBid) => {
				if (rank(one) !== rank(than)) return rank(one) > rank(than);
				const [a, b] = [one.value ?? 0n, than.value ?? 0n];
				return a === b ? one.seq < than.seq : a > b;
			};
			chosen.push(left.reduce((best, one) => (isBetter(one, best) ? one : best), first));
		}
	}

	#compare(where: string): void {
		const { next } = this.fixture;
		assert.deepEqual(this.fixture.faults, [], where);
		for (const builder of BUILDERS) {
			const expected = this.#best(builder);
			const out = [...this.#held]
				.filter(([name, { block }]) => name.startsWith(`${builder} `) && block === next)
				.map(([, { target, label }]) => `${target} ${label}`);
			const wanted = expected.map(({ target, label }) => `T${target} ${label}`);
			assert.deepEqual(out.sort(), wanted.sort(), `${where}: at ${builder}, for ${next}`);
			for (const [i, { owner, target, label, seq }] of expected.entries()) {
				const isFirst = expected.findIndex((one) => one.target === target) === i;
				const outcome = this.fixture.bids
					.of(this.#entries[target]?.tx.hash ?? "")
					.find((one) => one.backrun.hash === this.#bids.find((each) => each.seq === seq)?.hash);
				const stage = outcome && this.fixture.status(outcome.record.hash, next, owner);
				if (isFirst) assert.equal(stage, "BEST", `${where}: ${label}`);
				else assert.match(String(stage), /^(BEST|RUNNER_UP)$/, `${where}: ${label}`);
			}
			if (expected.length > 1) this.seen.add("runner-up");
			if (this.#bids.filter((one) => this.#isValid(one)).length > expected.length) this.seen.add("outbid");
		}
	}
}

/** Whether two bids can't be with one builder at the same time. */
function isRival(a: ModelBid, b: ModelBid): boolean {
	const isSame = a === b || (a.sender === b.sender && a.nonce === b.nonce);
	if (isSame || a.target !== b.target) return isSame;
	return a.owner === b.owner || a.sender === b.sender || a.contract === b.contract;
}

/** What the runs must have come to: one that never did would prove nothing about it. */
const CORNERS = [
	"replaced",
	"cancelled",
	"reorganised",
	"came back",
	"short",
	"lost",
	"barred",
	"left",
	"refused",
];

test("what is out is always the best distinct three of what is valid", async () => {
	const seen = new Set<string>();
	await fc.assert(
		fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 60, size: "max" }), async (commands) => {
			const run = new Run();
			for (const one of commands) await run.step(one);
			for (const corner of run.seen) seen.add(corner);
		}),
		{ numRuns: RUNS },
	);
	for (const corner of [...CORNERS, "target ended", "target mined", "runner-up", "outbid", "no place"])
		assert.ok(seen.has(corner), `never ${corner}`);
});
