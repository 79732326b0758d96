// Starts a relay for bad input, whose log keeps every fault, and proves that it is well afterwards. The tables decide
// what is sent.

import assert from "node:assert/strict";
import type { LogFields, Logger } from "../../../../shared/log.ts";
import { type SystemOptions, startSystem, type TestSystem } from "../../../support/systems.ts";
import { accountOf, rawTransaction, type TestAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import { Wire } from "./wire.ts";

/** A log of which only faults are kept: lines at level error, and warnings of the ingress about single requests. */
export interface FaultLog {
	readonly logger: Logger;
	/** Fails where there was a fault since the last time. */
	check(): void;
}

/** A relay and how to talk to it. */
export interface BadInputFixture {
	readonly system: TestSystem;
	readonly wire: Wire;
	readonly log: FaultLog;
	/** The relay is ready, no fault was logged, and a good transaction goes through and is mined. */
	stillWell(): Promise<void>;
	/** Waits until what happens behind the answer to a submission has happened, as far as it can before the next block. */
	settled(hash: string): Promise<void>;
	stop(): Promise<void>;
}

/** Starts a relay; the last of the chain's accounts is kept for {@link BadInputFixture.stillWell}. */
export async function startFixture(options: SystemOptions = {}): Promise<BadInputFixture> {
	const log = faultLog();
	// With a key of its own the relay has nothing to warn of at its start.
	const env = { SIGNING_KEY: `0x${"11".repeat(32)}`, ...options.env };
	const system = await startSystem({ ...options, env, log: log.logger });
	const wire = new Wire(system.relay.port);
	const { privateKey } = system.chain.accounts.at(-1) ?? { privateKey: "" };
	const sender = accountOf(privateKey);
	let nonce = 0;
	return {
		system,
		wire,
		log,
		async stillWell() {
			await checkWell(system, wire, sender, nonce);
			nonce += 1;
			log.check();
		},
		settled: (hash) => settle(system, hash),
		async stop() {
			wire.close();
			await system.stop();
			log.check();
		},
	};
}

async function checkWell(system: TestSystem, wire: Wire, by: TestAccount, nonce: number): Promise<void> {
	const { status, body } = await wire.send({ verb: "GET", path: "/readyz" });
	assert.equal(status, 200, body);
	const hash = await system.client.send(hex(rawTransaction({ by, nonce, gasLimit: 21_000 })));
	await settle(system, hash);
	assert.equal(await system.client.stage(hash), "BROADCAST");
	await system.nextBlock();
	const record = await until("the good transaction in a block", async () => {
		const seen = await system.client.status(hash);
		return seen.status === "INCLUDED" && seen;
	});
	assert.equal(record.stage, "INCLUDED");
}

async function settle(system: TestSystem, hash: string): Promise<void> {
	await until("the transaction simulated, and delivered where it may go out", async () => {
		const stage = await system.client.stage(hash);
		if (stage !== "BROADCAST") return stage !== undefined && stage !== "PENDING";
		const events = await system.client.events(hash);
		return events.some(({ type, answer }) => type === "delivered" && answer === "accepted");
	});
}

/** The bytes as they go into a call. */
export function hex(bytes: Uint8Array): string {
	return `0x${Buffer.from(bytes).toString("hex")}`;
}

function faultLog(): FaultLog {
	const faults: string[] = [];
	const keep = (level: string, part: string) => (message: string, fields?: LogFields) => {
		faults.push(`${level} ${part}: ${message} ${JSON.stringify(fields ?? {})}`);
	};
	const named = (part: string): Logger => ({
		trace() {},
		debug() {},
		info() {},
		warn: part.includes("ingress") ? keep("warn", part) : () => {},
		error: keep("error", part),
		child: (name) => named(`${part}/${name}`),
	});
	return {
		logger: named("relay"),
		check() {
			assert.deepEqual(faults.splice(0), [], "the log has faults");
		},
	};
}
