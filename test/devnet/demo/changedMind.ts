// Proves that a user can cancel a transaction by its hash: the builder forgets it, its nonce is free, and no block
// ever holds it.

import { keccak256, type Wallet } from "ethers";
import { confirmations, pendingNonce, status, submit, takeBack, transactionByHash } from "./access.ts";
import { type Fixture, landed } from "./proof.ts";
import { until } from "./scenario.ts";

const WEI_SENT = 10n ** 18n;
const GWEI = 1_000_000_000n;
const RECEIVER = "0x00000000000000000000000000000000DeaDBeef";

/** What it is played with, beside the fixture. */
export interface Regretting extends Pick<Fixture, "scenario" | "node" | "relayUrl"> {
	readonly chainId: number;
	readonly user: Wallet;
	readonly builder: BuilderBook;
}

/** What the builder shows of itself. */
export interface BuilderBook {
	orders(): readonly {
		readonly state: string;
		readonly transactions: readonly { readonly hash: string }[];
	}[];
}

/** What was taken back. */
export interface Regretted {
	readonly hash: string;
	readonly nonce: number;
}

/** Sends a transaction, and takes it back once the builder has it. */
export async function takeOneBack(regretting: Regretting): Promise<Regretted> {
	const { scenario, node, relayUrl, chainId, user, builder } = regretting;
	const nonce = await node.getTransactionCount(user.address);
	const raw = await user.signTransaction({
		...{ type: 2, chainId, nonce, to: RECEIVER, value: WEI_SENT, gasLimit: 21_000n },
		...{ maxFeePerGas: 50n * GWEI, maxPriorityFeePerGas: 2n * GWEI },
	});
	const hash = keccak256(raw);
	// At the beginning of a slot, so that there is time for it.
	const head = await node.getBlockNumber();
	await until("a new block", async () => ((await node.getBlockNumber()) > head ? true : null));
	await submit(relayUrl, "/fast", raw);
	await until("the builder to have it", async () => (live(builder, hash) > 0 ? true : null));
	scenario.tell(`${user.address} sends 1 ETH by mistake:`);
	scenario.tell(`${hash}, nonce ${nonce}`);
	scenario.claim("the builder has it for the next block", live(builder, hash) === 1);
	const after = await pendingNonce(relayUrl, user.address);
	scenario.claim(`the user's pending nonce is ${nonce + 1}`, after === nonce + 1, String(after));
	scenario.claim("the relay answers eth_cancelTransaction with true", await takeBack(relayUrl, hash));
	const { summary } = await until("the builder to confirm", async () => {
		const told = await confirmations(relayUrl, hash);
		return told !== null && told.confirmed === told.builders ? told : null;
	});
	scenario.claim(`GET /tx/{hash}/events: ${summary}`, summary === "1 of 1 builders confirmed");
	scenario.claim("the builder would not mine it any more", live(builder, hash) === 0);
	const { stage } = await status(relayUrl, hash);
	scenario.claim("GET /tx/{hash} says CANCELLED", stage === "CANCELLED", stage);
	scenario.claim("eth_getTransactionByHash says null", (await transactionByHash(relayUrl, hash)) === null);
	const free = await pendingNonce(relayUrl, user.address);
	scenario.claim(`nonce ${nonce} is free again`, free === nonce, String(free));
	return { hash, nonce };
}

/** That no block holds it: its nonce went to `instead`, which is mined. */
export async function proveNeverMined(
	{ scenario, node }: Pick<Regretting, "scenario" | "node">,
	{ hash, nonce }: Regretted,
	instead: string,
): Promise<void> {
	const used = await node.getTransaction(instead);
	scenario.claim(`nonce ${nonce} went to the swap`, used?.nonce === nonce && used.blockNumber !== null);
	scenario.claim("what was taken back is in no block", (await landed(node, hash)) === null);
}

/** How many orders with it the builder would put into a block. */
function live(builder: BuilderBook, hash: string): number {
	const orders = builder.orders().filter(({ state }) => state === "live");
	return orders.filter(({ transactions }) => transactions.some((one) => one.hash === hash)).length;
}
