// Boost, the relay behind it and a fallback, each a process of its own, on one chain and one
// builder. A test takes an upstream down by its wire and by the operator's forced breaker state, so
// that it waits for no probe. Boost's node can fail too.

import assert from "node:assert/strict";
import { join } from "node:path";
import { request } from "undici";
import type { UpstreamName } from "../../../boost-proxy/domain/request.ts";
import { BOOST_SECRET, boostEnv } from "../../faults/boostHere.ts";
import { type FaultyWire, startFaultyWire } from "../../faults/faultyWire.ts";
import { type NodeProxy, startNodeProxy } from "../nodes.ts";
import { type BoostProcess, type RelayProcess, startRelayProcess } from "../processes.ts";
import { ADMIN_TOKEN } from "../relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../systems.ts";

interface BoostWorldOptions {
	/** A fallback at this URL instead of a second relay. */
	readonly fallbackUrl?: string;
	/** The file that runs boost, and its arguments; see processes.ts. */
	readonly entry?: { readonly entry: string; readonly args: readonly string[] };
	/** Boost's settings, which override those of the fault matrix. */
	readonly env?: Readonly<Record<string, string>>;
}

export type BoostWorld = Awaited<ReturnType<typeof startBoostWorld>>;

/** Starts all; the caller stops it. */
export async function startBoostWorld(options: BoostWorldOptions = {}) {
	const endings: (() => unknown)[] = [];
	const stop = async (): Promise<void> => {
		for (const end of endings.splice(0)) await end();
	};
	const kept = <T extends { stop(): unknown }>(part: T): T => {
		endings.unshift(() => part.stop());
		return part;
	};
	try {
		const system: ProcessSystem = kept(
			await startProcessSystem({ chain: { slotSeconds: 1 }, env: { BOOST_SECRET } }),
		);
		const relay = await system.start();
		const { BOOST_SECRET: _, ...second } = system.env;
		const fallback: RelayProcess | null =
			options.fallbackUrl === undefined
				? await system.start({ ...second, BOOST_SECRET: "", DATA_DIR: join(system.folder, "fallback") })
				: null;
		const wires: Readonly<Record<"relay" | "fallback", FaultyWire>> = {
			relay: kept(await startFaultyWire(relay.url)),
			fallback: kept(await startFaultyWire(options.fallbackUrl ?? fallback?.url ?? "")),
		};
		const node: NodeProxy = kept(await startNodeProxy(system.chain.url));
		const boost: BoostProcess = await startRelayProcess({
			entry: "boost-proxy/main.ts",
			...options.entry,
			env: {
				...boostEnv({
					relayUrl: wires.relay.url,
					fallbackUrl: wires.fallback.url,
					folder: join(system.folder, "boost"),
				}),
				...{ LOG_LEVEL: "info", ETH_RPC_URL: node.url, SLOT_SECONDS: "1", ADMIN_TOKEN },
				...options.env,
			},
		});
		endings.unshift(() => boost.kill());
		const force = async (upstream: UpstreamName, state: "open" | "close"): Promise<void> => {
			const url = `${boost.url}/admin/${state}?upstream=${upstream}`;
			const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
			const { statusCode, body } = await request(url, { method: "POST", headers });
			assert.equal(statusCode, 200, await body.text());
		};
		// On a busy machine a healthy upstream may miss a probe: only the test opens a breaker.
		for (const upstream of ["relay", "fallback"] as const) await force(upstream, "close");
		return {
			system,
			relay,
			/** Null if it is another one. */
			fallback,
			boost,
			/** Between boost and its node. */
			node,
			/** Cuts boost off from an upstream, whose breaker opens. */
			async fails(upstream: UpstreamName = "relay"): Promise<void> {
				await wires[upstream].set({ kind: "refuse" });
				await force(upstream, "open");
			},
			async recovers(upstream: UpstreamName = "relay"): Promise<void> {
				await wires[upstream].set(null);
				await force(upstream, "close");
			},
			stop,
		};
	} catch (thrown) {
		await stop();
		throw thrown;
	}
}
