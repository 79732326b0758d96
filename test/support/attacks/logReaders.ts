// Blocks full of events, and an honest client that follows them.

import assert from "node:assert/strict";
import { FeedClient } from "../feeds.ts";
import { rawTransaction, testAccount } from "../txFactory.ts";
import { until } from "../until.ts";
import { EMITS_MANY } from "./attackContracts.ts";
import type { AttackFixture } from "./attackFixture.ts";
import { HONEST } from "./wire.ts";

/** The contract of the events. */
export const LOG_EMITTER: string = `0x${"e3".repeat(20)}`;
/** Events of a block; the relay reads 8 MiB of them at most. */
const EVENTS = 4_000;
const EMITTING = testAccount(3_000_000);

/** Mines a block with events. */
export async function emit(fixture: AttackFixture, events = EVENTS): Promise<void> {
	const { chain } = fixture;
	await chain.rpc("anvil_setCode", [LOG_EMITTER, EMITS_MANY]);
	await fixture.fund(EMITTING.address, 10n ** 21n);
	const nonce = Number(await chain.rpc("eth_getTransactionCount", [EMITTING.address, "latest"]));
	const data = `0x${events.toString(16).padStart(64, "0")}`;
	const call = { by: EMITTING, nonce, to: LOG_EMITTER, data, gasLimit: 8_000_000 };
	await chain.rpc("eth_sendRawTransaction", [`0x${rawTransaction(call).toString("hex")}`]);
	await fixture.passBlock();
}

/**
 * An honest client of `url` with one subscription to the events; `next` waits until it has those of
 * one more block of `events`.
 */
export async function follow(url: string, events = EVENTS) {
	const client = await FeedClient.open(`${url.replace("http", "ws")}/ws`, { localAddress: HONEST });
	const id = await client.subscribe("logs", { address: LOG_EMITTER });
	let blocks = 0;
	return {
		client,
		async next(): Promise<void> {
			blocks += 1;
			await until("its logs", () => client.received(id).length >= blocks * events);
			assert.equal(client.received(id).length, blocks * events);
		},
	};
}
