// A fallback that lies in every field of its answers and pages: what boost has acknowledged is lost
// by nothing that it says, what was cancelled does not come back, and nothing becomes public.

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, it } from "node:test";
import { decodeTransaction } from "../../../shared/ethereum/transaction.ts";
import { callsIn, type WireCall } from "../../faults/wireFaults.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { SeededRandom } from "../../support/seededRandom.ts";
import { until } from "../../support/until.ts";

const SEEDS = [1, 2, 3, 4];
/** Transactions of each boost that are submitted in each state of the relay. */
const EACH = 4;
/** Pages that each liar tells before the relay comes back. */
const PAGES = 5;
const SOFT = { path: "/noreverts?softCancellations=true" };

const STAGES = [
	...["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST", "HELD", "INCLUDED", "REVERTED"],
	...["REPLACED", "CANCELLED", "CANCELLED", "EXPIRED", "DROPPED", "", 7, null],
];
const MESSAGES = [
	...["nonce too low", "already known", "transaction not found or no longer pending", "internal error"],
	...["replacement transaction underpriced", "insufficient funds", "limit exceeded", "txpool is full", ""],
];
const CODES = [-32000, -32603, -32005, -32601, 3, 0];

/**
 * A fallback that tells the truth of its chain's id, so that it is used, and takes most
 * submissions; all else is made up.
 */
class Liar {
	pages = 0;
	readonly #random: SeededRandom;
	readonly #server: Server;

	private constructor(seed: number) {
		this.#random = new SeededRandom(seed);
		this.#server = createServer((request, response) => void this.#answer(request, response));
	}

	static async start(seed: number): Promise<Liar> {
		const liar = new Liar(seed);
		await new Promise<void>((resolve) => liar.#server.listen(0, "127.0.0.1", resolve));
		return liar;
	}

	get url(): string {
		return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
	}

	async stop(): Promise<void> {
		this.#server.closeAllConnections();
		await new Promise<void>((resolve) => this.#server.close(() => resolve()));
	}

	async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		const body = Buffer.concat(chunks).toString();
		response.setHeader("content-type", "application/json");
		if (request.method === "GET") {
			this.pages += 1;
			response.end(JSON.stringify(this.#page((request.url ?? "").split("/").at(-1) ?? "")));
			return;
		}
		const answers = callsIn(body).map((call) => ({ jsonrpc: "2.0", id: call.id, ...this.#said(call) }));
		response.end(JSON.stringify(body.startsWith("[") ? answers : answers[0]));
	}

	#said({ method, params }: WireCall): { readonly result?: unknown; readonly error?: unknown } {
		const random = this.#random;
		if (method === "eth_chainId") return { result: "0x7a69" };
		const decoded =
			method === "eth_sendRawTransaction"
				? decodeTransaction(Buffer.from(String(params[0]).slice(2), "hex"))
				: null;
		if (decoded?.ok && !random.oneIn(4)) return { result: decoded.tx.hash };
		if (method === "eth_cancelTransaction" && !random.oneIn(3)) return { result: true };
		if (random.oneIn(3)) return { error: { code: random.pick(CODES), message: random.pick(MESSAGES) } };
		return { result: this.#value(String(params[0])) };
	}

	/** A value that may pass for a receipt, a nonce, a head, a transaction or a verdict. */
	#value(of: string): unknown {
		const random = this.#random;
		const hash = random.oneIn(4) ? `0x${random.bytes(32).toString("hex")}` : of;
		const number = random.pick(["0x0", "0x1", "0xffffffff", "0xffffffffffffffff", "-1", 7, null]);
		const status = random.pick(["0x0", "0x1"]);
		return random.pick<unknown>([
			...[null, true, false, hash, number, [], {}],
			{ transactionHash: hash, blockHash: hash, blockNumber: number, status, transactionIndex: "0x0" },
			{
				hash,
				blockHash: random.pick([hash, null]),
				blockNumber: number,
				number,
				timestamp: number,
				nonce: number,
			},
		]);
	}

	#page(hash: string): unknown {
		const random = this.#random;
		return random.pick<unknown>([
			{ status: random.pick(["UNKNOWN", "INCLUDED", "FAILED", "CANCELLED", 1]), stage: random.pick(STAGES) },
			{ hash, status: "FAILED", stage: random.pick(STAGES), blockNumber: 1, simulationError: "no" },
			{ hash, status: "FAILED", stage: "CANCELLED" },
			{ status: "UNKNOWN" },
			...[null, "FAILED", [hash]],
		]);
	}
}

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture?.stop());

/**
 * One boost with a liar: what it has acknowledged and its user wants, and what he has cancelled.
 */
interface Told {
	readonly boost: BoostClient;
	readonly liar: Liar;
	readonly kept: Signed[];
	readonly ended: Signed[];
}

/**
 * Submits; a soft cancel takes back half of what is acknowledged, if boost says that it was heard.
 */
async function submit({ boost, kept, ended }: Told, actor: Actor, isCancelled: boolean): Promise<void> {
	const tx = actor.sign({ gasLimit: 21_000n });
	const answer = (await boost.call("eth_sendRawTransaction", [tx.raw], SOFT)).json as WireAnswer;
	if (answer.result !== tx.hash) return;
	if (!isCancelled) {
		kept.push(tx);
		return;
	}
	const { error } = (await boost.call("eth_cancelTransaction", [tx.hash])).json as WireAnswer;
	// Its holder is down: boost cancels it there as soon as possible.
	const isHeard = error === undefined || error.message.includes("cancels it there as soon as possible");
	(isHeard ? ended : kept).push(tx);
}

it("whatever it says, in every field", async () => {
	const all: Told[] = await Promise.all(
		SEEDS.map(async (seed) => {
			const liar = await Liar.start(seed);
			const boost = await fixture.startBoost({ env: { FALLBACK_URL: liar.url } });
			return { boost, liar, kept: [], ended: [] };
		}),
	);
	const round = async (isOut: boolean): Promise<void> => {
		await Promise.all(
			all.map(async (told) => {
				for (let n = 0; n < EACH; n += 1)
					await submit(told, await fixture.users.actor(), isOut && n % 2 === 1);
			}),
		);
	};
	await round(false);
	await Promise.all(all.map(({ boost }) => boost.isWell()));
	await fixture.wires.relay.set({ kind: "refuse" });
	await Promise.all(
		all.map(({ boost }) => boost.reaches("the relay is down", ({ relay }) => relay.state !== "closed")),
	);
	await round(true);
	await fixture.users.mineUnseen();
	await until("lies of each", () => all.every(({ liar }) => liar.pages >= PAGES));
	// The liars end, so that what only they had is the relay's.
	await Promise.all(all.map(({ liar }) => liar.stop()));
	await fixture.wires.relay.set(null);
	const kept = all.flatMap((told) => told.kept);
	const ended = all.flatMap((told) => told.ended);
	assert.ok(
		kept.length >= EACH * SEEDS.length && ended.length > 0,
		`${kept.length} kept, ${ended.length} ended`,
	);
	for (const tx of kept) await fixture.users.waitUntilSent(tx);
	assert.deepEqual(await fixture.system.chain.rpc("txpool_status"), { pending: "0x0", queued: "0x0" });
	await fixture.system.nextBlock();
	for (const tx of kept) await fixture.users.reaches(tx, "INCLUDED");
	for (const { hash } of ended) {
		const stage = await fixture.system.client.stage(hash);
		assert.ok(stage === undefined || stage === "CANCELLED", `${hash} is ${stage}`);
	}
});
