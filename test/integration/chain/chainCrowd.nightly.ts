// Accounts with chains of twenty nonces each, sent at once in random order, on random paths, by
// HTTP, in batches and over websockets: all are mined in order, in the fewest blocks that the gas
// limit allows, with the right pending nonces throughout. CROWD_ACCOUNTS=50 is the whole crowd;
// CROWD_SEED repeats a run.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { BuiltBlock } from "../../devnet/blockMaker.ts";
import { WsClient } from "../../support/clients.ts";
import { EMITS } from "../../support/contracts.ts";
import { PendingWatch } from "../../support/pendingNonces.ts";
import { GWEI, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { SeededRandom } from "../../support/seededRandom.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { signedTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const ACCOUNTS = Number(process.env.CROWD_ACCOUNTS ?? 6);
const LENGTH = 20;
const BLOCKS = 3;
/** Requests under way at once, and transactions of a batch at most. */
const CLIENTS = 32;
const MAX_BATCH = 20;
const PATHS = ["/fast", "/noreverts", "/maxbackruns", "/", "/fullprivacy"] as const;
const SEED = Number(process.env.CROWD_SEED ?? Date.now() % 2 ** 31);
const DEADLINE_MS = 30_000;

const EMITTER = "0x00000000000000000000000000000000000e0001";
const STORER = "0x00000000000000000000000000000000000e0002";
const HOARDER = "0x00000000000000000000000000000000000e0003";
/** Sets the slot that its data names. PUSH1 1 PUSH0 CALLDATALOAD SSTORE STOP */
const STORES = "0x60015f355500";
/** The same with the slots that four words name. */
const STORES_FOUR = "0x60015f355560016020355560016040355560016060355500";

/**
 * The kinds of transactions, and the gas that each really uses. The gas limit is no higher, so that
 * they can fill a block.
 */
const KINDS = {
	transfer: { to: testAccount(499_999).address, words: 0, gas: 21_000 },
	event: { to: EMITTER, words: 0, gas: 21_379 },
	store: { to: STORER, words: 1, gas: 43_620 },
	hoard: { to: HOARDER, words: 4, gas: 111_483 },
} as const;

interface Link extends Signed {
	readonly account: number;
	readonly nonce: number;
	readonly gas: number;
}

/** One request of a client's. */
interface Submission {
	readonly path: string;
	readonly by: "http" | "batch" | "websocket";
	readonly links: readonly Link[];
}

interface Answer {
	readonly id: number;
	readonly result?: unknown;
	readonly error?: unknown;
}

const random = new SeededRandom(SEED);
const accounts = Array.from({ length: ACCOUNTS }, (_, i) => testAccount(500_000 + i));
const links = accounts.flatMap((_, account) =>
	Array.from({ length: LENGTH }, (_, nonce) => makeLink(account, nonce)),
);
const totalGas = links.reduce((sum, { gas }) => sum + gas, 0);
/**
 * So much that the end of a block, into which no transaction fits any more, costs no further block.
 */
const GAS_LIMIT = Math.ceil(totalGas / BLOCKS) + KINDS.hoard.gas;

let system: TestSystem;
let fixture: RelayFixture;
before(async () => {
	system = await startSystem({
		chain: { gasLimit: GAS_LIMIT },
		builders: [{ name: "vault", fullPrivacy: true }],
	});
	fixture = new RelayFixture(system);
	for (const { address } of accounts) await fixture.setBalance(address, 10n ** 20n);
	for (const code of [
		[EMITTER, EMITS],
		[STORER, STORES],
		[HOARDER, STORES_FOUR],
	])
		await system.chain.rpc("anvil_setCode", code);
});
after(() => system.stop());

it(`${ACCOUNTS} × ${LENGTH} nonces at once are mined in order in the fewest blocks, seed ${SEED}`, async (t) => {
	const pending = new PendingWatch(
		system.client.url,
		accounts.map(({ address }) => address),
	);
	await pending.watch(submitAll(submissions(), pending));
	const left = new Map(links.map((link) => [link.hash, link]));
	const blocks: BuiltBlock[] = [];
	while (left.size > 0 && blocks.length < BLOCKS) {
		await pending.watch(allAreOut(left));
		const block = await pending.watch(system.builder.buildBlock());
		await assertInOrder(block, left);
		if (left.size > 0) assertFull(block, left);
		blocks.push(block);
		await pending.watch(fixture.seesHead(block.number));
	}
	const fewest = Math.ceil(totalGas / GAS_LIMIT);
	assert.deepEqual([blocks.length, left.size], [fewest, 0], "blocks, and transactions that are left");
	await pending.watch(allIncluded(blocks));
	t.diagnostic(
		`${totalGas} gas in ${fewest} blocks of ${GAS_LIMIT}; ${pending.looks} looks at pending nonces`,
	);
});

function makeLink(account: number, nonce: number): Link {
	const { to, words, gas } = KINDS[random.pick(["transfer", "transfer", "event", "store", "hoard"] as const)];
	const by = accounts[account];
	if (by === undefined) throw new RangeError(`there is no account ${account}`);
	// Slots of its own; no byte of a word is zero, which would cost less.
	const word = (i: number) => "ff".repeat(29) + [account, nonce, i].map(byteAboveZero).join("");
	const { raw, hash, from } = signedTransaction({
		...{ by, nonce, to, gasLimit: gas },
		data: Array.from({ length: words }, (_, i) => word(i)).join(""),
		maxFeePerGas: 100n * GWEI,
		maxPriorityFeePerGas: GWEI + BigInt(random.below(1_000)) * 1_000_000n,
	});
	return { raw: `0x${Buffer.from(raw).toString("hex")}`, hash, from, account, nonce, gas };
}

function byteAboveZero(value: number): string {
	return (value + 1).toString(16).padStart(2, "0");
}

/** All links in random order, each in a request of its own or in a batch with those behind it. */
function submissions(): Submission[] {
	const places = links.map((link) => ({ link, place: random.below(2 ** 31) }));
	const left = places.sort((a, b) => a.place - b.place).map(({ link }) => link);
	const made: Submission[] = [];
	while (left.length > 0) {
		const by = random.pick(["http", "http", "batch", "websocket", "websocket"] as const);
		const count = by === "batch" ? 2 + random.below(MAX_BATCH - 1) : 1;
		made.push({ path: random.pick(PATHS), by, links: left.splice(0, count) });
	}
	return made;
}

/** Some at a time; each transaction is answered with its hash. */
async function submitAll(queue: Submission[], pending: PendingWatch): Promise<void> {
	const sockets = new Map<string, Socket>();
	for (const path of PATHS) sockets.set(path, await openSocket(path));
	const client = async (): Promise<void> => {
		for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
			const { path, by } = next;
			for (const link of next.links) pending.sent(link.from, link.nonce);
			const method = "eth_sendRawTransaction";
			const calls = next.links.map(({ raw }, id) => ({ jsonrpc: "2.0", id, method, params: [raw] }));
			const body = by === "batch" ? calls : calls[0];
			const answer = by === "websocket" ? await sockets.get(path)?.(body) : await post(path, body);
			next.links.forEach((link, i) => {
				const one = Array.isArray(answer) ? answer[i] : answer;
				assert.equal(one?.result, link.hash, `${by} ${path} answered ${JSON.stringify(one)}`);
				pending.answered(link.from, link.nonce);
			});
		}
	};
	await Promise.all(Array.from({ length: CLIENTS }, client));
	for (const socket of sockets.values()) await socket(null);
}

async function post(path: string, body: unknown): Promise<Answer | Answer[]> {
	const headers = { "content-type": "application/json" };
	const url = `${system.client.url}${path}`;
	return (await (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).json()) as Answer;
}

/** Sends a call and answers what comes back for it; null closes the connection. */
type Socket = (body: unknown) => Promise<Answer>;

async function openSocket(path: string): Promise<Socket> {
	const { socket } = await WsClient.open(`${system.client.url.replace("http", "ws")}${path}`);
	const waiting = new Map<number, (answer: Answer) => void>();
	let last = 0;
	socket.on("message", (data) => {
		const answer = JSON.parse(String(data)) as Answer;
		waiting.get(answer.id)?.(answer);
	});
	return (body) =>
		new Promise((resolve) => {
			last += 1;
			waiting.set(last, resolve);
			if (body !== null) socket.send(JSON.stringify({ ...Object(body), id: last }));
			else socket.once("close", () => resolve({ id: last })).close();
		});
}

/** Waits until the builder has all that is left for the next block. */
async function allAreOut(left: ReadonlyMap<string, Link>): Promise<void> {
	const next = (await fixture.head()) + 1;
	const out = new Set<string>();
	let read = 0;
	await until(
		`${left.size} transactions at the builder for block ${next}`,
		() => {
			const orders = system.builder.orders();
			for (; read < orders.length; read += 1) {
				const { firstBlock, transactions } = orders[read] ?? { firstBlock: 0, transactions: [] };
				const [tx] = transactions;
				if (firstBlock === next && tx !== undefined && left.has(tx.hash)) out.add(tx.hash);
			}
			return out.size === left.size;
		},
		DEADLINE_MS,
	);
}

/**
 * Each account's next nonces, none of them reverted, with the gas that was reckoned; takes them out
 * of `left`.
 */
async function assertInOrder(block: BuiltBlock, left: Map<string, Link>): Promise<void> {
	const tag = `0x${block.number.toString(16)}`;
	const receipts = (await system.chain.rpc("eth_getBlockReceipts", [tag])) as Record<string, string>[];
	const next = nextLinks(left);
	for (const { transactionHash = "", status, gasUsed } of receipts) {
		const link = left.get(transactionHash);
		assert.ok(link, `${transactionHash} is not one of those that are left`);
		const { account, nonce, gas } = link;
		assert.deepEqual([nonce, status, Number(gasUsed)], [next.get(account)?.nonce, "0x1", gas]);
		left.delete(transactionHash);
		const follower = links[account * LENGTH + nonce + 1];
		if (follower !== undefined && nonce + 1 < LENGTH) next.set(account, follower);
	}
	assert.equal(block.asTried, true);
}

/** Each account's lowest nonce that is left. */
function nextLinks(left: ReadonlyMap<string, Link>): Map<number, Link> {
	const next = new Map<number, Link>();
	// `left` keeps the order of `links`.
	for (const link of left.values()) if (!next.has(link.account)) next.set(link.account, link);
	return next;
}

/** No account's next transaction would have fitted into it. */
function assertFull({ gasUsed }: BuiltBlock, left: ReadonlyMap<string, Link>): void {
	const room = GAS_LIMIT - Number(gasUsed);
	for (const { gas, account, nonce } of nextLinks(left).values()) {
		assert.ok(gas > room, `nonce ${nonce} of account ${account} had fitted: ${gas} gas of ${room}`);
	}
}

/** Every transaction's record says so. */
async function allIncluded(blocks: readonly BuiltBlock[]): Promise<void> {
	const hashes = blocks.flatMap(({ transactions }) => transactions);
	assert.equal(hashes.length, links.length);
	const client = async (): Promise<void> => {
		for (let hash = hashes.shift(); hash !== undefined; hash = hashes.shift()) {
			const { status, stage } = await system.client.status(hash);
			assert.deepEqual([status, stage], ["INCLUDED", "INCLUDED"], hash);
		}
	};
	await Promise.all(Array.from({ length: CLIENTS }, client));
}
