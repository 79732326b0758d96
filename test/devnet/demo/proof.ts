// Proves by the chain that a target and the backrun behind it are mined as claimed: the block, the money, and the relay's
// own account of it. Evidence comes from a node that traces, never from the relay. It sends nothing.

import { formatEther, id, isCallException, type JsonRpcProvider } from "ethers";
import { refunded, status } from "./access.ts";
import { amount, type Scenario } from "./scenario.ts";

/** Where it is played. */
export interface Fixture {
	readonly scenario: Scenario;
	readonly node: JsonRpcProvider;
	/** The relay's, http. */
	readonly relayUrl: string;
	/** The builder's, lower case. */
	readonly coinbase: string;
	/** Sender of the target, lower case. */
	readonly user: string;
	/** Of what the backrun brings, the user's. */
	readonly percent: bigint;
}

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
export async function proveOrder({ scenario, node, coinbase, user }: Fixture, won: WonBid): Promise<Trio> {
	const target = await landed(node, won.target);
	if (target === null) throw new Error("the target is not mined");
	const block = await blockAt(node, target.block);
	const behind = block.transactions.slice(target.index, target.index + 3);
	scenario.tell(
		`block ${target.block}, built by ${block.coinbase}, ${block.transactions.length} transactions:`,
	);
	const names = ["target ", "backrun", "refund "];
	for (const [i, hash] of behind.entries()) scenario.tell(`  [${target.index + i}] ${names[i]} ${hash}`);
	const [, second, third] = behind;
	scenario.claim("the backrun stands right behind the target", second === won.backrun);
	const backrun = await landed(node, won.backrun);
	const refund = third === undefined ? null : await landed(node, third);
	scenario.claim(
		"right behind it stands a transfer from the block's coinbase to the user",
		refund?.from === coinbase && coinbase === block.coinbase && refund.to === user,
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
export async function proveOnlyBehind({ scenario, node }: Fixture, { backrun }: Trio): Promise<void> {
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
	fixture: Fixture,
	won: WonBid,
	{ target, backrun, refund }: Trio,
): Promise<bigint> {
	const { scenario, node, coinbase, user, percent } = fixture;
	const transferred = reached(coinbase, await trace(node, backrun.hash));
	scenario.same("the backrun paid the coinbase by transfer what was bid", transferred, won.bid);
	const brought = transferred + backrun.priorityFee;
	scenario.tell(`and by its priority fee ${amount(backrun.priorityFee)}`);
	scenario.tell(`so it brought ${amount(brought)}`);
	const owed = (brought * percent) / 100n;
	scenario.same(`${percent} % of that is owed to the user, and paid`, refund.value, owed);
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
	fixture: Fixture,
	won: WonBid,
	trio: Trio,
	{ brought, bids }: { readonly brought: bigint; readonly bids: number },
): Promise<void> {
	const { scenario, relayUrl, coinbase, user, percent } = fixture;
	const owed = (brought * percent) / 100n;
	const told = await status(relayUrl, won.target);
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

/** A mined transaction. Addresses lower case; amounts in wei. */
export interface Landed {
	readonly hash: string;
	readonly block: number;
	/** Place in its block. */
	readonly index: number;
	readonly from: string;
	readonly to: string;
	readonly value: bigint;
	readonly succeeded: boolean;
	/** What its sender paid for gas. */
	readonly gasCost: bigint;
	/** The part of {@link gasCost} that went to the coinbase. */
	readonly priorityFee: bigint;
}

/** One call of a `callTracer` trace. https://geth.ethereum.org/docs/developers/evm-tracing/built-in-tracers */
export interface TracedCall {
	readonly type: string;
	readonly to?: string;
	readonly value?: string;
	readonly error?: string;
	readonly calls?: readonly TracedCall[];
}

/** The node's word on it, null while it is not mined. */
export async function landed(node: JsonRpcProvider, hash: string): Promise<Landed | null> {
	const [transaction, receipt] = await Promise.all([
		node.getTransaction(hash),
		node.getTransactionReceipt(hash),
	]);
	if (transaction === null || receipt === null) return null;
	const block = await node.getBlock(receipt.blockNumber);
	return {
		hash,
		block: receipt.blockNumber,
		index: receipt.index,
		from: receipt.from.toLowerCase(),
		to: (receipt.to ?? "").toLowerCase(),
		value: transaction.value,
		succeeded: receipt.status === 1,
		gasCost: receipt.gasUsed * receipt.gasPrice,
		priorityFee: receipt.gasUsed * (receipt.gasPrice - (block?.baseFeePerGas ?? 0n)),
	};
}

/** The transaction's calls, as the node executes it again. */
export async function trace(node: JsonRpcProvider, hash: string): Promise<TracedCall> {
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

/** Hashes of a block's transactions, in order, and its coinbase in lower case. */
export async function blockAt(
	node: JsonRpcProvider,
	number: number,
): Promise<{ readonly transactions: readonly string[]; readonly coinbase: string }> {
	const block = await node.getBlock(number);
	if (block === null) throw new Error(`the node has no block ${number}`);
	return { transactions: block.transactions, coinbase: block.miner.toLowerCase() };
}
