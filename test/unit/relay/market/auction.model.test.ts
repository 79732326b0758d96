// Properties of the auction, tested against a small model: random bids, replacements, cancels,
// heads, payments in full and short, backruns elsewhere in the block, reorganisations, restarts,
// failing or missing simulations, restricted builders, and targets that fail, end or come back.
// After each step each builder must have the bids that a brute-force model finds, and before its
// block no bid is reported as anything but accepted.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { drawing } from "../../../../relay/auction/slots.ts";
import type { Block } from "../../../../relay/domain/chain.ts";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { sized } from "../../../support/length.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { CLIENTS, CORNERS, type Command, command, OWNERS, SELDOM, TARGETS } from "./auctionCommands.ts";
import type { Pays } from "./auctionFakes.ts";
import { AuctionFixture, SECRET } from "./auctionFixture.ts";

/** So few as 150 come to each corner with some seeds alone. */
const RUNS = sized<{ numRuns: number; seed?: number }>({ numRuns: 150, seed: 1 }, { numRuns: 1_000 });
const BUILDERS = ["a", "b"];
/** Longer than a retry, and than a slot waits to be sent again. */
const WAIT_MS = 1_100;
const SLOTS = 8;

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
	/** The amount that it pays from the next head on. */
	coming: bigint;
	/** The amount that it pays now. Null: it fails, and is never valid again. */
	value: bigint | null;
	landed: string | null;
	over: boolean;
}

/** The payment of a bid right behind its target. */
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
	readonly fixture = new AuctionFixture({ slots: SLOTS, refunding: BUILDERS });
	readonly seen: Set<string>;
	#targets: (PrivateTransaction | null)[] = [];
	/** The newest target in the place of each that a command can name. */
	readonly #newest: number[] = [];
	readonly #entries: PrivateTransaction[] = [];
	#bids: ModelBid[] = [];
	#seq = 0;
	/**
	 * Clients whose bids the node gives no verdict on, and targets that fail there: as from the last
	 * head on, and the next.
	 */
	#out = { now: new Set<string>(), coming: new Set<string>() };
	#failing = { now: new Set<number>(), coming: new Set<number>() };
	readonly #payments: ModelPayment[] = [];
	#chain: Block[] = [];
	/** The bids that each builder would put behind a target: by builder and name, with the block. */
	readonly #held = new Map<string, { label: string; target: string; block: number }>();

	constructor(seen: Set<string>) {
		this.seen = seen;
		const { builders } = this.fixture;
		// All blocks are this one's: at the other nobody has a record.
		builders.coinbases.set("0xminer", ["a"]);
		builders.sendBundle = (bundle, names, _answered, left) => {
			for (const name of names) left?.(name);
			const [target, backrun] = bundle.transactions.map(({ tx }) => builders.labelOf(tx.hash));
			for (const name of names)
				this.#held.set(`${name} ${bundle.name}`, {
					...{ label: backrun ?? "?", target: target ?? "?", block: bundle.block },
				});
			return names;
		};
		builders.cancelBundle = ({ name }, _block, names) => {
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
		for (let i = 0; i < 3; i += 1) {
			await this.fixture.clock.advance(WAIT_MS);
			await this.fixture.turn();
		}
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
		const isUnknown = this.#out.now.has(client) || this.#failing.now.has(one.target);
		assert.equal(outcome.outcome, isUnknown ? "rejected" : "accepted", JSON.stringify(outcome));
		if (outcome.outcome === "rejected") {
			this.seen.add("rejected");
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

	/** The next block holds a target with one of the backruns that builders have for it. */
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
		this.#advance();
		await this.fixture.block(mined);
		await this.#worked();
	}

	/** A ledger that is loaded from the disk answers the same. */
	async #restart(): Promise<void> {
		const ledger = await this.fixture.restartedLedger();
		for (const one of this.#bids)
			for (const builder of BUILDERS)
				assert.equal(ledger.recordOf(builder, bidderOf(one)), this.#recordAt(builder, one));
		this.seen.add("restarted");
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

	/**
	 * Less from the next head on. Not more: a bid that by what is known can't win is not simulated
	 * again.
	 */
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
		const { transactions, head } = this.fixture;
		const record = transactions.records.get(entry.tx.hash) ?? assert.fail();
		assert.ok(transactions.expireIfOver(record, head.number + 1_000));
	}

	#over(one: ModelBid, how: string): void {
		if (one.over) return;
		if (this.#isLive(one)) this.seen.add(how);
		one.over = true;
	}

	/** Applies the changes that the next head brings. */
	#advance(): void {
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
					this.#payments.push({ block, by: one, paid });
				}
				if (behind === one.hash && !one.over) one.landed = block.hash;
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
	}

	#isLive(one: ModelBid): boolean {
		return !one.over && one.landed === null && this.#targets[one.target] !== null;
	}

	/** The bidder's record at a builder: a tenth of its payments, by the chain as it stands. */
	#recordAt(builder: string, one: ModelBid): bigint {
		if (builder !== "a") return 0n;
		const paid = this.#payments.filter(
			({ block, by }) =>
				this.#chain.some(({ hash }) => hash === block.hash) && bidderOf(by) === bidderOf(one),
		);
		return paid.reduce((sum, { paid }) => sum + (paid ?? 0n) - ((paid ?? 0n) * 90n) / 100n, 0n);
	}

	#isValid(one: ModelBid): boolean {
		const isKnown =
			!this.#out.now.has(one.client) && !this.#failing.now.has(one.target) && one.value !== null;
		const { next } = this.fixture;
		return this.#isLive(one) && isKnown && one.first <= next && next <= one.last;
	}

	/**
	 * The bids that a builder shall have for a target: half by record, a quarter by bid, the rest by
	 * lot, each drawn anew among those left.
	 */
	#best(builder: string, target: number): readonly ModelBid[] {
		const valid = this.#bids.filter(
			(one) => one.target === target && this.#isValid(one) && (one.builders?.includes(builder) ?? true),
		);
		const draw = drawing(SECRET, this.fixture.next, this.#entries[target]?.tx.hash ?? "");
		const chosen: ModelBid[] = [];
		/** Clients that have a slot by bid or by lot, and how many each network has by lot. */
		const clients = new Set<string>();
		const inNetwork = new Map<string, number>();
		const free = () => valid.filter((one) => chosen.every(({ sender }) => sender !== one.sender));
		const first = (from: readonly ModelBid[], isBefore: (one: ModelBid, than: ModelBid) => boolean) =>
			from.length === 0 ? undefined : from.reduce((best, one) => (isBefore(one, best) ? one : best));
		const chance = (one: ModelBid) =>
			-Math.log(draw(`bidder ${bidderOf(one)}`)) / Number(this.#recordAt(builder, one));
		const had = new Set<string>();
		for (let i = 0; i < SLOTS / 2; i += 1) {
			const from = free().filter((one) => this.#recordAt(builder, one) > 0n && !had.has(bidderOf(one)));
			const one = first(from, (a, b) => (chance(a) === chance(b) ? isBetter(a, b) : chance(a) < chance(b)));
			if (one === undefined) break;
			chosen.push(one);
			had.add(bidderOf(one));
			this.seen.add("by record");
		}
		for (let i = 0; i < SLOTS / 4; i += 1) {
			const one = first(
				free().filter(({ client }) => !clients.has(client)),
				isBetter,
			);
			if (one === undefined) break;
			chosen.push(one);
			clients.add(one.client);
		}
		while (chosen.length < SLOTS) {
			const from = free().filter(({ client }) => !clients.has(client));
			const place = ({ client }: ModelBid) => [
				inNetwork.get(networkOf(client)) ?? 0,
				draw(`network ${networkOf(client)}`),
				draw(`client ${client}`),
			];
			const one = first(from, (a, b) => {
				const [left, right] = [place(a), place(b)];
				const at = left.findIndex((value, i) => value !== right[i]);
				return at < 0 ? isBetter(a, b) : (left[at] ?? 0) < (right[at] ?? 0);
			});
			if (one === undefined) break;
			const network = networkOf(one.client);
			if ((inNetwork.get(network) ?? 0) > 0) this.seen.add("a network twice");
			inNetwork.set(network, (inNetwork.get(network) ?? 0) + 1);
			chosen.push(one);
			clients.add(one.client);
			this.seen.add("by lot");
		}
		if (chosen.length < new Set(valid.map(({ client }) => client)).size && chosen.length === SLOTS)
			this.seen.add("no slot");
		return chosen;
	}

	#compare(where: string): void {
		const { next } = this.fixture;
		assert.deepEqual(this.fixture.faults, [], where);
		for (const builder of BUILDERS) {
			const expected = this.#targets.flatMap((target, i) => (target ? this.#best(builder, i) : []));
			const out = [...this.#held]
				.filter(([name, { block }]) => name.startsWith(`${builder} `) && block === next)
				.map(([, { target, label }]) => `${target} ${label}`);
			const wanted = expected.map(({ target, label }) => `T${target} ${label}`);
			assert.deepEqual(out.sort(), wanted.sort(), `${where}: at ${builder}, for ${next}`);
		}
		for (const bid of this.fixture.bids.targets().flatMap((target) => this.fixture.bids.of(target))) {
			const told = bid.record.blocks.find(({ block }) => block === next);
			if (told === undefined) continue;
			const { stage, reason, bid: claimed, paid, placed, isDisclosed } = told;
			assert.deepEqual(
				{ stage, reason, claimed, paid, placed, isDisclosed },
				{
					stage: "ACCEPTED",
					reason: null,
					claimed: bid.claimed,
					paid: null,
					placed: false,
					isDisclosed: false,
				},
				where,
			);
		}
	}
}

/** The key of a bidder's record: a signature, else the sender at its client. */
function bidderOf({ owner, client, sender }: ModelBid): string {
	return owner.startsWith("0x") ? owner : `${sender} ${client}`;
}

function networkOf(client: string): string {
	return `${client.split(".").slice(0, 3).join(".")}.0/24`;
}

function isBetter(one: ModelBid, than: ModelBid): boolean {
	const [a, b] = [one.value ?? 0n, than.value ?? 0n];
	return a === b ? one.seq < than.seq : a > b;
}

test("builders always have the bids that the rules give a slot", async () => {
	const seen = new Set<string>();
	await fc.assert(
		fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 60, size: "max" }), (commands) =>
			new Run(seen).all(commands),
		),
		{ ...RUNS, examples: SELDOM.map((commands): [Command[]] => [commands]) },
	);
	for (const corner of CORNERS) assert.ok(seen.has(corner), `never ${corner}`);
});
