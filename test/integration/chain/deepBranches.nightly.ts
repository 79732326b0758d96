// Relay and boost whose node switches several times between two branches of up to 64 blocks, while
// clients submit, replace and cancel. It stays on one branch at the end, and what was acknowledged
// agrees with that chain.

import assert from "node:assert/strict";
import { afterEach, type TestContext, test } from "node:test";
import { type DevBuilder, startDevBuilder } from "../../devnet/devBuilder.ts";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import {
	type Acknowledged,
	cancels,
	contradiction,
	minedOn,
	OVERTAKEN,
	statusAt,
	submits,
} from "../../support/agreement.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import { type Actor, ETHER, GWEI, type Signed } from "../../support/relayFixture.ts";
import { SeededRandom } from "../../support/seededRandom.ts";
import { until } from "../../support/until.ts";

const PATHS = ["/fast", "/noreverts", "/nochecks", "/fullprivacy"] as const;
/** Paths that boost keeps in its journal; the others go to our relay alone. */
const JOURNALED: ReadonlySet<string> = new Set(["/fast", "/noreverts"]);
const KINDS = { plain: 3, chain: 2, replaced: 2, cancelled: 2, lateReplaced: 2, lateCancelled: 2 };
const TIP = 2n * GWEI;
const FUNDS = 100n * ETHER;
/** How many of the last transactions a stranger may publish on the unseen branch. */
const RECENT = 8;
/**
 * Heights above the common start at each switch: of the branch that the node leaves, and of the one
 * that it goes to. No block is built between the last switches.
 */
const LEGS: readonly (readonly [left: number, next: number])[] = [
	[20, 22],
	[44, 42],
	[62, 64],
	[64, 64],
	[64, 64],
	[64, 64],
];
/** Rounds of traffic while no block is built. */
const ROUNDS = 3;
const USERS = 4;
const LIFE_BLOCKS = 1_000;

const seed = Number(process.env.DEEP_BRANCHES_SEED ?? Math.floor(Math.random() * 2 ** 31));
let random: SeededRandom;
let world: World | undefined;
afterEach(async () => {
	await world?.stop();
	world = undefined;
});

/** A chain with what builds its blocks. */
interface Branch {
	readonly chain: DevChain;
	readonly builder: Pick<DevBuilder, "buildBlock">;
	/** Its blocks since the common start. */
	height: number;
}

/** Two branches, and a relay and a boost instance whose node is on one of them. */
class World {
	readonly fixture: BoostFixture;
	readonly boost: BoostClient;
	readonly branches: readonly [Branch, Branch];
	/** The branch that the node is on. */
	seen: Branch;
	readonly #balancer: NodeProxy;
	readonly #feed: FeedClient;
	readonly #heads: string;
	readonly #stops: (() => Promise<void>)[];

	private constructor(
		fixture: BoostFixture,
		boost: BoostClient,
		branches: World["branches"],
		feed: FeedClient,
		heads: string,
		stops: (() => Promise<void>)[],
	) {
		this.fixture = fixture;
		this.boost = boost;
		this.branches = branches;
		[this.seen] = branches;
		this.#balancer = fixture.system.node as NodeProxy;
		this.#feed = feed;
		this.#heads = heads;
		this.#stops = stops;
	}

	/** `users`: how many accounts have funds in both branches. */
	static async start(users: number): Promise<{ readonly started: World; readonly actors: Actor[] }> {
		const stops: (() => Promise<void>)[] = [];
		try {
			const chain = await startDevChain({ slotSeconds: 1 });
			stops.push(() => chain.stop());
			const builder = await startDevBuilder({ chain, name: "other", manual: true });
			stops.push(() => builder.stop());
			const fixture = await startBoostFixture({
				system: {
					proxied: true,
					builders: [{ name: "dev" }, { name: "other", url: builder.url }],
					env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
				},
			});
			stops.push(() => fixture.stop());
			const { system } = fixture;
			const boost = await fixture.startBoost({ env: { ETH_RPC_URL: system.node?.url } });
			const actors: Actor[] = [];
			for (let i = 0; i < users; i += 1) actors.push(await fixture.users.actor(FUNDS));
			await fixture.users.passBlock();
			await chain.rpc("anvil_reset");
			await chain.rpc("anvil_loadState", [await system.chain.rpc("anvil_dumpState")]);
			assert.equal(await headOf(chain), await headOf(system.chain), "both have a common start");
			// Else both might have the same blocks.
			await chain.rpc("anvil_setCoinbase", [`0x${"51".repeat(20)}`]);
			await chain.rpc("anvil_mine", ["0x1"]);
			const feed = await FeedClient.open(system.client.url.replace("http", "ws"));
			stops.push(async () => feed.close());
			const heads = await feed.subscribe("newHeads");
			const own = { chain: system.chain, builder: system.builder, height: 0 };
			const other = { chain, builder, height: 1 };
			return { started: new World(fixture, boost, [own, other], feed, heads, stops), actors };
		} catch (thrown) {
			for (const stop of stops.reverse()) await stop();
			throw thrown;
		}
	}

	get unseen(): Branch {
		const [own, other] = this.branches;
		return this.seen === own ? other : own;
	}

	/** The next block of the branch that is seen; the relay follows. */
	async grows(): Promise<void> {
		await build(this.seen);
		await this.#follows();
	}

	/** The next block of the other branch, with some of `raws` as anybody may have published them. */
	async growsUnseen(raws: readonly string[]): Promise<void> {
		const { chain } = this.unseen;
		for (const raw of raws) await chain.rpc("eth_sendRawTransaction", [raw]).catch(() => null);
		await build(this.unseen);
	}

	/**
	 * The node switches to the other branch, and the relay follows: it announces all of that branch's
	 * blocks.
	 */
	async switches(): Promise<void> {
		const { length } = this.#feed.received(this.#heads);
		this.seen = this.unseen;
		this.#balancer.setTargets(this.seen.chain.url);
		await this.#follows();
		assert.equal(this.#feed.received(this.#heads).length - length, this.seen.height);
	}

	async #follows(): Promise<void> {
		const hash = await headOf(this.seen.chain);
		await until("the relay follows", () => this.#feed.received(this.#heads).at(-1)?.hash === hash);
	}

	async stop(): Promise<void> {
		for (const stop of this.#stops.reverse()) await stop();
	}
}

async function build(branch: Branch): Promise<void> {
	await branch.builder.buildBlock();
	branch.height += 1;
}

async function headOf(chain: DevChain): Promise<string> {
	return ((await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { hash: string }).hash;
}

/** The requests of clients. */
class Traffic {
	/** All that was acknowledged, by hash. */
	readonly all = new Map<string, Acknowledged>();
	/** How many transactions an account must have in the chain at the end at least. */
	readonly owed = new Map<string, number>();
	refused = 0;
	readonly #boost: BoostClient;
	readonly #actors: Actor[];
	/** The first transactions of accounts that have sent no other, oldest first. */
	readonly #single: { readonly actor: Actor; readonly tx: Signed }[] = [];

	constructor(boost: BoostClient, actors: Actor[]) {
		this.#boost = boost;
		this.#actors = actors;
	}

	get recent(): readonly string[] {
		return [...this.all.values()].slice(-RECENT).map(({ tx }) => tx.raw);
	}

	/** Some users at once. */
	async round(): Promise<void> {
		await Promise.all(Array.from({ length: USERS }, () => this.#acts()));
	}

	async #acts(): Promise<void> {
		const path = random.pick(PATHS);
		const kind = random.weighted(KINDS);
		if (kind === "lateReplaced" || kind === "lateCancelled") {
			const earlier = this.#single.splice(random.below(this.#single.length || 1), 1)[0];
			if (earlier === undefined) return;
			const { actor, tx } = earlier;
			if (kind === "lateReplaced") await this.#replace(path, actor, tx);
			else await this.#cancel(tx);
			return;
		}
		const actor = this.#actors.pop();
		if (actor === undefined) throw new Error("there are too few accounts");
		const first = await this.#submit(path, actor, 0);
		if (first === null) return;
		this.owed.set(actor.address, 1);
		if (kind === "plain") this.#single.push({ actor, tx: first });
		else if (kind === "cancelled") await this.#cancel(first);
		else if (kind === "replaced") await this.#replace(path, actor, first);
		else if ((await this.#submit(path, actor, 1)) !== null) this.owed.set(actor.address, 2);
	}

	async #submit(path: string, actor: Actor, nonce: number, factor = 1n): Promise<Signed | null> {
		const fees = { maxPriorityFeePerGas: TIP * factor, maxFeePerGas: 50n * TIP * factor };
		const sent = await submits(this.#boost, path, actor.sign({ nonce, ...fees }));
		if (sent === null) this.refused += 1;
		else this.all.set(sent.tx.hash, sent);
		return sent?.tx ?? null;
	}

	async #replace(path: string, actor: Actor, tx: Signed): Promise<void> {
		const other = await this.#submit(path, actor, 0, 2n);
		// One of the two must be in the chain.
		if (other !== null) for (const { hash } of [tx, other]) this.#mayEnd(hash, OVERTAKEN);
	}

	async #cancel(tx: Signed): Promise<void> {
		if (!(await cancels(this.#boost, tx))) return;
		this.#mayEnd(tx.hash, ["CANCELLED"]);
		this.owed.delete(tx.from);
	}

	#mayEnd(hash: string, mayEnd: readonly string[]): void {
		const one = this.all.get(hash);
		if (one !== undefined) this.all.set(hash, { ...one, mayEnd });
	}
}

/** The accounts that have fewer transactions in the chain than they must have. */
async function unpaid(chain: DevChain, { owed }: Traffic): Promise<readonly string[]> {
	const accounts = [...owed];
	const counts = await Promise.all(
		accounts.map(([address]) => chain.rpc("eth_getTransactionCount", [address, "latest"])),
	);
	return accounts.flatMap(([address, least], i) => (Number(counts[i]) < least ? [address] : []));
}

/** Reports by relay and boost that the chain contradicts. */
async function contradictions({ fixture, boost, seen }: World, { all }: Traffic): Promise<readonly string[]> {
	const wrong: (string | null)[] = [];
	for (const one of all.values()) {
		const found = await minedOn(seen.chain, one.tx);
		wrong.push(contradiction(one, found, await fixture.users.status(one.tx)));
		const atBoost = contradiction(one, found, await statusAt(boost, one.tx));
		wrong.push(atBoost === null ? null : `at boost: ${atBoost}`);
		const last = (await fixture.users.events(one.tx)).findLast(({ type }) => type === "included");
		if (found !== null && last?.blockHash !== found.blockHash)
			wrong.push(
				`${one.tx.hash} is included in ${last?.blockHash}, and the chain has it in ${found.blockHash}`,
			);
	}
	return wrong.filter((one) => one !== null);
}

/** Boost's reports on journaled transactions, without the relay, that the chain contradicts. */
async function journalFaults({ boost, seen }: World, { all }: Traffic): Promise<readonly string[]> {
	const wrong: string[] = [];
	for (const one of all.values()) {
		if (!JOURNALED.has(one.path)) continue;
		const found = await minedOn(seen.chain, one.tx);
		const { stage = "" } = await statusAt(boost, one.tx);
		const may = found === null ? one.mayEnd : [found.stage];
		if (!may.includes(stage)) wrong.push(`${one.tx.hash} is ${stage}, and not ${may}`);
	}
	return wrong;
}

/** Waits until nothing is wrong any more; throws with what still is. */
async function agrees(faults: () => Promise<readonly string[]>): Promise<void> {
	let wrong: readonly string[] = [];
	await until("all agree", async () => {
		wrong = await faults();
		return wrong.length === 0;
	}).catch(() => null);
	assert.deepEqual(wrong, []);
}

/**
 * Runs the traffic over all legs, with or without switches, and returns how many transactions have
 * left a block.
 */
async function runs(context: TestContext, isSwitching: boolean): Promise<number> {
	random = new SeededRandom(seed);
	context.diagnostic(`DEEP_BRANCHES_SEED=${seed}`);
	const most = LEGS.reduce((sum, [left]) => sum + left, 0) + ROUNDS * LEGS.length;
	const { started, actors } = await World.start(USERS * most);
	world = started;
	const traffic = new Traffic(started.boost, actors);
	const growsUnseen = () => started.growsUnseen(traffic.recent.filter(() => random.oneIn(4)));
	for (const [left, next] of LEGS) {
		while (started.seen.height < left) {
			await Promise.all([
				traffic.round(),
				isSwitching && started.unseen.height < next ? growsUnseen() : undefined,
			]);
			await started.grows();
		}
		while (isSwitching && started.unseen.height < next) await growsUnseen();
		const rounds = async () => {
			for (let i = 0; i < ROUNDS; i += 1) await traffic.round();
		};
		await Promise.all([isSwitching ? started.switches() : undefined, rounds()]);
	}
	await until("all that was acknowledged is in the chain", async () => {
		if ((await unpaid(started.seen.chain, traffic)).length === 0) return true;
		await started.grows();
		return false;
	});
	await started.grows();
	await agrees(() => contradictions(started, traffic));
	const stages: Record<string, number> = {};
	let reorganised = 0;
	for (const { tx } of traffic.all.values()) {
		const events = await started.fixture.users.events(tx);
		assert.ok(!events.some(({ type }) => type === "expired"), `${tx.hash} has expired`);
		if (events.some(({ type }) => type === "reorged")) reorganised += 1;
		const stage = String(await started.fixture.system.client.stage(tx.hash));
		stages[stage] = (stages[stage] ?? 0) + 1;
	}
	context.diagnostic(
		`${traffic.all.size} acknowledged, ${traffic.refused} refused, ${reorganised} left a block: ${JSON.stringify(stages)}`,
	);
	for (const stage of ["INCLUDED", "REPLACED", "CANCELLED"])
		assert.ok((stages[stage] ?? 0) > 0, `some are ${stage}`);
	await started.fixture.goesOut("relay", started.boost);
	await agrees(() => journalFaults(started, traffic));
	return reorganised;
}

test("agrees with the chain of a node that stays on one branch", async (context) => {
	assert.equal(await runs(context, false), 0);
});

test("agrees with the last branch of a node that switches six times, by up to 64 blocks", async (context) => {
	assert.ok((await runs(context, true)) > 0);
});
