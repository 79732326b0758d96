// Three relays and two boost instances under load while one fault after another happens to them.
// Then everything is repaired, and acknowledged transactions get time to be mined. At the end all
// records are judged.

import { monitorEventLoopDelay } from "node:perf_hooks";
import { systemClock } from "../../shared/clock.ts";
import { RelayClient } from "../support/relayClient.ts";
import { SeededRandom } from "../support/seededRandom.ts";
import { until } from "../support/until.ts";
import { type Evidence, judgedOf, openOf, refundsOf, timeOf, told, violationsOf } from "./checks.ts";
import type { Member } from "./cluster.ts";
import { Faults } from "./faults.ts";
import { type ScaleWorld, startScaleWorld } from "./scaleWorld.ts";
import { Searchers } from "./searchers.ts";
import { type Entry, Wallets } from "./wallets.ts";

export interface ChaosOptions {
	readonly seed: number;
	/** The duration of the faults. */
	readonly seconds: number;
	/** Takes each line of the report. */
	readonly say: (line: string) => void;
}

/** The outcome. */
export interface ChaosResult {
	/** Violated rules, in words. */
	readonly violations: readonly string[];
	/** The logs of all processes, by name. */
	readonly logs: ReadonlyMap<string, string>;
}

/** Users who begin in a second. */
const RATE = 12;
/** Between two faults, in ms, at least and at most. */
const PAUSES = [500, 2_500] as const;
const CALM_MS = 90_000;
const READY_MS = 60_000;
const SEARCHERS_EACH = 2;
/** Requests out of ten that go to a boost instance. */
const BY_BOOST = 4;

/** Runs it. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
	const { say, seconds } = options;
	const world = await startScaleWorld({ relays: 3, boosts: 2, accounts: RATE * (seconds + 30) });
	try {
		const violations = await chaos(world, options);
		for (const { process, current } of world.cluster.members)
			world.cluster.logs.set(current, `${process?.stdout}${process?.stderr}`);
		return { violations, logs: world.cluster.logs };
	} finally {
		await world.stop();
		say("scale: all stopped");
	}
}

async function chaos(world: ScaleWorld, { seed, seconds, say }: ChaosOptions): Promise<readonly string[]> {
	const { cluster, chain } = world;
	const delay = monitorEventLoopDelay({ resolution: 20 });
	delay.enable();
	await until("a boost instance is ready", () => cluster.ready("boost").length > 0, READY_MS);
	const random = new SeededRandom(seed + 1);
	const wallets = new Wallets({
		random,
		rate: RATE,
		entry: () => entryOf(world, random),
		account: world.account,
	});
	const searchers = new Searchers({
		...{ random: new SeededRandom(seed + 2), relays: cluster.relays, each: SEARCHERS_EACH },
		bidders: world.bidders,
		nonceOf: async (address) => Number(await chain.rpc("eth_getTransactionCount", [address, "latest"])),
		head: async () => Number(await chain.rpc("eth_blockNumber")),
	});
	searchers.start();
	wallets.start();
	const faults = new Faults(new SeededRandom(seed), cluster, PAUSES);
	await faults.run(seconds * 1000, ({ kind, target, role, from }) => {
		say(
			`scale: ${timeOf(from)} ${kind} of ${target} (${role}), ${wallets.submitted.length} transactions signed`,
		);
	});
	say(`scale: ${timeOf(systemClock.now())} calm`);
	searchers.quieten();
	await wallets.stop();
	await until("a relay is ready", () => cluster.ready("relay").length > 0, READY_MS);
	const isOpen = () => openOf({ submitted: wallets.submitted, minedAt: world.minedAt }).length > 0;
	await until("all that was acknowledged is mined", () => !isOpen(), CALM_MS).catch(() => {});
	const end = systemClock.now();
	const evidence: Evidence = {
		...{
			submitted: wallets.submitted,
			connections: searchers.connections,
			faults: faults.records,
			ends: cluster.ends,
			end,
		},
		...{
			calls: world.calls(),
			terms: await cluster.terms(),
			blocks: world.builder.blocks(),
			minedAt: world.minedAt,
		},
		readyTimes: new Map(cluster.relays.map(({ name, readyTimes }) => [name, readyTimes])),
	};
	const violations = [
		...violationsOf(evidence),
		...(await refundViolations(world, evidence)),
		...endsOf(world),
		...missingOf(evidence),
	];
	await searchers.stop();
	for (const line of figuresOf(evidence, searchers)) say(`scale: ${line}`);
	say(
		`scale: event loop of the test: 99 % ${Math.round(delay.percentile(99) / 1e6)} ms, most ${Math.round(delay.max / 1e6)} ms`,
	);
	for (const violation of violations) say(`scale: FAILED ${violation}`);
	return violations;
}

/** Whom a host's router gives a user. */
function entryOf({ cluster }: ScaleWorld, random: SeededRandom): Entry | null {
	const wanted: Member["kind"] = random.below(10) < BY_BOOST ? "boost" : "relay";
	const ready = cluster.ready(wanted);
	return ready.length === 0 ? null : random.pick(ready);
}

/** Each refund is reported once, and as it was paid. */
async function refundViolations(
	{ cluster, chain }: ScaleWorld,
	evidence: Evidence,
): Promise<readonly string[]> {
	const { paid, unpaid } = refundsOf(evidence);
	const [relay] = cluster.ready("relay");
	if (relay === undefined) return ["no relay is ready in the end"];
	const client = new RelayClient(relay.url);
	const wrong: string[] = [];
	const recipients = new Map(evidence.submitted.map(({ hash, refundRecipient }) => [hash, refundRecipient]));
	for (const { target, backrun, wei } of paid) {
		const read = async () => (await client.events(target)).filter(({ type }) => type === "refunded");
		const refunds = await until(
			`the refund of ${target}`,
			async () => {
				const found = await read();
				return found.length > 0 && found;
			},
			10_000,
		).catch(() => []);
		const said = refunds.map((one) => `${String(one.paid)} for ${String(one.backrun)}`);
		if (said.join() !== `${wei} for ${backrun}`)
			wrong.push(`${target}: paid ${wei} for ${backrun}, told [${said.join("; ")}]`);
		const recipient = recipients.get(target) ?? null;
		if (recipient === null) continue;
		const balance = BigInt(String(await chain.rpc("eth_getBalance", [recipient, "latest"])));
		if (balance !== wei) wrong.push(`${target}: ${recipient} has ${balance}, not ${wei}`);
	}
	return [...unpaid, ...told("refund that was not told once", wrong, (text) => text)];
}

/** Processes end by what was done to them, and when they have lost their lease. */
function endsOf({ cluster }: ScaleWorld): readonly string[] {
	const found = cluster.ends.flatMap(({ process, code, signal, stdout, stderr, at }) => {
		if (signal === "SIGKILL" || code === 0) return [];
		if (/another process has the store, exiting/.test(stdout)) return [];
		return [`${process} at ${timeOf(at)} with ${code ?? signal}: ${stderr.slice(-300)}${stdout.slice(-600)}`];
	});
	return told("ended by itself", found, (text) => text);
}

/** Events that must have happened, so that the rest says something. */
function missingOf(evidence: Evidence): readonly string[] {
	const { submitted, terms, faults } = evidence;
	const counts = {
		"acknowledged transaction": submitted.filter(({ ackedAt }) => ackedAt !== null).length,
		"acknowledged cancel": submitted.filter(
			({ ending }) => ending?.kind === "cancel" && ending.ackedAt !== null,
		).length,
		"acknowledged replacement": submitted.filter(
			({ ending }) => ending?.kind === "replace" && ending.ackedAt !== null,
		).length,
		refund: refundsOf(evidence).paid.length,
		"transaction that was shown to several": judgedOf(evidence).length,
		fault: faults.length,
		"second term": terms.length - 1,
	};
	return Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [] : [`there was no ${what}`]));
}

function figuresOf(evidence: Evidence, searchers: Searchers): readonly string[] {
	const { submitted, minedAt, connections, terms, calls } = evidence;
	const acked = submitted.filter(({ ackedAt }) => ackedAt !== null).length;
	const ended = submitted.filter(({ ending }) => ending !== null && ending.ackedAt !== null);
	const refusals = new Map<string, number>();
	for (const { answers } of submitted) {
		for (const { error, fault } of answers) {
			if (error === undefined && fault === undefined) continue;
			const what = fault ?? `${error?.code} ${error?.message.slice(0, 60)}`;
			refusals.set(what, (refusals.get(what) ?? 0) + 1);
		}
	}
	const judged = judgedOf(evidence).map(({ ms }) => ms ?? Number.POSITIVE_INFINITY);
	judged.sort((a, b) => a - b);
	const at = (share: number) => judged[Math.ceil(share * judged.length) - 1];
	const refused = submitted.filter(({ ackedAt }) => ackedAt === null);
	const slowest = Math.max(
		0,
		...submitted.flatMap(({ answers }) => answers.map(({ at, askedAt }) => at - askedAt)),
	);
	return [
		`${submitted.length} signed, ${acked} acknowledged, ${minedAt.size} mined, ${ended.length} ended by their users (${ended.filter(({ hash }) => minedAt.has(hash)).length} of them mined all the same)`,
		`${refused.length} never acknowledged, ${refused.filter(({ hash }) => minedAt.has(hash)).length} of them mined all the same; slowest answer ${slowest} ms`,
		`refusals: ${[...refusals].map(([what, count]) => `${count} × ${what}`).join(", ") || "none"}`,
		`${terms.length} terms (${terms.map(({ process, from }) => `${process} ${timeOf(from)}`).join(", ")})`,
		`${calls.length} calls to the builder; ${searchers.bids.length} bids, ${searchers.bids.filter(({ answer }) => answer.startsWith("0x")).length} taken; ${refundsOf(evidence).paid.length} refunds`,
		`${judged.length} times a searcher was shown what others were, to whom nothing happened: half of them ${at(0.5)} ms later than the first, 99 % ${at(0.99)}, all ${at(1)}`,
		`${connections.length} searchers' connections, shown ${connections.reduce((sum, { shown }) => sum + shown.size, 0)}`,
	];
}
