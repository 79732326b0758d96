// Kills the relay behind boost, and proves that what was acknowledged is still mined, that nothing becomes public,
// and that boost returns to the relay when it is back.

import { keccak256, Wallet } from "ethers";
import { type Boosted, boostStatus, pendingNonce, status, submitBoosted } from "./access.ts";
import { type Fixture, type Landed, landed } from "./proof.ts";
import { until } from "./scenario.ts";

const GWEI = 1_000_000_000n;
const RECEIVER = "0x00000000000000000000000000000000DeaDBeef";

/** What it is played with, beside the fixture. */
export interface Outage extends Pick<Fixture, "scenario" | "node" | "relayUrl"> {
	/** Puts boost in front of the relay, with a fallback behind it; boost's address, http. */
	startBoost(): Promise<string>;
	readonly chainId: number;
	readonly user: Wallet;
	readonly relay: { readonly pid: number; kill(): Promise<void> };
	/** Starts the relay again where it was, and waits until it is ready; its pid. */
	restart(): Promise<number>;
	readonly builder: {
		orders(): readonly {
			readonly signer: string | null;
			readonly transactions: readonly { readonly hash: string }[];
		}[];
		outsideBurst<T>(fn: () => Promise<T>): Promise<T>;
	};
	/** Keys that the relay and the fallback sign their requests to the builder with. */
	readonly keys: { readonly relay: string; readonly fallback: string };
}

interface Boosting extends Outage {
	/** http */
	readonly boostUrl: string;
}

/** Kills the relay between two transactions of one user. Their nonces are the next ones. */
export async function surviveTheRelay(fixture: Outage): Promise<void> {
	const { scenario, node, user, relay, keys } = fixture;
	scenario.chapter("The relay is killed, and boost carries on");
	const boostUrl = await fixture.startBoost();
	const outage: Boosting = { ...fixture, boostUrl };
	await until("boost to have seen both", async () => {
		const { relay: ours, fallback } = await boostStatus(boostUrl);
		return ours.state === "closed" && fallback.state === "closed" ? true : null;
	});
	const nonce = await node.getTransactionCount(user.address);
	const [first, second] = [await transfer(outage, nonce), await transfer(outage, nonce + 1)];
	const held = await submitted(outage, "/noreverts", second);
	scenario.tell(`${user.address} signs two transactions; the later one,`);
	scenario.tell(`nonce ${nonce + 1}, reaches ${boostUrl}/noreverts first`);
	scenario.claim(`boost answers its hash ${held.hash}`, held.hash === keccak256(second), held.why);
	scenario.claim("  X-Boost-Upstream: relay", held.by === "relay", held.by);
	const hash = held.hash ?? "";
	scenario.claim(
		"it has to wait for the earlier one: no builder has seen it",
		senders(outage, hash).length === 0,
	);
	await relay.kill();
	scenario.tell(`kill -9 ${relay.pid}: the relay is gone, with what it had promised`);
	const { reason } = await until("boost to notice", async () => {
		const { relay: seen } = await boostStatus(boostUrl);
		return seen.state === "open" ? seen : null;
	});
	scenario.claim(`boost has opened its breaker: ${reason}`, reason !== null);
	const { stage = "none" } = await status(boostUrl, hash);
	scenario.claim("GET /tx/{hash} says HELD", stage === "HELD", stage);
	const fresh = await submitted(outage, "/fast", first);
	scenario.tell(`the user sends the earlier one, nonce ${nonce}, to ${boostUrl}/fast`);
	scenario.claim(`boost answers its hash ${fresh.hash}`, fresh.hash === keccak256(first), fresh.why);
	scenario.claim("  X-Boost-Upstream: fallback", fresh.by === "fallback", fresh.by);
	scenario.claim("  X-Boost-Breaker: open", fresh.breaker === "open", fresh.breaker);
	const next = await pendingNonce(boostUrl, user.address);
	scenario.claim(`the user's pending nonce is ${nonce + 2}`, next === nonce + 2, String(next));
	const both = [fresh.hash ?? "", hash];
	await provePrivate(outage, both);
	const [one, other] = [await mined(outage, both[0] ?? ""), await mined(outage, hash)];
	scenario.tell(`mined in the blocks ${one.block} and ${other.block}, while the relay is out`);
	scenario.claim("both succeeded, in their order", one.succeeded && other.succeeded && isBefore(one, other));
	const by = both.flatMap((each) => senders(outage, each));
	scenario.claim(
		"the builder has them from the fallback alone",
		by.length > 0 && by.every((signer) => signer === addressOf(keys.fallback)),
		by.join(" "),
	);
	await welcomeBack(outage, hash);
}

/** The relay returns; boost takes it again, and the relay tells the truth of what was mined without it. */
async function welcomeBack(outage: Boosting, hash: string): Promise<void> {
	const { scenario, node, boostUrl, relayUrl, user, keys } = outage;
	scenario.chapter("The relay returns");
	scenario.tell(`a relay on the same port and data, a process of its own (${await outage.restart()})`);
	const closed = await until("boost to take the relay again", async () => {
		const state = await relayState(outage);
		return state === "closed" ? state : null;
	});
	scenario.claim("boost has closed its breaker by its own probes", closed === "closed");
	const told = await until("the relay to see what was mined", async () => {
		const { status: word } = await status(relayUrl, hash);
		return word === "INCLUDED" ? word : null;
	});
	scenario.claim(`the relay says of the one it had promised: ${told}`, told === "INCLUDED");
	await until("boost to see it", async () =>
		(await boostStatus(boostUrl)).journal.depth === 0 ? true : null,
	);
	scenario.claim("boost has nothing left to answer for", true);
	const raw = await transfer(outage, await node.getTransactionCount(user.address));
	const again = await submitted(outage, "/fast", raw);
	scenario.claim(`boost answers the next one's hash ${again.hash}`, again.hash === keccak256(raw), again.why);
	scenario.claim("  X-Boost-Upstream: relay", again.by === "relay", again.by);
	scenario.claim("  X-Boost-Breaker: closed", again.breaker === "closed", again.breaker);
	const { succeeded, block } = await mined(outage, again.hash ?? "");
	const by = senders(outage, again.hash ?? "");
	scenario.claim(
		`it is mined in block ${block}; the builder has it from the relay alone`,
		succeeded && by.length > 0 && by.every((signer) => signer === addressOf(keys.relay)),
		by.join(" "),
	);
}

/** That the chain's own pool has none of them, while the builder puts none there itself. */
async function provePrivate({ scenario, node, builder }: Outage, hashes: readonly string[]): Promise<void> {
	const found = await builder.outsideBurst(() =>
		Promise.all(hashes.map((hash) => node.send("eth_getTransactionByHash", [hash]) as Promise<unknown>)),
	);
	const isPublic = (one: unknown): boolean =>
		one !== null && (one as { blockHash: string | null }).blockHash === null;
	scenario.claim("the chain's public mempool has neither", !found.some(isPublic));
}

async function relayState({ boostUrl }: Boosting): Promise<string> {
	return (await boostStatus(boostUrl)).relay.state;
}

function transfer({ chainId, user }: Outage, nonce: number): Promise<string> {
	return user.signTransaction({
		...{ type: 2, chainId, nonce, to: RECEIVER, value: 10n ** 18n, gasLimit: 21_000n },
		...{ maxFeePerGas: 50n * GWEI, maxPriorityFeePerGas: 2n * GWEI },
	});
}

function submitted({ boostUrl }: Boosting, path: string, raw: string): Promise<Boosted> {
	return submitBoosted(boostUrl, path, raw);
}

function mined({ node }: Outage, hash: string): Promise<Landed> {
	return until(`${hash} to be mined`, () => landed(node, hash));
}

/** Who has sent it to the builder, each time. */
function senders({ builder }: Outage, hash: string): string[] {
	const orders = builder.orders().filter(({ transactions }) => transactions.some((one) => one.hash === hash));
	return orders.map(({ signer }) => signer ?? "nobody");
}

function isBefore(one: Landed, other: Landed): boolean {
	return one.block < other.block || (one.block === other.block && one.index < other.index);
}

function addressOf(key: string): string {
	return new Wallet(key).address;
}
