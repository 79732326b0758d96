// The demo's chapters besides the swap: a user cancels a transaction by its hash, the builder drops
// it, and no block ever has it; and the relay is killed behind boost, which keeps what was
// acknowledged and later uses the relay again.

import { keccak256, Transaction, Wallet } from "ethers";
import { type BoostStatus, call, type EventsAnswer, page, type StatusAnswer, submit } from "./demoProof.ts";
import { type Landed, landed, newBlock, type Stage, transfer, until } from "./demoStage.ts";

/** Sends a transaction, cancels it once the builder has it, and returns it. */
export async function takeOneBack(stage: Stage): Promise<Transaction> {
	const { scenario, relayUrl, user, builder } = stage;
	const raw = await transfer(stage);
	const signed = Transaction.from(raw);
	const { nonce } = signed;
	const hash = signed.hash ?? "";
	const live = (): number =>
		builder.orders().filter(({ state, transactions }) => state === "live" && transactions[0]?.hash === hash)
			.length;
	const pendingNonce = async (): Promise<number> =>
		Number(await call(relayUrl, "eth_getTransactionCount", user.address, "pending"));
	await newBlock(stage);
	const { why } = await submit(`${relayUrl}/fast`, raw);
	if (why !== "") throw new Error(`the relay refuses it: ${why}`);
	await until("the builder to have it", () => live() > 0);
	scenario.tell(`${user.address} sends 1 ETH by mistake:`);
	scenario.tell(`${hash}, nonce ${nonce}`);
	scenario.claim("the builder has it for the next block", live() === 1);
	const after = await pendingNonce();
	scenario.claim(`the user's pending nonce is ${nonce + 1}`, after === nonce + 1, String(after));
	scenario.claim(
		"the relay answers eth_cancelTransaction with true",
		(await call(relayUrl, "eth_cancelTransaction", hash)) === true,
	);
	const { summary } = await until("the builder to confirm", async () => {
		const { cancels } = await page<EventsAnswer>(`${relayUrl}/tx/${hash}/events`);
		return cancels?.confirmed === cancels?.builders && cancels;
	});
	scenario.claim(`GET /tx/{hash}/events: ${summary}`, summary === "1 of 1 builders confirmed");
	scenario.claim("the builder would not mine it any more", live() === 0);
	const { stage: said } = await page<StatusAnswer>(`${relayUrl}/tx/${hash}`);
	scenario.claim("GET /tx/{hash} says CANCELLED", said === "CANCELLED", said);
	const found = await call(relayUrl, "eth_getTransactionByHash", hash);
	scenario.claim("eth_getTransactionByHash says null", found === null);
	const free = await pendingNonce();
	scenario.claim(`nonce ${nonce} is free again`, free === nonce, String(free));
	return signed;
}

/** Claims that no block has it: its nonce was used by `instead`, which is mined. */
export async function proveNeverMined(
	{ scenario, node }: Stage,
	{ hash, nonce }: Transaction,
	instead: string,
): Promise<void> {
	const used = await node.getTransaction(instead);
	scenario.claim(`nonce ${nonce} went to the swap`, used?.nonce === nonce && used.blockNumber !== null);
	scenario.claim("what was taken back is in no block", (await landed({ node }, hash ?? "")) === null);
}

/** Kills the relay between two transactions of one user. Their nonces are the next ones. */
export async function surviveTheRelay(stage: Stage): Promise<void> {
	const { scenario, user, relay, keys, boostUrl } = stage;
	scenario.chapter("The relay is killed, and boost carries on");
	await stage.startBoost();
	await until("boost to have seen both", async () => {
		const { relay: ours, fallback } = await statusOf(stage);
		return ours.state === "closed" && fallback.state === "closed";
	});
	const [first, second] = [await transfer(stage), await transfer(stage, 1)];
	const { nonce } = Transaction.from(first);
	const held = await submit(`${boostUrl}/noreverts`, second);
	scenario.tell(`${user.address} signs two transactions; the later one,`);
	scenario.tell(`nonce ${nonce + 1}, reaches ${boostUrl}/noreverts first`);
	scenario.claim(`boost answers its hash ${held.hash}`, held.hash === keccak256(second), held.why);
	scenario.claim("  X-Boost-Upstream: relay", held.by === "relay", held.by);
	const hash = held.hash ?? "";
	scenario.claim(
		"it has to wait for the earlier one: no builder has seen it",
		senders(stage, hash).length === 0,
	);
	await relay.kill();
	scenario.tell(`kill -9 ${relay.pid}: the relay is gone, with what it had promised`);
	const { reason } = await until("boost to notice", async () => {
		const { relay: seen } = await statusOf(stage);
		return seen.state === "open" && seen;
	});
	scenario.claim(`boost has opened its breaker: ${reason}`, reason !== null);
	const { stage: said = "none" } = await page<StatusAnswer>(`${boostUrl}/tx/${hash}`);
	scenario.claim("GET /tx/{hash} says HELD", said === "HELD", said);
	const fresh = await submit(`${boostUrl}/fast`, first);
	scenario.tell(`the user sends the earlier one, nonce ${nonce}, to ${boostUrl}/fast`);
	scenario.claim(`boost answers its hash ${fresh.hash}`, fresh.hash === keccak256(first), fresh.why);
	scenario.claim("  X-Boost-Upstream: fallback", fresh.by === "fallback", fresh.by);
	scenario.claim("  X-Boost-Breaker: open", fresh.breaker === "open", fresh.breaker);
	const next = Number(await call(boostUrl, "eth_getTransactionCount", user.address, "pending"));
	scenario.claim(`the user's pending nonce is ${nonce + 2}`, next === nonce + 2, String(next));
	const both = [fresh.hash ?? "", hash];
	await provePrivate(stage, both);
	const [one, other] = [await mined(stage, both[0] ?? ""), await mined(stage, hash)];
	scenario.tell(`mined in the blocks ${one.block} and ${other.block}, while the relay is down`);
	const isInOrder = one.block < other.block || (one.block === other.block && one.index < other.index);
	scenario.claim("both succeeded, in their order", one.succeeded && other.succeeded && isInOrder);
	const by = both.flatMap((each) => senders(stage, each));
	scenario.claim("the builder has them from the fallback alone", isAllOf(by, keys.fallback), by.join(" "));
	await welcomeBack(stage, hash);
}

/** Starts the relay again; boost uses it again, and the relay knows what was mined without it. */
async function welcomeBack(stage: Stage, hash: string): Promise<void> {
	const { scenario, boostUrl, relayUrl, keys } = stage;
	scenario.chapter("The relay returns");
	scenario.tell(`a relay on the same port and data, a process of its own (${await stage.restart()})`);
	const isBack = await until(
		"boost to take the relay again",
		async () => (await statusOf(stage)).relay.state === "closed",
	);
	scenario.claim("boost has closed its breaker by its own probes", isBack);
	const told = await until("the relay to see what was mined", async () => {
		const { status } = await page<StatusAnswer>(`${relayUrl}/tx/${hash}`);
		return status === "INCLUDED" && status;
	});
	scenario.claim(`the relay says of the one it had promised: ${told}`, told === "INCLUDED");
	await until("boost to see it", async () => (await statusOf(stage)).journal.depth === 0);
	scenario.claim("boost has nothing left to answer for", true);
	const raw = await transfer(stage);
	const again = await submit(`${boostUrl}/fast`, raw);
	scenario.claim(`boost answers the next one's hash ${again.hash}`, again.hash === keccak256(raw), again.why);
	scenario.claim("  X-Boost-Upstream: relay", again.by === "relay", again.by);
	scenario.claim("  X-Boost-Breaker: closed", again.breaker === "closed", again.breaker);
	const { succeeded, block } = await mined(stage, again.hash ?? "");
	const by = senders(stage, again.hash ?? "");
	scenario.claim(
		`it is mined in block ${block}; the builder has it from the relay alone`,
		succeeded && isAllOf(by, keys.relay),
		by.join(" "),
	);
}

/** Claims that the public pool has none of them, while the builder puts none there itself. */
async function provePrivate({ scenario, node, builder }: Stage, hashes: readonly string[]): Promise<void> {
	const found = await builder.outsideBurst(() =>
		Promise.all(
			hashes.map(
				(hash) =>
					node.send("eth_getTransactionByHash", [hash]) as Promise<{ blockHash: string | null } | null>,
			),
		),
	);
	scenario.claim(
		"the chain's public mempool has neither",
		found.every((one) => one?.blockHash !== null),
	);
}

function statusOf({ boostUrl, metricsToken }: Stage): Promise<BoostStatus> {
	return page<BoostStatus>(`${boostUrl}/status`, { authorization: `Bearer ${metricsToken}` });
}

function mined(stage: Stage, hash: string): Promise<Landed> {
	return until(`${hash} to be mined`, () => landed(stage, hash));
}

/** The signers of all requests that brought it to the builder. */
function senders({ builder }: Stage, hash: string): string[] {
	const orders = builder.orders().filter(({ transactions }) => transactions.some((one) => one.hash === hash));
	return orders.map(({ signer }) => signer ?? "nobody");
}

function isAllOf(signers: readonly string[], key: string): boolean {
	const { address } = new Wallet(key);
	return signers.length > 0 && signers.every((signer) => signer === address);
}
