// One id for a request, sent by its client or made by boost. It stands in the answer and in each
// log line about its transaction. Relay and builders receive it, also through an edge and after a
// restart. A fallback does not.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { backrunBy, prepareBidding, signedBy } from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { sized } from "../../support/length.ts";
import { type PathFixture, startPath } from "../../support/pathFixture.ts";
import type { LaunchedRelay } from "../../support/processes.ts";
import { signedTransaction } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const MADE = /^[0-9a-f]{24}$/;
const GWEI = 1_000_000_000n;

/**
 * Messages of the lines about a transaction in a process's log, each with the id of the request.
 */
function logsOf(one: LaunchedRelay, hash: string): readonly (readonly unknown[])[] {
	return one
		.logs()
		.filter((line) => line.hash === hash)
		.map(({ msg, request }) => [msg, request]);
}

// traces.test.ts runs without an edge, too, and has the ids of requests.
for (const withEdge of sized([true], [true, false])) {
	describe(withEdge ? "through an edge" : "with one relay", () => {
		let path: PathFixture;
		before(async () => {
			path = await startPath({ withEdge });
		});
		after(() => path?.stop());

		function signed() {
			const fees = { maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI };
			const tx = signedTransaction({ by: path.account(), gasLimit: 30_000n, ...fees });
			return { raw: `0x${tx.raw.toString("hex")}`, hash: tx.hash };
		}

		/** Submits a new transaction with these headers; returns its hash and the id in the answer. */
		async function submit(headers: Readonly<Record<string, string>>) {
			const { raw, hash } = signed();
			const reply = await path.boost.call("eth_sendRawTransaction", [raw], { path: "/noreverts", headers });
			assert.equal((reply.json as { result?: unknown }).result, hash, reply.body);
			return { raw, hash, id: String(reply.headers["x-request-id"]) };
		}

		/** The ids that the builders received with a transaction, without repetitions. */
		async function sentToBuilders(raw: string): Promise<readonly unknown[]> {
			const ids: unknown[] = [];
			for (const builder of path.system.builders) {
				const holds = ({ params }: { params: readonly unknown[] }) => JSON.stringify(params).includes(raw);
				await builder.waitForRequest(holds);
				ids.push(...builder.requests(holds).map(({ headers }) => headers["x-request-id"]));
			}
			return [...new Set(ids)];
		}

		/** The log lines of the deciding relay about a transaction until it is mined. */
		const lifeWith = (id: string) => [
			["transaction accepted", id],
			["transaction sent to builders", id],
			["transaction mined", id],
		];

		async function mined(hash: string): Promise<void> {
			await path.nextBlock();
			await until("it is mined", () =>
				logsOf(path.core, hash).some(([message]) => message === "transaction mined"),
			);
		}

		test("the client's own", async () => {
			const { raw, hash, id } = await submit({ "X-Request-Id": "wallet-7_a.B" });
			assert.equal(id, "wallet-7_a.B");
			assert.deepEqual(await sentToBuilders(raw), [id]);
			await mined(hash);
			assert.deepEqual(logsOf(path.core, hash), lifeWith(id));
			assert.deepEqual(logsOf(path.boostProcess, hash)[0], ["transaction accepted", id]);
		});

		test("without one, and in the place of one that is none, boost makes one", async () => {
			for (const headers of [{}, { "X-Request-Id": 'evil", "x":"' }, { "X-Request-Id": "a".repeat(65) }]) {
				const { raw, hash, id } = await submit(headers);
				assert.match(id, MADE);
				assert.deepEqual(await sentToBuilders(raw), [id]);
				await mined(hash);
				assert.deepEqual(logsOf(path.core, hash), lifeWith(id));
			}
			assert.equal(`${path.core.stdout}${path.boostProcess.stdout}`.includes("evil"), false);
		});

		test("a refusal and a read have theirs", async () => {
			const { raw } = signed();
			const headers = { "X-Request-Id": "refused.1" };
			const reply = await path.boost.call("eth_sendRawTransaction", [raw], {
				path: "/noreverts?refundRecipient=nobody",
				headers,
			});
			assert.match(reply.body, /refundRecipient/);
			assert.equal(reply.headers["x-request-id"], "refused.1");
			const read = await path.boost.call("eth_chainId", [], { headers: { "X-Request-Id": "read.1" } });
			assert.equal(read.headers["x-request-id"], "read.1");
			const page = await path.boost.send({
				verb: "GET",
				path: "/info",
				headers: { "X-Request-Id": "page.1" },
			});
			assert.equal(page.headers["x-request-id"], "page.1");
		});

		test("a bundle of a bid has the id of the transaction that it runs behind, which boost has streamed", async () => {
			await prepareBidding(path.system);
			await path.nextBlock();
			const { raw, hash } = signedBy(98, { value: 1n });
			const headers = { "X-Request-Id": "target" };
			const reply = await path.boost.call("eth_sendRawTransaction", [raw], { path: "/maxbackruns", headers });
			assert.deepEqual([reply.status, reply.headers["x-request-id"]], [200, "target"]);
			const backrun = backrunBy(1, 1_000n).raw;
			await until("it is shared", async () => (await path.relay.client.status(hash)).shared);
			await path.relay.client.call("eth_sendBundle", [{ txs: [hash, backrun] }]);
			assert.deepEqual(await sentToBuilders(backrun), ["target"]);
		});

		test("a transaction that the relay refuses has the id in its line", async () => {
			const tx = signedTransaction({
				by: path.account(),
				gasLimit: 30_000n,
				maxFeePerGas: 1n,
				value: 10n ** 30n,
			});
			const headers = { "X-Request-Id": "poor" };
			await path.boost.call("eth_sendRawTransaction", [`0x${tx.raw.toString("hex")}`], { headers });
			for (const one of [path.core, path.boostProcess]) {
				await until("it is refused", () => logsOf(one, tx.hash).length > 0);
				assert.deepEqual(logsOf(one, tx.hash), [["transaction refused", "poor"]]);
			}
		});

		test("each message of a websocket has the id of its upgrade and its number", async () => {
			const url = `ws://127.0.0.1:${path.boost.port}/noreverts`;
			const client = await WsClient.open(url, { headers: { "X-Request-Id": "socket" } });
			for (const number of [1, 2]) {
				const { raw, hash } = signed();
				client.send({ jsonrpc: "2.0", id: number, method: "eth_sendRawTransaction", params: [raw] });
				assert.equal((await client.next()).result, hash);
				const id = `socket.${number}`;
				assert.deepEqual(await sentToBuilders(raw), [id]);
				await mined(hash);
				assert.deepEqual(logsOf(path.core, hash), lifeWith(id));
			}
			client.socket.close();
		});

		test("a fallback does not receive it; what it has carried is forwarded with its id", async () => {
			await path.boost.force("open");
			path.fallback.reset();
			const { raw, hash, id } = await submit({ "X-Request-Id": "carried" });
			const sent = path.fallback.posts.map(({ text }) => text.toLowerCase());
			assert.equal(sent.length > 0 && sent.every((text) => !text.includes("carried")), true);
			assert.equal(
				sent.some((text) => text.includes("x-request-id")),
				false,
			);
			await path.boost.force("auto");
			await path.boost.force("open", "fallback");
			await until("it is forwarded", () => logsOf(path.boostProcess, hash).length > 1);
			await path.boost.force("auto", "fallback");
			assert.deepEqual(logsOf(path.boostProcess, hash), [
				["transaction accepted", id],
				["transaction forwarded", id],
			]);
			// boostOutputs.test.ts, which looks for secrets, has no handover.
			assert.ok(!path.boostProcess.stdout.includes(raw.slice(2)), "its bytes are in the log");
			assert.deepEqual(await sentToBuilders(raw), [id]);
			await mined(hash);
			assert.deepEqual(logsOf(path.core, hash), lifeWith(id));
		});

		test("it is still there behind a restart of the relay that decides", async () => {
			const { raw, hash, id } = await submit({ "X-Request-Id": "before" });
			await sentToBuilders(raw);
			await path.restartCore();
			await path.nextBlock();
			// An edge is the next one that decides.
			const lines = () => [path.core, path.relay].flatMap((one) => logsOf(one, hash));
			const last = await until("it is mined", () =>
				lines().find(([message]) => message === "transaction mined"),
			);
			assert.deepEqual(last, ["transaction mined", id]);
		});
	});
}
