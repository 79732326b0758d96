// The table of floods by one client: their orders, and the rules that must hold at any size. `npm
// test` runs them with small counts (test/attacks/floods.test.ts), the nightly run at full size and
// by the clock (floods.nightly.ts).

import assert from "node:assert/strict";
import { EMITS } from "../contracts.ts";
import { rawTransaction, testAccount } from "../txFactory.ts";
import { until } from "../until.ts";
import { BURNS_AND_PAYS } from "./attackContracts.ts";
import type { AttackFixture, Door } from "./attackFixture.ts";
import { addTallies, type Tally } from "./flood.ts";
import { emit, follow, LOG_EMITTER } from "./logReaders.ts";
import type { Flood, Size } from "./runFlood.ts";
import { ask, HONEST, resultOf } from "./wire.ts";

const KIB = 1024;
const MIB = KIB * KIB;
const GWEI = 1_000_000_000;
const ETHER = 10n ** 18n;
const BURNER = `0x${"b7".repeat(20)}`;
const EMITTER = `0x${"e4".repeat(20)}`;
/** The receiver of the transactions of plain bundles, and their ether, as they are on the wire. */
const RECEIVER = `00000000000000be11e88${ETHER.toString(16).padStart(16, "0")}`;
/**
 * The bytes of one client's transactions that cannot be in the next block, and what each counts
 * beside its own.
 */
const [WAITING_BYTES, ENTRY_BYTES] = [4 * MIB, 512];
const LARGE = 128 * KIB - 200;
const MOST_LARGE = WAITING_BYTES / (LARGE + ENTRY_BYTES);
/** The most calls that a head may cost the node beside those for the transactions that are sent. */
const CALLS_A_HEAD = 60;
/** Accounts of a bundle. */
const CROWD = 100;
/** Connections of one client: the setting of floods.test.ts, and the default. */
export const MAX_CONNECTIONS: Readonly<Record<Size, number>> = { short: 64, full: 256 };
const MAX_FILTERS = 64;
const MAX_BIDS_OF_SENDER = 64;
/**
 * Units of the rate limit: at once and per ms with the default setting, and for a request of a MiB.
 */
const [BURST, UNITS_PER_MS, UNITS_OF_MIB] = [1_000, 0.1, 64];
const CLIENT_FULL = "-32005 too many pending transactions from this client";
const LIMITED = "-32005 limit exceeded: try again in # s";
const ANSWER_MS = 30_000;

/**
 * Those of transactions that cannot be in the next block. They come first: the others make heads
 * more expensive.
 */
const POOL: readonly Flood[] = [
	{
		title: "transactions without a fee are refused, and make no head expensive",
		attack: "waiting",
		count: { short: 30, full: 5_000 },
		prepare: ({ fixture }) => ({
			order: { fee: 0, keys: 8, lastingMs: 4_000 },
			async holds({ outcomes }) {
				// At full size the rate limit refuses most of them.
				const wordings = Object.keys(outcomes)
					.filter((text) => text !== LIMITED)
					.map((text) => text.replace(/less than block.*/, "less than block"));
				assert.deepEqual(wordings, ["-32000 max fee per gas less than block"]);
				await assertCheapHeads(fixture);
			},
		}),
	},
	{
		title: "transactions that wait for a lower base fee cost nothing until it has fallen",
		attack: "waiting",
		count: { short: 80, full: 400 },
		async prepare({ fixture, accounts, size }) {
			const count = size === "short" ? 80 : 400;
			await fund(fixture, accounts, count);
			await fixture.chain.rpc("anvil_setNextBlockBaseFeePerGas", [`0x${GWEI.toString(16)}`]);
			await fixture.workedOff();
			return {
				// A fifth of the base fee is twelve blocks away.
				order: { fee: GWEI / 5 },
				async holds({ outcomes }) {
					assert.deepEqual(outcomes, { accepted: count });
					await assertCheapHeads(fixture);
				},
			};
		},
	},
	{
		title: "transactions of 128 KiB after a nonce gap, from empty accounts, leave room for others",
		attack: "gapped",
		count: { short: 6, full: 4_110 },
		prepare: () => ({
			order: { size: LARGE, fee: 0, keys: 8, connections: 16, lastingMs: 4_000 },
			holds: ({ outcomes: { accepted = 0 } }) => assert.ok(accepted <= MOST_LARGE, `${accepted} accepted`),
		}),
	},
	{
		title: "transactions of 128 KiB after a nonce gap, from funded accounts, use 4 MiB of the pool at most",
		attack: "gapped",
		count: { short: 36, full: 48 },
		async prepare({ fixture, accounts }) {
			await fund(fixture, accounts, 48);
			return {
				order: { size: LARGE, fee: 2 * GWEI, connections: 4 },
				holds({ outcomes }) {
					assert.deepEqual(Object.keys(outcomes).sort(), [CLIENT_FULL, "accepted"]);
					assert.ok((outcomes.accepted ?? 0) <= MOST_LARGE, JSON.stringify(outcomes));
				},
			};
		},
	},
];

/** Those of single requests that are cheap to send. */
const REQUESTS: readonly Flood[] = [
	{
		title: "eth_callMany of 690,000 empty calls is refused",
		attack: "emptyCalls",
		count: { short: 2, full: 6 },
		prepare: () => ({ order: { size: 690_000, connections: 2 }, holds: assertRefused }),
	},
	{
		title: "blocks that are objects of 150,000 keys are refused",
		attack: "blockObjects",
		count: { short: 4, full: 4 },
		prepare: () => ({ order: { size: 150_000, connections: 1 }, holds: assertRefused }),
	},
	{
		title: "a request of a MiB uses more of the rate limit than a small one",
		attack: "largeCalls",
		count: { short: 20, full: 60 },
		prepare: () => ({
			order: { size: MIB },
			holds({ outcomes, ms }) {
				const most = (BURST + ms * UNITS_PER_MS) / UNITS_OF_MIB;
				assert.ok((outcomes.accepted ?? 0) <= most, JSON.stringify(outcomes));
			},
		}),
	},
	...[
		{ attack: "calls", method: "eth_call", ms: 5_000, most: 6, full: 100 },
		{ attack: "proofs", method: "eth_getProof", ms: 1_000, most: 12, full: 600 },
	].map(
		({ attack, method, ms, most, full }): Flood => ({
			title: `${method} that the node answers late delay nobody else`,
			attack,
			count: { short: 30, full },
			prepare: ({ size }) => ({
				slow: { method, ms, most },
				order:
					size === "short" ? { connections: 30 } : { connections: full, lastingMs: 1_000, patienceMs: 5_000 },
			}),
		}),
	),
];

/** Those of connections. */
const CONNECTIONS: readonly Flood[] = [
	{
		title: "idle connections of one address keep nobody else out",
		attack: "idle",
		count: { short: MAX_CONNECTIONS.short + 20, full: 9_999 },
		prepare: ({ fixture, door, from, size }) => ({
			async holds() {
				// The system shows a new connection for a moment before it is refused.
				await until(
					`${MAX_CONNECTIONS[size]} connections are open at most`,
					async () => (await fixture.connectionsFrom(from, door)) === MAX_CONNECTIONS[size],
				);
			},
		}),
	},
	{
		title: "websockets that never read what they subscribed to cost no memory",
		attack: "unread",
		count: { short: 4, full: 100 },
		async prepare({ fixture, door, accounts, other }) {
			await fund(fixture, accounts, 4);
			return {
				order: { size: 11 },
				async run(order) {
					const opened = await door.attacker.attack("unread", order);
					const shown = {
						count: 4,
						size: 127 * KIB,
						accounts,
						connections: 1,
						from: other,
					};
					await door.attacker.attack("shown", shown);
					return opened;
				},
				holds: ({ outcomes, sent }) => assert.deepEqual(outcomes, { accepted: sent }),
			};
		},
	},
	{
		title: "websockets that send pings without an end delay nobody",
		attack: "pings",
		count: { short: 2 },
		prepare: () => ({ order: { lastingMs: 300, reads: false } }),
	},
];

/** Those of bundles, which are free for their senders. */
const BUNDLES: readonly Flood[] = [
	{
		title: "bids that burn 16 million gas each under one uuid do not delay an honest bid",
		attack: "heavyBids",
		count: { short: 6, full: 700 },
		async prepare({ fixture, door, accounts, size }) {
			await fund(fixture, accounts, 1);
			const order = { uuid: "one of mine", size: 16_000_000, to: await burner(fixture), lastingMs: 4_000 };
			const connections = size === "short" ? 6 : 256;
			const target = await bidTarget(fixture, door, accounts + 1);
			return { order: { ...order, connections, target }, holds: assertSomeAccepted };
		},
	},
	{
		title: "one sender has 64 bids",
		attack: "heavyBids",
		count: { short: MAX_BIDS_OF_SENDER + 2 },
		async prepare({ fixture, door, accounts }) {
			await fund(fixture, accounts, 1);
			const to = await burner(fixture);
			// The bids stay until then.
			const block = (await fixture.nextBlock()) + 30;
			const targets: string[] = [];
			for (const i of [1, 2, 3]) targets.push(await bidTarget(fixture, door, accounts + i));
			return {
				async run(order) {
					const each = {
						...order,
						block,
						to,
						size: 100_000,
						connections: 8,
						count: order.count / targets.length,
					};
					const tallies: Tally[] = [];
					for (const target of targets)
						tallies.push(await door.attacker.attack("heavyBids", { ...each, target }));
					return addTallies(tallies);
				},
				holds({ outcomes }) {
					const refusal = "-32005 limit exceeded: # bids of one sender";
					assert.deepEqual(outcomes, { accepted: MAX_BIDS_OF_SENDER, [refusal]: 2 });
				},
			};
		},
	},
	{
		title: "plain bundles of many accounts cost the node a batch each",
		attack: "crowdedBundles",
		count: { short: 2, full: 200 },
		async prepare({ fixture, accounts }) {
			return {
				order: { size: CROWD, block: await fixture.nextBlock() },
				holds(tally) {
					assertSomeAccepted(tally);
					const crowd = new Set(
						Array.from({ length: 2 * CROWD }, (_, i) => testAccount(accounts + i).address),
					);
					const calls = fixture.node.calls().filter(({ params }) => crowd.has(String(params[0])));
					const requests = calls.reduce((sum, { batch }) => sum + 1 / batch, 0);
					assert.ok(calls.length > 0, "the node is asked for the accounts");
					assert.ok(requests < calls.length / 10, `${calls.length} calls in ${requests} requests`);
				},
			};
		},
	},
	{
		title: "plain bundles of empty accounts reach no builder",
		attack: "plainBundles",
		count: { short: 8, full: 4_000 },
		async prepare({ fixture }) {
			const reached = fixture.builder.count(RECEIVER);
			return {
				order: { keys: 8, connections: 64, lastingMs: 4_000, block: await fixture.nextBlock() },
				holds(tally) {
					assertSomeAccepted(tally);
					assert.equal(reached(), 0, "requests with one of them at the builder");
				},
			};
		},
	},
	{
		title: "bundles full of authorizations delay nobody",
		attack: "authorizations",
		count: { short: 2 },
		async prepare({ fixture, accounts }) {
			await fund(fixture, accounts, 101);
			const block = await fixture.nextBlock();
			return { order: { made: 1, size: 60, connections: 2, block }, holds: assertSomeAccepted };
		},
	},
];

/** Those of logs. */
const LOGS: readonly Flood[] = [
	{
		title: "one client has 64 filters",
		attack: "newFilters",
		count: { short: MAX_FILTERS + 6 },
		prepare: () => ({
			holds({ outcomes }) {
				const refusal = "-32005 limit exceeded: # filters per client";
				assert.deepEqual(outcomes, { accepted: MAX_FILTERS, [refusal]: 6 });
			},
		}),
	},
	{
		title: "filters that have too much to return are refused by size",
		attack: "polls",
		count: { short: 1 },
		prepare: ({ fixture, door, from }) => ({
			async run(order) {
				await door.attacker.attack("filters", { isEqual: true, count: MAX_FILTERS, to: LOG_EMITTER, from });
				await emit(fixture, 1_000);
				await fixture.workedOff();
				return door.attacker.attack("polls", order);
			},
			holds({ outcomes }) {
				const refusals = Object.keys(outcomes).filter((text) =>
					/^-32005 limit exceeded: too many results/.test(text),
				);
				assert.equal(refusals.length, 1, JSON.stringify(outcomes));
			},
		}),
	},
	{
		title: "websockets that leave too many logs unread are closed, and others get all of theirs",
		attack: "logReaders",
		count: { short: 1 },
		prepare: ({ fixture, door, from }) => ({
			async run(order) {
				const honest = await follow(door.process.url);
				const tally = await door.attacker.attack("logReaders", {
					...order,
					size: 16,
					isEqual: true,
					to: LOG_EMITTER,
				});
				assert.deepEqual(tally.outcomes, { accepted: order.count });
				await until("they are open", async () => (await fixture.connectionsFrom(from, door)) === order.count);
				await emit(fixture);
				await honest.next();
				honest.client.close();
				return tally;
			},
			async holds() {
				// Boost takes only what its client reads, and ends it when it answers no ping.
				if (door !== fixture.door) return;
				// The logs of one block are no more than a reader may have to read at once.
				await until("they are closed", async () => {
					if ((await fixture.connectionsFrom(from, door)) === 0) return true;
					await emit(fixture);
					return false;
				});
			},
		}),
	},
];

/** Those of a web page, which has its visitor's browser send them. */
const PAGES: readonly Flood[] = [
	{
		title: "a page that uses up its rate limit costs its visitor nothing",
		attack: "largeCalls",
		count: { short: 10 },
		async prepare({ door }) {
			const page = { from: HONEST, origin: "https://page.example" };
			const call = (origin: string) => ({
				url: door.process.url,
				from: HONEST,
				headers: { origin },
				deadlineMs: ANSWER_MS,
			});
			const filter = [{ address: EMITTER }];
			return {
				async run(order) {
					const filters = await door.attacker.attack("newFilters", { ...page, count: MAX_FILTERS + 1 });
					assert.ok((filters.outcomes.accepted ?? 0) <= MAX_FILTERS, JSON.stringify(filters));
					return until("it is limited", async () => {
						const tally = await door.attacker.attack("largeCalls", { ...order, ...page, size: MIB });
						return LIMITED in tally.outcomes && tally;
					});
				},
				async holds() {
					const visitor = call("chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn");
					assert.match(String(await resultOf("eth_newFilter", filter, visitor)), /^0x/);
				},
			};
		},
	},
	{
		title: "a page cannot cancel its visitor's transaction",
		attack: "cancels",
		count: { short: 4 },
		async prepare({ fixture, door, accounts }) {
			const target = await bidTarget(fixture, door, accounts);
			return {
				order: { from: HONEST, origin: "https://other.example", target },
				async holds(tally) {
					assertRefused(tally);
					const visitor = { url: door.process.url, from: HONEST, deadlineMs: ANSWER_MS };
					const { error, result } = await ask("eth_cancelTransaction", [target], visitor);
					assert.equal(result, true, JSON.stringify(error));
				},
			};
		},
	},
	{
		title: "a page that opens websockets leaves its visitor his connections",
		attack: "unread",
		count: { short: MAX_CONNECTIONS.short + 10 },
		isHeld: true,
		prepare: () => ({
			order: { from: HONEST, origin: "https://page.example", size: 1 },
			holds: ({ outcomes, sent }) => assert.ok((outcomes.accepted ?? 0) < sent, JSON.stringify(outcomes)),
		}),
	},
];

/** All rows, in the order in which one relay bears them. */
export const FLOODS: readonly Flood[] = [...POOL, ...REQUESTS, ...CONNECTIONS, ...LOGS, ...PAGES, ...BUNDLES];

/** The rows whose rule boost has too. */
export const FLOODS_OF_BOOST: readonly Flood[] = [
	...FLOODS.filter(({ attack }) => ["emptyCalls", "logReaders", "authorizations"].includes(attack)),
	...PAGES,
];

function assertRefused({ outcomes }: Tally): void {
	assert.equal(outcomes.accepted, undefined, JSON.stringify(outcomes));
	for (const text of Object.keys(outcomes)) assert.match(text, /^-\d+ /, JSON.stringify(outcomes));
}

function assertSomeAccepted({ outcomes }: Tally): void {
	assert.ok((outcomes.accepted ?? 0) > 0, JSON.stringify(outcomes));
}

/** Asserts the number of calls that a head costs the node. */
async function assertCheapHeads(fixture: AttackFixture): Promise<void> {
	await fixture.workedOff();
	fixture.node.reset();
	for (let i = 0; i < 2; i += 1) await fixture.workedOff();
	const calls = fixture.node.calls().length / 2;
	assert.ok(calls < CALLS_A_HEAD, `${calls} calls to the node for a head`);
}

/** Gives `count` accounts from number `first` on an ether each, which the relay knows. */
async function fund(fixture: AttackFixture, first: number, count: number): Promise<void> {
	const accounts = Array.from({ length: count }, (_, i) => testAccount(first + i));
	await fixture.chain.fund(accounts, ETHER);
	await fixture.workedOff();
}

async function burner({ chain }: AttackFixture): Promise<string> {
	await chain.rpc("anvil_setCode", [BURNER, BURNS_AND_PAYS]);
	return BURNER;
}

/** Submits a transaction of a new account that searchers see, and returns its hash. */
async function bidTarget(fixture: AttackFixture, { process }: Door, account: number): Promise<string> {
	await fixture.chain.rpc("anvil_setCode", [EMITTER, EMITS]);
	const by = testAccount(account);
	await fund(fixture, account, 1);
	const raw = `0x${rawTransaction({ by, to: EMITTER }).toString("hex")}`;
	const call = { url: `${process.url}/maxbackruns`, from: HONEST, deadlineMs: ANSWER_MS };
	const hash = String(await resultOf("eth_sendRawTransaction", [raw], call));
	await until("searchers see it", async () => (await fixture.relay.client.status(hash)).shared);
	return hash;
}
