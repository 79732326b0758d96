// Fires each alert of docs/monitoring/alerts.yml once: real processes are brought into the state
// that it reports, and a real Prometheus finds it by the rules. Then the fault is repaired, and the
// alert must cease.

import { spawnSync } from "node:child_process";
import { parse } from "yaml";
import { textOf } from "../support/documents.ts";
import { readyStatus } from "../support/processes.ts";
import { RelayClient } from "../support/relayClient.ts";
import { until } from "../support/until.ts";
import { AlertWorld } from "./alertWorld.ts";

/** From the state to its alert, and from its end to the alert's, in ms. */
const FIRES_MS = 120_000;
const CEASES_MS = 180_000;
const LOOK_MS = 500;

/** One state, and the alerts that report it. */
interface State {
	readonly alerts: readonly string[];
	/** Called again and again until all fire. */
	readonly bring: (world: AlertWorld) => Promise<unknown>;
	/** Called once before. */
	readonly begin?: (world: AlertWorld) => Promise<void> | void;
	readonly end?: (world: AlertWorld) => Promise<void> | void;
}

const nothing = async (): Promise<void> => {};
/** Reads that the relay answers by its node. */
const READ = ["eth_getBalance", ["0x00000000000000000000000000000000000000fe", "latest"]] as const;
const READS = 20;

async function restart(world: AlertWorld): Promise<void> {
	for (const relay of world.relays) {
		await relay.process?.kill();
		await world.startRelay(relay);
	}
}

/** In order: what makes transactions pending comes before what needs none. */
export const STATES: readonly State[] = [
	// Its limit is lowered to what each process has.
	{ alerts: ["MemoryHigh"], bring: nothing },
	{
		alerts: ["HeadStale"],
		begin: (world) => world.build(false),
		bring: nothing,
		end: (world) => world.build(true),
	},
	{
		alerts: ["BuilderNotAccepting", "TransactionsStuck"],
		async begin(world) {
			world.system.builder.setFaults({ reject: true });
			await world.submit(1, 3);
		},
		bring: nothing,
		end: (world) => world.system.builder.setFaults({}),
	},
	{
		alerts: ["SeenInPublic"],
		async begin(world) {
			world.build(false);
			const raws = await world.submit(8, 1);
			for (const raw of raws) await world.system.chain.rpc("eth_sendRawTransaction", [raw]);
		},
		bring: nothing,
		end: (world) => world.build(true),
	},
	{
		alerts: ["QueuesFilling"],
		async begin(world) {
			world.system.builder.setFaults({ hang: true });
			for (const account of [2, 3, 4, 5]) await world.submit(account, 40);
		},
		bring: nothing,
		end: (world) => world.system.builder.setFaults({}),
	},
	{
		alerts: ["SlowReads"],
		begin: (world) => world.node.setDelay(3_000, [READ[0]]),
		async bring({ client }) {
			await Promise.allSettled(Array.from({ length: READS }, () => client.ask(...READ)));
		},
		end: (world) => world.node.setDelay(0),
	},
	{
		alerts: ["OwnFaults"],
		begin: (world) => world.node.setFault({ kind: "destroy" }, { methods: [READ[0]] }),
		async bring({ relays: [{ url }] }) {
			const relay = new RelayClient(url);
			await Promise.allSettled(Array.from({ length: READS }, () => relay.ask(...READ)));
		},
		end: (world) => world.node.setFault(null),
	},
	{
		alerts: ["FallbackOut"],
		// Nothing listens there.
		begin: (world) => world.restartBoost({ FALLBACK_URL: "http://127.0.0.1:1" }),
		bring: nothing,
		end: (world) => world.restartBoost(),
	},
	{
		alerts: ["TermsChange"],
		async bring(world) {
			const core = await world.core();
			await core.process?.kill();
			await world.startRelay(core);
			await world.core();
		},
	},
	{
		alerts: ["EdgeAlone"],
		async begin(world) {
			const [core, edge] = world.relays;
			for (const { process } of world.relays) await process?.kill();
			// Nothing listens there.
			await world.startRelay(core, { INTERNAL_URL: "http://127.0.0.1:1" });
			await world.startRelay(edge, {}, async () => (await readyStatus(edge.url)) !== 0);
		},
		bring: nothing,
		end: restart,
	},
	{
		alerts: ["JournalNotDurable", "NoCore"],
		begin: ({ postgres }) => postgres.kill(),
		bring: (world) => world.submit(6, 1),
		async end(world) {
			await world.postgres.start();
			// A core that has lost its lease ends; its host starts it again.
			await restart(world);
		},
	},
	{
		alerts: ["LeewardProcessDown", "RelayOut", "NoRelayAvailable"],
		async begin({ relays }) {
			for (const { process } of relays) await process?.kill();
		},
		bring: (world) => world.submit(7, 1),
		end: restart,
	},
];

/** Whether Prometheus is installed. */
export function hasPrometheus(): boolean {
	return spawnSync("prometheus", ["--version"]).error === undefined;
}

/** Says what was seen; resolves to whether each alert fired, and ceased. */
export async function longAlerts(say: (line: string) => void): Promise<boolean> {
	if (!hasPrometheus()) {
		say("alerts: Prometheus is not installed here (apt-get install prometheus): no alert was fired");
		return true;
	}
	const { groups } = parse(textOf("docs/monitoring/alerts.yml")) as {
		groups: { rules: { alert: string }[] }[];
	};
	const missing = new Set(groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)));
	const world = await AlertWorld.start();
	try {
		for (const state of STATES) {
			const before = await world.firing();
			const early = state.alerts.filter((alert) => alert !== "MemoryHigh" && before.has(alert));
			if (early.length > 0) say(`alerts: ${early.join(", ")} fired before it should`);
			await state.begin?.(world);
			const begun = Date.now();
			let firing: ReadonlySet<string> = new Set();
			await until(
				state.alerts.join(" and "),
				async () => {
					await state.bring(world);
					firing = await world.firing();
					return state.alerts.every((alert) => firing.has(alert));
				},
				FIRES_MS,
				LOOK_MS,
			).catch(() => {});
			const fired = state.alerts.filter((alert) => firing.has(alert));
			for (const alert of early.length > 0 ? [] : fired) missing.delete(alert);
			const others = [...firing].filter((alert) => !state.alerts.includes(alert) && alert !== "MemoryHigh");
			const beside = others.length === 0 ? "" : `; beside ${others.join(", ")}`;
			say(
				`alerts: ${fired.join(", ") || "nothing"} after ${Math.round((Date.now() - begun) / 1_000)} s${beside}`,
			);
			await state.end?.(world);
			await until(
				`none fires behind ${state.alerts.join(" and ")}`,
				async () => [...(await world.firing())].every((alert) => alert === "MemoryHigh"),
				CEASES_MS,
				LOOK_MS,
			);
		}
	} finally {
		await world.stop();
	}
	for (const alert of missing) say(`alerts: ${alert} did not fire`);
	return missing.size === 0;
}
