// Proves by the chain that a target and the backrun behind it are mined as claimed: the block, the money, and the relay's
// own account of it. Evidence comes from a node that traces, never from the relay. It sends nothing.

import { formatEther, id, isCallException, type JsonRpcProvider } from "ethers";
import { page, refunded, type StatusAnswer } from "./access.ts";
import { amount } from "./scenario.ts";
import { type Landed, landed, REFUND_PERCENT, type Stage } from "./stage.ts";

/** The winning bid. */
export interface WonBid {
	readonly target: string;
	readonly backrun: string;
	readonly bundle: string;
	/** Wei. */
	readonly bid: bigint;
}

/** The three transactions, as they were mined. */
export interface Trio {
	readonly target: Landed;
	readonly backrun: Landed;
	readonly refund: Landed;
}

/** That target, backrun and refund stand in one block, in that order, with nothing between. */
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

/** That the gain is there behind the target alone: in the state before the block the same backrun reverts. */
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

/** That the refund is the user's percent of all that the backrun brought, and theirs to the wei. What it brought. */
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

/** That the relay's status and events tell the same as the chain; `bids` were accepted, distinct ones. */
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
	if (event === null) throw new Error("the relay's events tell of no refund");
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

/** Who pays refunds and who is paid, lower case. */
function parties({ builder, user }: Stage): { readonly coinbase: string; readonly user: string } {
	return { coinbase: builder.coinbase.toLowerCase(), user: user.address.toLowerCase() };
}

/** One call of a `callTracer` trace. https://geth.ethereum.org/docs/developers/evm-tracing/built-in-tracers */
export interface TracedCall {
	readonly type: string;
	readonly to?: string;
	readonly value?: string;
	readonly error?: string;
	readonly calls?: readonly TracedCall[];
}

/** The transaction's calls, as the node executes it again. */
async function trace(node: JsonRpcProvider, hash: string): Promise<TracedCall> {
	return (await node.send("debug_traceTransaction", [hash, { tracer: "callTracer" }])) as TracedCall;
}

/** Wei that reached `address` by the call and what it calls; what failed is not counted, with all that is in it. */
export function reached(address: string, call: TracedCall): bigint {
	if (call.error !== undefined) return 0n;
	// A delegate or static call moves nothing.
	const moves = call.type === "CALL" && call.to?.toLowerCase() === address.toLowerCase();
	const own = moves ? BigInt(call.value ?? 0) : 0n;
	return (call.calls ?? []).reduce((sum, inner) => sum + reached(address, inner), own);
}
