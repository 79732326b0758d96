// Properties of the auction, tested against a small model: random bids, replacements, cancels, heads, payments in full and short, backruns
// elsewhere in the block, reorganisations, restarts, failing or missing simulations, restricted builders, and targets that fail,
// end or come back. After each step each builder must have the bids that a brute-force model finds, and nobody is barred unfairly.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Block } from "../../../../relay/domain/chain.ts";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { sized } from "../../../support/length.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { CLIENTS, CORNERS, type Command, command, OWNERS, SELDOM, TARGETS } from "./auctionCommands.ts";
import type { Pays } from "./auctionFakes.ts";
import { AuctionFixture } from "./auctionFixture.ts";

/** So few as 40 come to each corner with some seeds alone. */
const RUNS = sized<{ numRuns: number; seed?: number }>({ numRuns: 40, seed: 1 }, { numRuns: 1_000 });
const BUILDERS = ["a", "b"];
const RETRY_MS = 600;

interface ModelBid {
	readonly label: string;
	readonly hash: string;
	readonly target: number;
	readonly owner: string;
	readonly client: string;
	readonly sender: string;
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

/** What a bid paid right behind its target. */
interface ModelPayment {
	readonly block: Block;
	readonly by: ModelBid;
	/** Null: not traced. */
	readonly paid: bigint | null;
}

/** The contract that all backruns call. */
const ROUTER = `0x${"c".repeat(40)}`;
/** Wei of one of the commands' values: hundredths of it are whole. */
const UNIT = 100n;

/** Fixture and model side by side. */
class Run {
	readonly fixture = new AuctionFixture({ places: 3, refunding: BUILDERS });
	readonly seen: Set<string>;
	#targets: (PrivateTransaction | null)[] = [];
	/** The newest target in the place of each that a command can name. */
	readonly #newest: number[] = [];
	readonly #entries: PrivateTransaction[] = [];
	#bids: ModelBid[] = [];
	#seq = 0;
	/** Clients whose bids the node gives no verdict on, and targets that fail there: as from the last head on, and the next. */
	#out = { now: new Set<string>(), coming: new Set<string>() };
	#failing = { now: new Set<number>(), coming: new Set<number>() };
	readonly #payments: ModelPayment[] = [];
	/** Blocks for which a sender or an address had a place in vain with a bid that was not proven. */
	readonly #had: { readonly party: string; readonly block: number; readonly value: bigint }[] = [];
	#chain: Block[] = [];
	/** What each builder would put behind a target: by builder and name, with the block. */
	readonly #held = new Map<string, { label: string; target: string; block: number }>();

	constructor(seen: Set<string>) {
		this.seen = seen;
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

	/** Another target comes where the last one has gone. */
	async #come(place: number): Promise<void> {
		if (this.#targets[this.#newest[place] ?? -1]) return;
		const target = await this.fixture.target(`T${this.#targets.length}`);
		this.#newest[place] = this.#targets.length;
		this.#targets.push(target);
		this.#entries.push(target);
	}

	/** The first targets come, then the commands. */
	async all(commands: readonly Command[]): Promise<void> {
		for (let i = 0; i < TARGETS; i += 1) await this.#come(i);
		for (const one of commands) await this.#step(one);
	}

	async #step(command: Command): Promise<void> {
		if (command.do === "comes") await this.#come(command.target);
		const one = "target" in command ? { ...command, target: this.#newest[command.target] ?? 0 } : command;
		if (one.do === "bid") await this.#bid(one);
		if (one.do === "cancel") await this.#cancel(OWNERS[one.owner] ?? "", `u${one.uuid}`);
		if (one.do === "head") await this.#head(one.mines === null ? null : (this.#newest[one.mines] ?? 0));
		if (one.do === "reorg") await this.#reorganise(one.keeps);
		if (one.do === "falls") this.#fall(one.bid, one.value);
		if (one.do === "out") this.#set(this.#out.coming, CLIENTS[one.client] ?? "", one.isUnavailable);
		if (one.do === "fails") this.#set(this.#failing.coming, one.target, one.fails);
		if (one.do === "mined") await this.#mine(one);
		if (one.do === "restart") await this.#restart();
		if (one.do === "ends") await this.#end(one.target);
		await this.fixture.turn();
		this.#compare(JSON.stringify(one));
	}

	async #bid(one: Extract<Command, { do: "bid" }>): Promise<void> {
		const { fixture } = this;
		const target = this.#targets[one.target];
		if (!target) return;
		const label = `B${this.#seq}`;
		const tx = { by: testAccount(700 + one.signer), nonce: one.nonce, to: ROUTER, value: BigInt(this.#seq) };
		const { hash, from } = signedTransaction(tx);
		fixture.label(hash, label);
		const owner = OWNERS[one.owner] ?? "";
		const client = CLIENTS[one.client] ?? "";
		const uuid = one.uuid === null ? null : `u${one.uuid}`;
		const first = fixture.next + one.ahead;
		const modelBid: ModelBid = {
			...{
				label,
				hash,
				target: one.target,
				owner,
				client,
				sender: from,
				nonce: one.nonce,
				uuid,
				seq: this.#seq,
			},
			...{ builders: one.builders, first, last: first + one.span, coming: UNIT * BigInt(one.value) },
			...{ value: UNIT * BigInt(one.value), landed: null, over: false },
		};
		this.#seq += 1;
		fixture.simulations.pays.set(label, this.#pays(modelBid));
		const outcome = await fixture
			.send({
				...{ owner, network: client, uuid, times: null, builders: one.builders, target: target.tx.hash },
				blocks: { first: BigInt(first), last: BigInt(first + one.span) },
				backrun: rawTransaction(tx),
			})
			.catch((thrown: Error) => ({ outcome: "rejected" as const, code: thrown.message }));
		const isBarred = this.#isBarred(modelBid);
		const isUnknown = this.#out.now.has(client) || this.#failing.now.has(one.target);
		const expected = isBarred || isUnknown ? "rejected" : "accepted";
		assert.equal(outcome.outcome, expected, JSON.stringify(outcome));
		if (outcome.outcome === "rejected") {
			if (isBarred) assert.equal(outcome.code, "BARRED");
			this.seen.add(isBarred ? "barred" : "rejected");
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

	/** The next block holds the target alone, or nothing of ours. */
	async #head(mines: number | null): Promise<void> {
		const target = mines === null ? null : this.#targets[mines];
		await this.#next(target ? [target] : []);
	}

	/** The next block holds a target with one of the backruns that are out behind it. */
	async #mine({ target: at, which, pays, isLater }: Extract<Command, { do: "mined" }>): Promise<void> {
		const target = this.#targets[at];
		if (!target) return;
		const { next } = this.fixture;
		const labels = [...this.#held]
			.filter(([name, one]) => name.startsWith("a ") && one.block === next && one.target === `T${at}`)
			.map(([, { label }]) => label)
			.sort();
		const bids = labels.map((label) => this.#bids.find((one) => one.label === label));
		const chosen = bids[which % Math.max(1, bids.length)];
		if (chosen === undefined) return this.#next([target]);
		const other = isLater ? bids.find((one) => one !== chosen) : undefined;
		if (pays !== null) this.fixture.transfers.set(chosen.hash, ((chosen.value ?? 0n) * BigInt(pays)) / 100n);
		if (other !== undefined) this.fixture.transfers.set(other.hash, other.value ?? 0n);
		const decoy = { hash: `0xd${this.#seq++}`, from: "0xsomebody" };
		const between = isLater
			? [{ tx: other === undefined ? decoy : { hash: other.hash, from: other.sender } }]
			: [];
		if (isLater) this.seen.add("later");
		await this.#next([target, ...between, { tx: { hash: chosen.hash, from: chosen.sender } }]);
	}

	async #next(mined: readonly { tx: { hash: string; from: string } }[]): Promise<void> {
		const { next } = this.fixture;
		const out = new Set(
			[...this.#held.values()].filter(({ block }) => block === next).map(({ label }) => label),
		);
		this.#advance(
			out,
			mined.map(({ tx }) => tx.hash),
		);
		await this.fixture.block(mined);
		await this.#worked();
	}

	/** A ledger that is loaded from the disk answers the same. */
	async #restart(): Promise<void> {
		const ledger = await this.fixture.restartedLedger();
		for (const { owner, client, sender } of this.#bids) {
			const bidder = { owner, client, sender };
			const now = this.fixture.market.ledger;
			assert.deepEqual(ledger.bar(bidder), now.bar(bidder));
			assert.equal(ledger.provenUpTo(bidder), now.provenUpTo(bidder));
		}
		this.seen.add("restarted");
	}

	async #reorganise(keeps: boolean): Promise<void> {
		const { fixture } = this;
		const [gone] = this.#chain.length === 0 ? [] : fixture.chain.unmake(1);
		if (gone === undefined) return;
		this.#chain.pop();
		this.seen.add("reorganised");
		const mined = gone.transactions.map(({ hash, from }) => ({ tx: { hash, from } }));
		// What had landed was out for that block, and may not be in the one that came instead.
		const was = this.#bids.filter((one) => one.landed === gone.hash).map(({ label }) => label);
		this.#advance(new Set(was), keeps ? mined.map(({ tx }) => tx.hash) : []);
		for (const [i, entry] of this.#entries.entries()) {
			if (!gone.transactions.some(({ hash }) => hash === entry.tx.hash)) continue;
			fixture.transactions.reorged(fixture.transactions.records.get(entry.tx.hash) ?? assert.fail());
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
		await this.#worked();
	}

	/** Less from the next head on. Not more: a bid that by what is known can't win is not simulated again. */
	#fall(index: number, value: number): void {
		const one = this.#bids[index];
		if (one !== undefined && UNIT * BigInt(value) < one.coming) one.coming = UNIT * BigInt(value);
	}

	#set<T>(set: Set<T>, value: T, isIn: boolean): void {
		if (isIn) set.add(value);
		else set.delete(value);
	}

	async #end(target: number): Promise<void> {
		const entry = this.#targets[target];
		if (!entry) return;
		for (const one of this.#bids)
			if (one.target === target && one.landed === null) this.#over(one, "target ended");
		this.#targets[target] = null;
		this.fixture.transactions.expired(this.fixture.entry(entry), this.fixture.head.number);
	}

	#over(one: ModelBid, how: string): void {
		if (one.over) return;
		if (this.#isLive(one)) this.seen.add(how);
		one.over = true;
	}

	/** What the next head brings, with these bids out for it and these transactions in it. */
	#advance(out: ReadonlySet<string>, mined: readonly string[]): void {
		for (const one of this.#bids) {
			const target = this.#entries[one.target]?.tx.hash ?? "";
			const place = mined.indexOf(target);
			// Where the target is not mined, nobody could land behind it.
			const isInVain = place >= 0 && mined[place + 1] !== one.hash;
			if (!out.has(one.label) || !isInVain || this.#isProven(one)) continue;
			const { value } = one;
			for (const party of [one.sender, one.client])
				this.#had.push({ party, block: this.fixture.next, value: value ?? 0n });
		}
		this.#out.now = new Set(this.#out.coming);
		this.#failing.now = new Set(this.#failing.coming);
		for (const one of this.#bids) {
			if (one.value !== null) one.value = one.coming === 0n ? null : one.coming;
			this.fixture.simulations.pays.set(one.label, this.#pays(one));
		}
	}

	#pays(one: ModelBid): Pays {
		if (this.#out.now.has(one.client)) return "NODE_UNAVAILABLE";
		if (this.#failing.now.has(one.target)) return "targetFails";
		return one.value ?? "EXECUTION_REVERTED";
	}

	#land(block: Block): void {
		this.#chain.push(block);
		const hashes = block.transactions.map(({ hash }) => hash);
		for (const [i, target] of this.#targets.entries()) {
			if (!target || !hashes.includes(target.tx.hash)) continue;
			const behind = hashes[hashes.indexOf(target.tx.hash) + 1];
			for (const one of this.#bids) {
				if (one.target !== i) continue;
				if (behind === one.hash) {
					const paid = this.fixture.transfers.get(one.hash) ?? null;
					this.#payments.push({ block, by: { ...one }, paid });
				}
				if (behind === one.hash && !one.over) one.landed = block.hash;
				else if (one.landed === null) this.#over(one, "target mined");
			}
			this.#targets[i] = null;
		}
		for (const one of this.#bids)
			if (one.landed === null && (one.last <= block.number || !this.#targets[one.target])) one.over = true;
		for (const one of this.#bids) if (this.#isLive(one) && this.#isBarred(one)) this.#over(one, "left");
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

	/** The payments of whoever `is` in the chain as it stands. */
	#paid(is: (by: ModelBid) => boolean): readonly (ModelPayment & { readonly isShort: boolean })[] {
		return this.#payments
			.filter(({ block, by }) => this.#chain.some(({ hash }) => hash === block.hash) && is(by))
			.map((one) => ({
				...one,
				isShort: one.paid !== null && one.paid < ((one.by.value ?? 0n) * 99n) / 100n,
			}));
	}

	/** Whether its address or its signer has paid short lately; or its sender, unless it has paid in full by one of these. */
	#isBarred(one: ModelBid): boolean {
		const { owner, client, sender } = one;
		const isBarred = (is: (by: ModelBid) => boolean) => {
			const short = this.#paid(is).filter(({ isShort }) => isShort);
			return short.some(({ block }, i) => block.number + 32 * 2 ** i >= this.fixture.next);
		};
		return (
			isBarred((by) => by.owner === owner) ||
			isBarred((by) => by.client === client) ||
			(isBarred((by) => by.sender === sender) && this.#provenUpTo(one) === 0n)
		);
	}

	#isProven(one: ModelBid): boolean {
		return (one.value ?? 0n) <= this.#provenUpTo(one);
	}

	/** Eight times what its sender has paid most by its address or signer, and with none of that one's has been short since. */
	#provenUpTo({ owner, client, sender }: ModelBid): bigint {
		const all = this.#paid((by) => by.sender === sender);
		const good = all.filter(({ by, isShort }, i) => {
			const isOver = all
				.slice(i)
				.some((one) => one.isShort && (one.by.owner === by.owner || one.by.client === by.client));
			return !isShort && !isOver && (by.owner === owner || by.client === client);
		});
		return good.reduce((most, { paid }) => (8n * (paid ?? 0n) > most ? 8n * (paid ?? 0n) : most), 0n);
	}

	#isSpent(one: ModelBid): boolean {
		return [one.sender, one.client].some((party) => {
			const landed = this.#paid((by) => by.sender === party || by.client === party);
			const isMadeUp = ({ block, value }: { readonly block: number; readonly value: bigint }) =>
				landed.some(
					(later) =>
						!later.isShort &&
						later.block.number >= block &&
						(later.paid === null || 8n * later.paid >= value),
				);
			const vain = this.#had.filter((had) => had.party === party && !isMadeUp(had)).map(({ block }) => block);
			return new Set(vain).size >= 3;
		});
	}

	#isValid(one: ModelBid): boolean {
		const isKnown =
			!this.#out.now.has(one.client) && !this.#failing.now.has(one.target) && one.value !== null;
		const { next } = this.fixture;
		return this.#isLive(one) && isKnown && one.first <= next && next <= one.last;
	}

	/** What a builder shall have: of each target the best proven bid, then the next best of what is left, again and again. */
	#best(builder: string): readonly ModelBid[] {
		const valid = this.#bids.filter((one) => this.#isValid(one) && (one.builders?.includes(builder) ?? true));
		const spent = new Set(valid.filter((one) => !this.#isProven(one) && this.#isSpent(one)));
		if (spent.size > 0) this.seen.add("spent");
		const chosen: ModelBid[] = [];
		const choose = (from: readonly ModelBid[], most: number): void => {
			for (;;) {
				const free = from.filter((one) => chosen.every((other) => !isRival(one, other)));
				const left = free.filter(({ target }) => chosen.filter((one) => one.target === target).length < most);
				if (left.length < free.length && most > 1) this.seen.add("no place");
				const [first] = left;
				if (first === undefined) return;
				chosen.push(left.reduce((best, one) => (this.#isBefore(one, best) ? one : best), first));
			}
		};
		const proven = valid.filter((one) => this.#isProven(one));
		choose(proven, 1);
		if (chosen.length > 0) this.seen.add("proven");
		for (const one of chosen) {
			const others = valid.filter(({ target, client }) => target === one.target && client !== one.client);
			const dearer = others.filter((other) => isBetter(other, one) && !spent.has(other));
			if (new Set(dearer.map(({ client }) => client)).size > 3) this.seen.add("proven before dearer ones");
		}
		choose(
			valid.filter((one) => !spent.has(one)),
			3,
		);
		choose([...spent], 3);
		for (const dearest of proven) {
			const rivals = valid.filter((one) => one.target === dearest.target || one.sender === dearest.sender);
			if (rivals.every((one) => one === dearest || isBetter(dearest, one)))
				assert.ok(chosen.includes(dearest), "a proven bid that is the dearest is out");
		}
		return chosen;
	}

	/** Of equal ones a proven one is before the others. */
	#isBefore(one: ModelBid, than: ModelBid): boolean {
		const [is, other] = [this.#isProven(one), this.#isProven(than)];
		return one.value === than.value && is !== other ? is : isBetter(one, than);
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
			for (const one of expected) {
				const { owner, target, label, seq } = one;
				const isFirst = expected.every((other) => other.target !== target || !this.#isBefore(other, one));
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
	const isSame = a === b || (a.client === b.client && a.sender === b.sender && a.nonce === b.nonce);
	if (isSame || a.target !== b.target) return isSame;
	return a.client === b.client || a.sender === b.sender;
}

function isBetter(one: ModelBid, than: ModelBid): boolean {
	const [a, b] = [one.value ?? 0n, than.value ?? 0n];
	return a === b ? one.seq < than.seq : a > b;
}

test("what is out is always what the rules give a place", async () => {
	const seen = new Set<string>();
	await fc.assert(
		fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 60, size: "max" }), (commands) =>
			new Run(seen).all(commands),
		),
		{ ...RUNS, examples: SELDOM.map((commands): [Command[]] => [commands]) },
	);
	for (const corner of CORNERS) assert.ok(seen.has(corner), `never ${corner}`);
});
