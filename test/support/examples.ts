// Runs the examples of docs/examples on a whole system: gives each example what it waits for, and
// returns how it ended.

import { compileFolder } from "../devnet/compileContracts.ts";
import { type BiddingFixture, bidder, signedBy } from "./biddingFixture.ts";
import { ROOT } from "./documents.ts";
import { metricsOf } from "./relayClient.ts";
import { until } from "./until.ts";

export const EXAMPLES = `${ROOT}/docs/examples`;

/** The contract of docs/examples/Payer.sol. */
export const payer = () => compileFolder(EXAMPLES, true)("Payer");

/** The address of the contract on the fixture's chain. */
export const PAYER_ADDRESS = `0x${"9a".repeat(20)}`;

/** How an example is run to its end. */
export interface Ran {
	readonly code: number | null;
	readonly stdout: string;
	readonly stderr: string;
}
export type RunExample = (env: Readonly<Record<string, string>>) => Promise<Ran>;

interface Block {
	readonly transactions: readonly { readonly hash: string; readonly to: string; readonly value: string }[];
}

async function subscriptions({ system }: BiddingFixture): Promise<number> {
	return Number(/^relay_subscriptions (\d+)$/m.exec(await metricsOf(system.client.url))?.[1]);
}

/** Waits for a request to the builder that holds `text`, and has it build a block. */
async function blockWith({ system }: BiddingFixture, text: (request: string) => boolean): Promise<Block> {
	await until("the builder has it", () =>
		system.builder.requests().some((request) => text(JSON.stringify(request.params))),
	);
	await system.nextBlock();
	return (await system.chain.rpc("eth_getBlockByNumber", ["latest", true])) as Block;
}

/** Runs an example that bids. Returns its output, its target, and the block. */
export async function runBid(fixture: BiddingFixture, run: RunExample, accounts: readonly [number, number]) {
	const [searcher, user] = accounts;
	await fixture.system.chain.rpc("anvil_setCode", [PAYER_ADDRESS, payer().runtime]);
	const before = await subscriptions(fixture);
	const running = run({
		RELAY_WS_URL: `ws://127.0.0.1:${fixture.system.relay.port}`,
		PRIVATE_KEY: bidder(searcher).keyHex,
		PAYER: PAYER_ADDRESS,
	});
	await until("it watches", async () => (await subscriptions(fixture)) > before);
	const target = signedBy(user, { value: 1n });
	await fixture.system.client.send(target.raw, "/maxbackruns");
	const bundle = (request: string) =>
		request.includes(target.raw) && (JSON.parse(request) as [{ txs?: string[] }])[0].txs?.length === 2;
	const block = await blockWith(fixture, bundle);
	return { ...(await running), target: target.hash, block };
}

/** Runs an example that sends a transaction. Returns its output and the block. */
export async function runSend(fixture: BiddingFixture, run: RunExample, account: number) {
	const before = fixture.system.builder.requests().length;
	const running = run({ RELAY_URL: fixture.system.client.url, PRIVATE_KEY: bidder(account).keyHex });
	await until("the builder has it", () => fixture.system.builder.requests().length > before);
	const block = await blockWith(fixture, () => true);
	return { ...(await running), block };
}
