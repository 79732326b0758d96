// Hundreds of requests, thousands in the nightly run, that were spoilt at random, from fixed seeds,
// over HTTP and websocket: each is answered in good form, in time, and never by a fault of the
// relay's own, and the relay is healthy behind them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { keccak256 } from "../../../shared/ethereum/signatures.ts";
import { WsClient } from "../../support/clients.ts";
import { sized } from "../../support/length.ts";
import { SeededRandom } from "../../support/seededRandom.ts";
import { rawTransaction } from "../../support/txFactory.ts";
import { type BadInputFixture, hex, prepareAccounts, startFixture } from "./badInput/fixture.ts";
import { mutate } from "./badInput/mutations.ts";
import { CORPUS, checkOne, PATHS, randomSubmission, shapeOf } from "./badInput/random.ts";
import { Wire, type WireResponse } from "./badInput/wire.ts";

const SEEDS = [0x5eed1, 0x5eed2, 0x5eed3, 0x5eed4];
const HTTP_REQUESTS = sized(60, 500);
const WS_MESSAGES = sized(30, 250);
const SUBMISSIONS = 400;
/** Words that wallets match on, by the reason beside them. */
const WORDS: ReadonlyMap<string, RegExp> = new Map([
	["WRONG_CHAIN", /^invalid chain id for signer: have \d+ want 31337$/],
	["TIP_ABOVE_FEE_CAP", /^max priority fee per gas higher than max fee per gas/],
	["TX_GAS_LIMIT", /^transaction gas limit too high/],
	["INTRINSIC_GAS", /^intrinsic gas too low/],
	["FLOOR_DATA_GAS", /^floor data gas/],
	["NONCE_MAX", /^nonce has max value/],
	["NONCE_TOO_LOW", /^nonce too low: next nonce \d+, tx nonce \d+$/],
	["NONCE_TOO_HIGH", /^nonce too high: next nonce \d+, tx nonce \d+$/],
	["FEE_CAP_TOO_LOW", /^max fee per gas less than block base fee: /],
	[
		"INSUFFICIENT_FUNDS",
		/^insufficient funds for gas \* price \+ value: balance \d+, tx cost \d+, overshot \d+$/,
	],
]);
const SENTINEL = '{"jsonrpc":"2.0","id":"sentinel","method":"net_version"}';

let fixture: BadInputFixture;
before(async () => {
	fixture = await startFixture();
});
after(() => fixture.stop());

function spoilt(random: SeededRandom): Buffer {
	return mutate(random.pick(CORPUS), random.pick(CORPUS), random);
}

test(`${SEEDS.length * HTTP_REQUESTS} malformed requests over HTTP`, async () => {
	const counts = await Promise.all(
		SEEDS.map(async (seed) => {
			const random = new SeededRandom(seed);
			const wire = new Wire(fixture.system.relay.port);
			let good = 0;
			for (let i = 0; i < HTTP_REQUESTS; i++) {
				const body = spoilt(random);
				const path = random.below(3) === 0 ? random.pick(PATHS) : "/fast";
				const named = `seed 0x${seed.toString(16)}, request ${i}, ${path}: ${body.toString("latin1", 0, 2_000)}`;
				good += await checkHttp(wire, path, body).catch((thrown: Error) => {
					throw new Error(`${named}\n${thrown.message}`, { cause: thrown });
				});
			}
			assert.equal(wire.connections, 1, "no answer ended the connection");
			wire.close();
			return good;
		}),
	);
	fixture.checkLog();
	// A fuzzer whose requests are all thrown away at the door would prove nothing.
	const good = counts.reduce((sum, count) => sum + count, 0);
	assert.ok(good > (SEEDS.length * HTTP_REQUESTS) / 10, `${good} were served`);
});

/** 1 where something was served, else 0. */
async function checkHttp(wire: Wire, path: string, body: Buffer): Promise<number> {
	const response = await wire.send({ path, body });
	if (response.status === 404 || response.status === 405) {
		assert.ok(["/nope", "/tx", "/info"].includes(path), "served elsewhere");
		return 0;
	}
	if (!checkBody(response, body)) return isServed(response) ? 1 : 0;
	// The node had no time: on a busy machine that may be so once.
	assert.equal(checkBody(await wire.send({ path, body }), body), false, "the node fails again");
	return 0;
}

function isServed({ status, body }: WireResponse): boolean {
	return status === 204 || body.includes('"result"');
}

/** Holds an answer against what the body asks for. True where the node failed. */
function checkBody(
	{ status, body: text }: { status: number; body: string },
	body: Buffer,
	transport: "http" | "ws" = "http",
): boolean {
	const shape = shapeOf(body, transport);
	if (shape.kind === "silent") {
		assert.deepEqual([status, text], [204, ""]);
		return false;
	}
	const answer = JSON.parse(text);
	if (shape.kind === "unparsable") {
		assert.equal(status, 400);
		assert.deepEqual([answer.id, answer.error.code], [null, -32700]);
		assert.match(answer.error.message, /^parse error: not (JSON|UTF-8)$/);
		return false;
	}
	assert.equal(status, 200);
	if (shape.kind === "refused") {
		assert.equal(answer.error.code, -32600);
		return checkOne(answer, null);
	}
	if (shape.kind === "single") return checkOne(answer, shape.id);
	assert.equal(answer.length, shape.ids.length);
	return shape.ids.map((id, i) => checkOne(answer[i], id)).includes(true);
}

test(`${SEEDS.length * WS_MESSAGES} malformed messages over websockets, answered as over HTTP`, async () => {
	await Promise.all(
		SEEDS.map(async (seed) => {
			const random = new SeededRandom(seed ^ 0xffff);
			const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/fast`);
			for (let i = 0; i < WS_MESSAGES; i++) {
				const message = spoilt(random);
				const named = `seed 0x${seed.toString(16)}, message ${i}: ${message.toString("latin1", 0, 2_000)}`;
				await checkMessage(client, message).catch((thrown: Error) => {
					throw new Error(`${named}\n${thrown.message}`, { cause: thrown });
				});
			}
			client.terminate();
		}),
	);
	fixture.checkLog();
});

/** Binary, so that what is no UTF-8 reaches the relay and not only its websocket library. */
async function checkMessage(client: WsClient, message: Buffer): Promise<void> {
	const { kind } = shapeOf(message, "ws");
	client.send(message);
	if (kind !== "silent") {
		const status = kind === "unparsable" ? 400 : 200;
		const text = JSON.stringify(await client.next());
		if (checkBody({ status, body: text }, message, "ws")) {
			client.send(message);
			const again = JSON.stringify(await client.next());
			assert.equal(checkBody({ status, body: again }, message, "ws"), false, "the node fails again");
		}
	}
	client.send(SENTINEL);
	assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: "sentinel", result: "31337" });
}

test(`${SUBMISSIONS} transactions of random values are accepted exactly if they break no rule`, async () => {
	const random = new SeededRandom(0x7a5);
	const submissions = Array.from({ length: SUBMISSIONS }, (_, i) => randomSubmission(random, 10_000 + i));
	await prepareAccounts(fixture.system.chain, submissions);
	let taken = 0;
	for (const [i, { options, reasons }] of submissions.entries()) {
		const raw = hex(rawTransaction(options));
		const path = random.pick(["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"]);
		const answer = await fixture.system.client.ask("eth_sendRawTransaction", [raw], path);
		const named = `${i}: ${JSON.stringify(answer)} for ${reasons} ${raw}`;
		if (reasons.length === 0) {
			assert.equal(answer.result, hex(keccak256(Buffer.from(raw.slice(2), "hex"))), named);
			taken += 1;
		} else {
			assert.equal(answer.error?.code, -32000, named);
			const { reason } = (answer.error?.data ?? {}) as { reason: string };
			assert.ok(reasons.includes(reason), named);
			assert.match(answer.error?.message ?? "", WORDS.get(reason) ?? /^$/, named);
		}
	}
	assert.ok(taken > SUBMISSIONS / 20, `${taken} were taken`);
	fixture.checkLog();
});

test("the relay still works after all this", () => fixture.stillWell());
