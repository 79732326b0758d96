// `npm run demo`: plays the market line by line. A user cancels a transaction and swaps through the
// relay instead, a searcher bids for the place after the swap, and the user gets a refund; then the
// relay is killed, and boost carries on. Exits with 0 only if every claim held, else with 1 after
// the line that did not.

import { formatEther, keccak256, Transaction } from "ethers";
import { systemClock, withDeadline } from "../../shared/clock.ts";
import { readCommand } from "../../shared/commandLine.ts";
import { proveNeverMined, surviveTheRelay, takeOneBack } from "./demoChapters.ts";
import {
	proveAccount,
	proveMoney,
	proveOnlyBehind,
	proveOrder,
	refunded,
	submit,
	type WonBid,
} from "./demoProof.ts";
import {
	amount,
	newBlock,
	Scenario,
	ScenarioBroken,
	type Stage,
	Stops,
	setTheStage,
	until,
} from "./demoStage.ts";
import { staysUp } from "./devSystem.ts";
import { PAIR } from "./searcher/pools.ts";
import type { SearcherNews } from "./searcher/searcher.ts";
import { startSearcher } from "./searcher.ts";

/** The amount that the user swaps, in wei of WETH. */
const SWAPPED = 10n * 10n ** 18n;
/** The longest wait. */
const DEMO_MS = 90_000;
const GWEI = 1_000_000_000n;

async function main(): Promise<number> {
	const scenario = new Scenario();
	const stops = new Stops();
	for (const signal of ["SIGINT", "SIGTERM"]) {
		process.on(signal, () => {
			scenario.chapter(`Stopped by ${signal}.`);
			void stops.all().finally(() => process.exit(1));
		});
	}
	try {
		await withDeadline(systemClock, "the demo", DEMO_MS, () => play(scenario, stops));
		scenario.chapter(`All of it held: ${scenario.claims} claims.`);
		return 0;
	} catch (thrown) {
		// Stopped in the middle: what fails then says nothing.
		if (stops.begun) return 1;
		if (!(thrown instanceof ScenarioBroken)) scenario.broken(thrown);
		scenario.chapter("The demo has failed.");
		return 1;
	} finally {
		await stops.all();
	}
}

async function play(scenario: Scenario, stops: Stops): Promise<void> {
	const stage = await setTheStage(scenario, stops);
	const { system, market, relayUrl, searcherKey } = stage;
	const news: SearcherNews[] = [];
	const bot = await startSearcher(
		{
			...{ relayWsUrl: relayUrl.replace("http", "ws"), nodeUrl: system.chain.url, privateKey: searcherKey },
			...{ arbitrage: market.arbitrage, pairs: market.pairs },
		},
		{ clock: systemClock, tell: (one) => news.push(one) },
	);
	stops.add(() => bot.stop());
	scenario.tell(`searcher    ${bot.address}, listening on the relay's websocket`);
	scenario.chapter("The user changes their mind");
	const regretted = await takeOneBack(stage);
	const signed = await userSwaps(stage);
	const won = await searcherBids(stage, news, signed);
	await userIsPaid(stage, news, won);
	scenario.chapter("And what was taken back");
	await proveNeverMined(stage, regretted, won.target);
	// It ends with its connection, which the next chapter cuts.
	await bot.stop();
	await surviveTheRelay(stage);
}

/** The signed swap, which the relay has accepted. */
async function userSwaps(stage: Stage): Promise<Transaction> {
	const { scenario, system, relayUrl, node, market, user } = stage;
	scenario.chapter("The user swaps, privately");
	const raw = await user.signTransaction({
		...{ type: 2, chainId: system.chain.chainId, nonce: await node.getTransactionCount(user.address) },
		to: market.pairs[0],
		data: PAIR.encodeFunctionData("swap", [market.weth, SWAPPED, 0n]),
		...{ gasLimit: 200_000n, maxFeePerGas: 50n * GWEI, maxPriorityFeePerGas: 2n * GWEI },
	});
	// So that a searcher has all of a slot.
	await newBlock(stage);
	const { hash, why } = await submit(`${relayUrl}/fast`, raw);
	if (why !== "") throw new Error(`the relay refuses it: ${why}`);
	scenario.tell(`${user.address} sells ${formatEther(SWAPPED)} WETH in pool A,`);
	scenario.tell(`signs that and sends it to ${relayUrl}/fast`);
	scenario.claim(`the relay answers its hash ${keccak256(raw)}`, hash === keccak256(raw), hash ?? "");
	const inPool = await stage.builder.outsideBurst(() => system.chain.rpc("eth_getTransactionByHash", [hash]));
	scenario.claim("the chain's public mempool does not have it", inPool === null);
	return Transaction.from(raw);
}

async function searcherBids(
	{ scenario, market, node }: Stage,
	news: readonly SearcherNews[],
	signed: Transaction,
): Promise<WonBid> {
	scenario.chapter("The searcher sees it and bids");
	const target = signed.hash ?? "";
	const seen = await until("the searcher to see the swap", () =>
		news.find((one) => one.kind === "seen" && one.target === target),
	);
	const shown = JSON.stringify("transaction" in seen ? seen.transaction : null);
	const fields = Object.keys(JSON.parse(shown) as object);
	scenario.tell(`shown: ${fields.join(" ")}`);
	const { r = "", s = "" } = signed.signature ?? {};
	scenario.claim(
		"what it is shown has no signature: no v, r, s, nor their values anywhere",
		r !== "" &&
			!fields.some((name) => ["v", "r", "s", "yParity"].includes(name)) &&
			!shown.includes(r.slice(2)) &&
			!shown.includes(s.slice(2)),
		shown,
	);
	const bid = await until("the relay to answer the searcher's bid", () =>
		news.find((one) => one.kind === "bid" || one.kind === "refused" || one.kind === "fault"),
	);
	if (bid.kind !== "bid") throw new Error(`the bid is not taken: ${bid.why}`);
	const { backrun } = bid;
	scenario.tell(`backrun     ${backrun.hash}: buys in pool B, sells in pool A`);
	scenario.tell(`            ${formatEther(backrun.amountIn)} WETH around, gain ${amount(backrun.gain)}`);
	scenario.tell(`bid         ${amount(backrun.bid)} to block.coinbase`);
	scenario.claim(
		`the relay takes it for block ${bid.block} as bundle ${bid.bundle}`,
		bid.bundle === keccak256(target + backrun.hash.slice(2)),
	);
	const [buyAt, sellAt] = [market.pairs[1], market.pairs[0]];
	scenario.claim("it buys where TOKEN is cheap", backrun.buyAt === buyAt && backrun.sellAt === sellAt);
	const receipt = await until("the swap to be mined", () => node.getTransactionReceipt(target));
	// The bid that stands behind the target; if there is none, the last one on it.
	const behind = (await node.getBlock(receipt.blockNumber))?.transactions[receipt.index + 1];
	const bids = news.flatMap((one) => (one.kind === "bid" && one.target === target ? [one] : []));
	const won = bids.find((one) => one.backrun.hash === behind) ?? bids.at(-1) ?? bid;
	return { target, backrun: won.backrun.hash, bundle: won.bundle, bid: won.backrun.bid };
}

async function userIsPaid(stage: Stage, news: readonly SearcherNews[], won: WonBid): Promise<void> {
	const { scenario, relayUrl } = stage;
	scenario.chapter("The block: target, backrun, refund");
	const trio = await proveOrder(stage, won);
	await proveOnlyBehind(stage, trio);
	scenario.chapter("The money, read from the chain");
	const brought = await proveMoney(stage, won, trio);
	scenario.chapter("The relay's own account");
	await until("the relay to report the refund", () => refunded(relayUrl, won.target));
	const bundles = news.flatMap((one) => (one.kind === "bid" ? [one.bundle] : []));
	await proveAccount(stage, won, trio, { brought, bids: new Set(bundles).size });
	const statuses = () => news.flatMap((one) => (one.kind === "status" ? [one.status] : []));
	const { blockNumber, bid } = await until("the searcher to receive the bundle's outcome", () =>
		statuses().find(({ bundleHash, stage }) => bundleHash === won.bundle && stage === "INCLUDED"),
	);
	scenario.claim(
		`the searcher is notified: bundle INCLUDED in block ${trio.target.block}, bid ${won.bid} wei`,
		blockNumber === trio.target.block && bid === String(won.bid),
		`block ${blockNumber}, bid ${bid}`,
	);
}

const COMMAND = {
	name: "npm run demo",
	about: [
		"plays the market line by line on a new system of its own: a swap, a bid, a refund, a cancel, and a relay",
		"that is killed. It takes a minute, ends what it has started, and exits with 0 if all of it held.",
	],
};

if (readCommand(COMMAND, process.argv.slice(2)) !== null) process.exit(await staysUp(main()));
