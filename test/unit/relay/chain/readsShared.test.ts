// Reads of two clients: one asks for a great deal that takes long, the other one is answered as if it were alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeReads } from "../../../../relay/chain/node.ts";
import { Passthrough, type PassthroughOptions } from "../../../../relay/chain/passthrough.ts";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import { type RpcAnswer, type RpcCall, UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { caller } from "../../../support/nodes.ts";

/** Ms that a node takes for a method; at once for others. */
const SLOW: Readonly<Record<string, number>> = {
	eth_call: 5_000,
	eth_getProof: 1_000,
	eth_getLogs: 12_000,
	eth_createAccessList: 12_000,
};

/** A node that takes its time, and reads of it. Each call is answered with its own parameters. */
class Fixture {
	readonly clock = new ManualClock();
	readonly reads: Passthrough;
	readonly calls: RpcCall[] = [];
	running = 0;
	most = 0;

	constructor(options: PassthroughOptions = {}) {
		const node = { call: (call: RpcCall, ms?: number) => this.#take(call, ms ?? 0) };
		const { clock } = this;
		this.reads = new Passthrough(options, { node, head: () => null, log: silentLogger, clock });
	}

	asked(method: string): number {
		return this.calls.filter((call) => call.method === method).length;
	}

	/** Reads that all differ; answers how each ended. */
	flood(count: number, method: string, client: string): readonly Promise<string>[] {
		return Array.from({ length: count }, (_, i) =>
			outcome(this.reads.call(method, [`0x${i.toString(16)}`], caller(client))),
		);
	}

	/** Ms until it was answered. */
	async ms(read: Promise<unknown>): Promise<number> {
		const begun = this.clock.monotonic();
		let ended: number | undefined;
		read.then(
			() => {
				ended = this.clock.monotonic();
			},
			() => {},
		);
		while (ended === undefined && this.clock.monotonic() - begun < 60_000) await this.clock.advance(10);
		return (ended ?? Number.POSITIVE_INFINITY) - begun;
	}

	#take(call: RpcCall, timeoutMs: number): Promise<RpcAnswer> {
		this.calls.push(call);
		this.running += 1;
		this.most = Math.max(this.most, this.running);
		const neededMs = SLOW[call.method] ?? 0;
		const answer = { ok: true as const, result: call.method.includes("Count") ? "0x7" : call.params };
		return new Promise<RpcAnswer>((resolve, reject) => {
			this.clock.after(Math.min(neededMs, timeoutMs), () => {
				if (neededMs <= timeoutMs) resolve(answer);
				else reject(new UpstreamError("timeout"));
			});
		}).finally(() => {
			this.running -= 1;
		});
	}
}

function outcome(read: Promise<unknown>): Promise<string> {
	return read.then(
		() => "answered",
		(thrown: unknown) => (thrown instanceof RpcError ? thrown.kind : "fault"),
	);
}

test("100 calls of 5 s and 600 proofs of 1 s delay another wallet's reads by nothing", async () => {
	const fixture = new Fixture();
	const calls = fixture.flood(100, "eth_call", "attacker");
	const proofs = fixture.flood(600, "eth_getProof", "attacker");
	await fixture.clock.advance(500);
	const node = nodeReads(fixture.reads);
	const account = `0x${"ee".repeat(20)}`;
	for (let i = 0; i < 5; i++) {
		assert.ok((await fixture.ms(fixture.reads.call("eth_estimateGas", [{ i }], caller("wallet")))) <= 20);
		assert.ok((await fixture.ms(node.pendingCount(account, caller("wallet")))) <= 20);
	}
	assert.ok(fixture.most <= 20, `${fixture.most} at once`);
	await fixture.clock.advance(60_000);
	const ends = await Promise.all([...calls, ...proofs]);
	assert.ok(ends.includes("answered") && ends.includes("internal"));
	assert.equal(fixture.running, 0);
});

test("where too many wait, whoever has the most of them is refused, with -32005", async () => {
	const fixture = new Fixture({ maxWaiting: 10 });
	const calls = fixture.flood(17, "eth_call", "attacker");
	assert.equal(await calls[16], "limit");
	// He finds a place and waits for nothing; the next two wait, in the places of the attacker's last.
	const own = fixture.flood(5, "eth_estimateGas", "wallet");
	assert.deepEqual(await Promise.all([calls[15], calls[14]]), ["limit", "limit"]);
	await fixture.clock.advance(60_000);
	assert.deepEqual(await Promise.all(own), Array(5).fill("answered"));
});

test("a read whose client has gone leaves the queue, unless another call of the client wants it", async () => {
	const fixture = new Fixture();
	fixture.flood(6, "eth_call", "attacker");
	const life = new ClientLife(0);
	const gone = [1, 2].map((i) =>
		outcome(fixture.reads.call("eth_estimateGas", [i], { client: "attacker", life })),
	);
	const stays = outcome(fixture.reads.call("eth_estimateGas", [2], caller("attacker")));
	life.end();
	assert.equal(await gone[0], "internal");
	await fixture.clock.advance(6_000);
	assert.equal(await stays, "answered");
	assert.equal(fixture.asked("eth_estimateGas"), 1);
});
