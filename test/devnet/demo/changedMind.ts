// Proves that a user can cancel a transaction by its hash: the builder forgets it, its nonce is free, and no block
// ever holds it.

import { Transaction } from "ethers";
import { call, type EventsAnswer, page, type StatusAnswer, submit } from "./access.ts";
import { until } from "./scenario.ts";
import { landed, newBlock, type Stage, transfer } from "./stage.ts";

/** Sends a transaction, and takes it back once the builder has it. Answers what was taken back. */
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

/** That no block holds it: its nonce went to `instead`, which is mined. */
export async function proveNeverMined(
	{ scenario, node }: Stage,
	{ hash, nonce }: Transaction,
	instead: string,
): Promise<void> {
	const used = await node.getTransaction(instead);
	scenario.claim(`nonce ${nonce} went to the swap`, used?.nonce === nonce && used.blockNumber !== null);
	scenario.claim("what was taken back is in no block", (await landed({ node }, hash ?? "")) === null);
}
