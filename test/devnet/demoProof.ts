// Proves from the chain that a target and the backrun after it were mined as claimed: their block
// and the payments, and that the relay's own statuses, read over HTTP as users do, agree. The
// evidence is a node's traces, never the relay.

import { formatEther, id, isCallException, type JsonRpcProvider } from "ethers";
import { systemClock, withDeadline } from "../../shared/clock.ts";
import { amount, type Landed, landed, REFUND_PERCENT, type Stage } from "./demoStage.ts";

/** The fields of `GET /tx/{hash}` that the demo reads. */
export interface StatusAnswer {
	readonly status: string;
	readonly stage?: string;
	readonly backruns: number;
	/** ETH. */
	readonly refund: number;
}

/** The fields of `GET /tx/{hash}/events` that the demo reads. */
export interface EventsAnswer {
	readonly events: readonly ({ readonly type: string } | RefundedEvent)[];
	/** The builders' answers to a cancel; `summary` is "5 of 7 builders confirmed". */
	readonly cancels?: { readonly builders: number; readonly confirmed: number; readonly summary: string };
}

/** The event `refunded`: wei as decimal text, addresses lower case. */
interface RefundedEvent {
	readonly type: "refunded";
	readonly block: number;
	readonly bundle: string;
	readonly backrun: string;
	readonly bid: string;
	readonly brought: string;
	readonly cost: string;
	readonly owed: string;
	readonly paid: string;
	readonly payer: string;
	readonly recipient: string;
}

/** The fields of boost's `GET /status` that the demo reads, as its operator. */
export interface BoostStatus {
	readonly relay: { readonly state: string; readonly reason: string | null };
	readonly fallback: { readonly state: string };
	readonly journal: { readonly depth: number };
}

/** The answer to a submission. */
interface Submitted {
	/** The transaction's hash; null if it was refused. */
	readonly hash: string | null;
	/** `X-Boost-Upstream` and `X-Boost-Breaker`. */
	readonly by: string;
	readonly breaker: string;
	/** The refusal, or "". */
	readonly why: string;
}

const CALL_MS = 10_000;

/** Submits a signed transaction at `url`, whose path is an endpoint. */
export async function submit(url: string, raw: string): Promise<Submitted> {
	const { headers, json } = await fetched(url, callOf("eth_sendRawTransaction", [raw]));
	const { result = null, error } = json as { result?: string; error?: { message: string } };
	const header = (name: string): string => headers.get(name) ?? "";
	const [by, breaker] = [header("x-boost-upstream"), header("x-boost-breaker")];
	return { hash: result, by, breaker, why: error?.message ?? "" };
}

/** The result of a call. Throws the relay's refusal. */
export async function call(url: string, method: string, ...params: readonly unknown[]): Promise<unknown> {
	const { json } = await fetched(`${url}/fast`, callOf(method, params));
	const { result, error } = json as { result?: unknown; error?: { message: string } };
	if (error !== undefined) throw new Error(`the relay refuses it: ${error.message}`);
	return result;
}

/** The JSON of a route. */
export async function page<T>(url: string, headers: Readonly<Record<string, string>> = {}): Promise<T> {
	return (await fetched(url, { headers })).json as T;
}

/** The outcome of the backrun after it; null until the relay shows it. */
export async function refunded(url: string, hash: string): Promise<RefundedEvent | null> {
	const { events } = await page<EventsAnswer>(`${url}/tx/${hash}/events`);
	return events.find((one): one is RefundedEvent => one.type === "refunded") ?? null;
}

function callOf(method: string, params: readonly unknown[]): RequestInit {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	return { method: "POST", headers: { "content-type": "application/json" }, body };
}

function fetched(url: string, init?: RequestInit): Promise<{ headers: Headers; json: unknown }> {
	return withDeadline(systemClock, `the answer of ${url}`, CALL_MS, async (signal) => {
		const answer = await fetch(url, { ...init, signal });
		return { headers: answer.headers, json: await answer.json() };
	});
}

/** The winning bid. */
export interface WonBid {
	readonly target: string;
	readonly backrun: string;
	readonly bundle: string;
	/** Wei. */
	readonly bid: bigint;
}

/** The three mined transactions. */
interface Trio {
	readonly target: Landed;
	readonly backrun: Landed;
	readonly refund: Landed;
}

/** Claims that target, backrun and refund are in one block, in that order, with nothing between. */
export async function proveOrder(stage: Stage, won: WonBid): Promise<Trio> {
	const { scenario, node } = stage;
	const { coinbase, user } = parties(stage);
	const target = await landed(stage, won.target);
	const block = await node.getBlock(target?.block ?? -1);
	if (target === null || block === null) throw new Error("the target is not mined");
	const behind = block.transactions.slice(target.index, target.index + 3);
	scenario.tell(
		`block ${target.block}, built by ${block.miner.toLowerCase()}, ${block.transactions.length} transactions:`,
	);
	const names = ["target ", "backrun", "refund "];
	for (const [i, hash] of behind.entries()) scenario.tell(`  [${target.index + i}] ${names[i]} ${hash}`);
	const [, second, third] = behind;
	scenario.claim("the backrun stands right behind the target", second === won.backrun);
	const backrun = await landed(stage, won.backrun);
	const refund = third === undefined ? null : await landed(stage, third);
	scenario.claim(
		"right behind it stands a transfer from the block's coinbase to the user",
		refund?.from === coinbase && coinbase === block.miner.toLowerCase() && refund.to === user,
		refund === null ? "nothing there" : `${refund.from} to ${refund.to}`,
	);
	if (backrun === null || refund === null) throw new Error("the block has changed meanwhile");
	const all = [target, backrun, refund];
	scenario.claim(
		"all three succeeded",
		all.every(({ succeeded }) => succeeded),
	);
	return { target, backrun, refund };
}

/**
 * Claims that only the target makes the gain possible: in the state before the block the same
 * backrun reverts.
 */
export async function proveOnlyBehind({ scenario, node }: Stage, { backrun }: Trio): Promise<void> {
	const sent = await node.getTransaction(backrun.hash);
	if (sent === null) throw new Error("the backrun is gone");
	const { from, to, data } = sent;
	const blockTag = backrun.block - 1;
	const why = await node.call({ from, to, data, blockTag }).then(
		() => "it goes through",
		(thrown: unknown) => (isCallException(thrown) ? (thrown.data ?? "") : "no answer"),
	);
	const selector = id("NotProfitable(uint256,uint256)").slice(0, 10);
	scenario.claim(
		"without the swap before it the same backrun reverts: NotProfitable",
		why.startsWith(selector),
		why,
	);
}

/**
 * Claims that the refund is exactly the user's percentage of what the backrun paid; returns what it
 * paid.
 */
export async function proveMoney(
	stage: Stage,
	won: WonBid,
	{ target, backrun, refund }: Trio,
): Promise<bigint> {
	const { scenario, node } = stage;
	const { coinbase, user } = parties(stage);
	const transferred = reached(coinbase, await trace(node, backrun.hash));
	scenario.same("the backrun paid the coinbase by transfer what was bid", transferred, won.bid);
	const brought = transferred + backrun.priorityFee;
	scenario.tell(`and by its priority fee ${amount(backrun.priorityFee)}`);
	scenario.tell(`so it brought ${amount(brought)}`);
	const owed = (brought * REFUND_PERCENT) / 100n;
	scenario.same(`${REFUND_PERCENT} % of that is owed to the user, and paid`, refund.value, owed);
	const before = await node.getBalance(user, target.block - 1);
	const after = await node.getBalance(user, target.block);
	scenario.tell(`the user had ${amount(before)} before the block,`);
	scenario.tell(`  paid for gas ${amount(target.gasCost)},`);
	scenario.tell(`  and has ${amount(after)} behind it`);
	scenario.same(
		"gas aside, the user's balance rose by exactly what is owed",
		after - before + target.gasCost,
		owed,
	);
	return brought;
}

/**
 * Claims that the relay's status and events agree with the chain; `bids` is the number of distinct
 * accepted bids.
 */
export async function proveAccount(
	stage: Stage,
	won: WonBid,
	trio: Trio,
	{ brought, bids }: { readonly brought: bigint; readonly bids: number },
): Promise<void> {
	const { scenario, relayUrl } = stage;
	const { coinbase, user } = parties(stage);
	const owed = (brought * REFUND_PERCENT) / 100n;
	const told = await page<StatusAnswer>(`${relayUrl}/tx/${won.target}`);
	scenario.claim("GET /tx/{hash} says INCLUDED", told.status === "INCLUDED", told.status);
	scenario.claim(`  backruns: ${bids}`, told.backruns === bids, String(told.backruns));
	scenario.claim(
		`  refund: ${formatEther(owed)}`,
		told.refund === Number(formatEther(owed)),
		String(told.refund),
	);
	const event = await refunded(relayUrl, won.target);
	if (event === null) throw new Error("the relay's events show no refund");
	scenario.claim(
		"GET /tx/{hash}/events names bundle, backrun, payer and recipient",
		event.bundle === won.bundle &&
			event.backrun === won.backrun &&
			event.payer === coinbase &&
			event.recipient === user &&
			event.block === trio.target.block,
		JSON.stringify(event),
	);
	scenario.same("  bid", BigInt(event.bid), won.bid);
	scenario.same("  brought", BigInt(event.brought), brought);
	scenario.same("  cost of paying it out", BigInt(event.cost), 0n);
	scenario.same("  owed", BigInt(event.owed), owed);
	scenario.same("  paid", BigInt(event.paid), owed);
}

/** Sender and recipient of refunds, in lower case. */
function parties({ builder, user }: Stage): { readonly coinbase: string; readonly user: string } {
	return { coinbase: builder.coinbase.toLowerCase(), user: user.address.toLowerCase() };
}

/**
 * One call of a `callTracer` trace.
 * https://geth.ethereum.org/docs/developers/evm-tracing/built-in-tracers
 */
export interface TracedCall {
	readonly type: string;
	readonly to?: string;
	readonly value?: string;
	readonly error?: string;
	readonly calls?: readonly TracedCall[];
}

/** The transaction's calls, from a trace. */
async function trace(node: JsonRpcProvider, hash: string): Promise<TracedCall> {
	return (await node.send("debug_traceTransaction", [hash, { tracer: "callTracer" }])) as TracedCall;
}

/**
 * Wei that the call and its inner calls transferred to `address`. Failed calls, with all inner
 * calls, don't count.
 */
export function reached(address: string, call: TracedCall): bigint {
	if (call.error !== undefined) return 0n;
	// A delegate or static call moves nothing.
	const moves = call.type === "CALL" && call.to?.toLowerCase() === address.toLowerCase();
	const own = moves ? BigInt(call.value ?? 0) : 0n;
	return (call.calls ?? []).reduce((sum, inner) => sum + reached(address, inner), own);
}
