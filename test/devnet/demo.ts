// `npm run demo`: the market from nothing, told line by line. A user takes a transaction back, swaps by the relay instead,
// a searcher bids for the place behind that, and the user is paid; then the relay is killed, and boost carries on. Exit
// code 0 only if every claim held, 1 behind the line that did not.

import { formatEther, JsonRpcProvider, keccak256, Transaction, type Wallet } from "ethers";
import { systemClock, withDeadline } from "../../shared/clock.ts";
import { compileContracts } from "./compileContracts.ts";
import { refunded, submit } from "./demo/access.ts";
import { proveNeverMined, takeOneBack } from "./demo/changedMind.ts";
import { surviveTheRelay } from "./demo/outage.ts";
import {
	type Fixture,
	proveAccount,
	proveMoney,
	proveOnlyBehind,
	proveOrder,
	type WonBid,
} from "./demo/proof.ts";
import { amount, Heard, Scenario, ScenarioBroken, STEP_MS, Stops, until } from "./demo/scenario.ts";
import { type DemoServers, startServers } from "./demoServers.ts";
import { deployMarket, type Market, POOL } from "./deployMarket.ts";
import { type DevSystem, startDevSystem, staysUp } from "./devSystem.ts";
import { painted, usesColour } from "./narrator.ts";
import { bestRoundTrip, PAIR } from "./searcher/pools.ts";
import type { SearcherNews } from "./searcher/searcher.ts";
import { startSearcher } from "./searcher.ts";

/** Long enough for a bid on a busy machine, short enough to look on. */
const SLOT_SECONDS = 2;
const REFUND_PERCENT = 90n;
/** What the user swaps, in wei of WETH. */
const SWAPPED = 10n * 10n ** 18n;
/** Beyond this nothing is waited for. */
const DEMO_MS = 90_000;
const GWEI = 1_000_000_000n;

/** Everything that runs. */
interface Stage extends DemoServers {
	readonly system: DevSystem;
	readonly node: JsonRpcProvider;
	readonly market: Market;
	readonly user: Wallet;
	readonly searcherKey: string;
}

async function main(): Promise<number> {
	const scenario = new Scenario(
		(line) => process.stdout.write(`${line}\n`),
		(text, style) => painted(text, style, usesColour(process.stdout)),
	);
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
	const news = new Heard<SearcherNews>();
	const bot = await startSearcher(
		{
			relayWsUrl: stage.relayUrl.replace("http", "ws"),
			nodeUrl: stage.system.chain.url,
			privateKey: stage.searcherKey,
			arbitrage: stage.market.arbitrage,
			pairs: stage.market.pairs,
		},
		{ clock: systemClock, tell: (one) => news.hear(one) },
	);
	stops.add(() => bot.stop());
	scenario.tell(`searcher    ${bot.address}, listening on the relay's websocket`);
	scenario.chapter("The user changes their mind");
	const { chain, builder } = stage.system;
	const regretted = await takeOneBack({ scenario, ...stage, chainId: chain.chainId, builder });
	const signed = await userSwaps(scenario, stage);
	const won = await searcherBids(scenario, stage, news, signed);
	await userIsPaid(scenario, stage, news, won);
	scenario.chapter("And what was taken back");
	await proveNeverMined({ scenario, ...stage }, regretted, won.target);
	// It ends with its connection, which the next chapter cuts.
	await bot.stop();
	await surviveTheRelay({ scenario, ...stage, builder, chainId: chain.chainId });
}

async function setTheStage(scenario: Scenario, stops: Stops): Promise<Stage> {
	scenario.chapter("The stage: a chain, a builder and a market of their own, all gone afterwards");
	scenario.tell(
		`It takes about half a minute. "ok" is a claim that was checked; the first that fails ends it.`,
	);
	scenario.tell("starting the dev chain and its builder …");
	const system = await startDevSystem({ chainPort: 0, builderPort: 0, slotSeconds: SLOT_SECONDS });
	stops.add(() => system.stop());
	const { chain, builder } = system;
	scenario.tell(`dev chain   ${chain.url}, chain id ${chain.chainId}, a block every ${chain.slotSeconds} s`);
	scenario.tell(`dev builder ${builder.url}, coinbase ${builder.coinbase}`);
	// The one setting that may be given: what a relay that refunds otherwise does to the scenario.
	const percent = process.env.REFUND_PERCENT ?? String(REFUND_PERCENT);
	const servers = await startServers({ system, percent, stops, scenario });
	scenario.tell("compiling and deploying two pools and the searcher's contract …");
	const [deployer, searcher, user] = [chain.wallet(0), chain.wallet(1), chain.wallet(2)];
	const market = await deployMarket(chain.url, compileContracts(), { deployer, searcher, user });
	const [poolA, poolB] = market.pairs;
	scenario.tell(`pool A      ${poolA}, ${formatEther(POOL.weth)} WETH and ${formatEther(POOL.token)} TOKEN`);
	scenario.tell(`pool B      ${poolB}, the same`);
	scenario.claim(
		"no round trip through both gains anything now",
		bestRoundTrip(POOL, POOL, POOL.weth) === null,
	);
	const node = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1, staticNetwork: true });
	stops.add(async () => node.destroy());
	return { system, ...servers, node, market, user, searcherKey: searcher.privateKey };
}

/** The signed swap, which the relay has taken. */
async function userSwaps(scenario: Scenario, stage: Stage): Promise<Transaction> {
	const { system, relayUrl, node, market, user } = stage;
	scenario.chapter("The user swaps, privately");
	const raw = await user.signTransaction({
		type: 2,
		chainId: system.chain.chainId,
		nonce: await node.getTransactionCount(user.address),
		to: market.pairs[0],
		data: PAIR.encodeFunctionData("swap", [market.weth, SWAPPED, 0n]),
		gasLimit: 200_000n,
		maxFeePerGas: 50n * GWEI,
		maxPriorityFeePerGas: 2n * GWEI,
	});
	// At the beginning of a slot, so that a searcher has all of it.
	const head = await node.getBlockNumber();
	await until("a new block", async () => ((await node.getBlockNumber()) > head ? true : null));
	const hash = await submit(relayUrl, "/fast", raw);
	scenario.tell(`${user.address} sells ${formatEther(SWAPPED)} WETH in pool A,`);
	scenario.tell(`signs that and sends it to ${relayUrl}/fast`);
	scenario.claim(`the relay answers its hash ${keccak256(raw)}`, hash === keccak256(raw), hash);
	const inPool = await system.builder.outsideBurst(() =>
		system.chain.rpc("eth_getTransactionByHash", [hash]),
	);
	scenario.claim("the chain's public mempool does not have it", inPool === null);
	return Transaction.from(raw);
}

async function searcherBids(
	scenario: Scenario,
	stage: Stage,
	news: Heard<SearcherNews>,
	signed: Transaction,
): Promise<WonBid> {
	scenario.chapter("The searcher sees it and bids");
	const target = signed.hash ?? "";
	const shown = await news.first("the searcher to see the swap", STEP_MS, (one) =>
		one.kind === "seen" && one.target === target ? JSON.stringify(one.transaction) : null,
	);
	const fields = Object.keys(JSON.parse(shown) as object);
	scenario.tell(`shown: ${fields.join(" ")}`);
	const [r, s] = [signed.signature?.r, signed.signature?.s];
	scenario.claim(
		"what it is shown has no signature: no v, r, s, nor their values anywhere",
		r !== undefined &&
			s !== undefined &&
			!fields.some((name) => ["v", "r", "s", "yParity"].includes(name)) &&
			!shown.includes(r.slice(2)) &&
			!shown.includes(s.slice(2)),
		shown,
	);
	const bid = await news.first("the relay to answer the searcher's bid", STEP_MS, (one) =>
		one.kind === "bid" || one.kind === "refused" || one.kind === "fault" ? one : null,
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
	const { market, node } = stage;
	const [buyAt, sellAt] = [market.pairs[1], market.pairs[0]];
	scenario.claim("it buys where TOKEN is cheap", backrun.buyAt === buyAt && backrun.sellAt === sellAt);
	await until("the swap to be mined", () => node.getTransactionReceipt(target));
	return wonBid(stage, news, target);
}

/** Of all bids on the target the one that stands behind it; where none does, the last. */
async function wonBid({ node }: Stage, news: Heard<SearcherNews>, target: string): Promise<WonBid> {
	const receipt = await node.getTransactionReceipt(target);
	const block = await node.getBlock(receipt?.blockNumber ?? "latest");
	const behind = block?.transactions[(receipt?.index ?? 0) + 1];
	const bids = news.all().flatMap((one) => (one.kind === "bid" && one.target === target ? [one] : []));
	const won = bids.find(({ backrun }) => backrun.hash === behind) ?? bids.at(-1);
	if (won === undefined) throw new Error("nobody has bid");
	return { target, backrun: won.backrun.hash, bundle: won.bundle, bid: won.backrun.bid };
}

async function userIsPaid(
	scenario: Scenario,
	{ system, relayUrl, node, user }: Stage,
	news: Heard<SearcherNews>,
	won: WonBid,
): Promise<void> {
	const fixture: Fixture = {
		scenario,
		node,
		relayUrl,
		coinbase: system.builder.coinbase.toLowerCase(),
		user: user.address.toLowerCase(),
		percent: REFUND_PERCENT,
	};
	scenario.chapter("The block: target, backrun, refund");
	const trio = await proveOrder(fixture, won);
	await proveOnlyBehind(fixture, trio);
	scenario.chapter("The money, read from the chain");
	const brought = await proveMoney(fixture, won, trio);
	scenario.chapter("The relay's own account");
	await until("the relay to tell of the refund", () => refunded(relayUrl, won.target));
	const bundles = news.all().flatMap((one) => (one.kind === "bid" ? [one.bundle] : []));
	await proveAccount(fixture, won, trio, { brought, bids: new Set(bundles).size });
	const included = await news.first("the searcher to hear what became of the bundle", STEP_MS, (one) =>
		one.kind === "status" && one.status.bundleHash === won.bundle && one.status.status === "INCLUDED"
			? one.status
			: null,
	);
	const { blockNumber, bid } = included;
	scenario.claim(
		`the searcher is told: bundle INCLUDED in block ${trio.target.block}, bid ${won.bid} wei`,
		blockNumber === trio.target.block && bid === String(won.bid),
		`block ${blockNumber}, bid ${bid}`,
	);
}

process.exit(await staysUp(main()));
