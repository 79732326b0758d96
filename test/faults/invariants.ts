// Checks what must hold for every cell of the fault matrix and describes each violation. It waits
// until what was acknowledged is mined, and asks the real parts: the chain, the builder, the
// fallback's wire.

import { request } from "undici";
import { PATIENCE_MS, until } from "../support/until.ts";
import { statusOf, statusWhen } from "./boostHere.ts";
import type { CellScenario, Outage } from "./cell.ts";
import type { CellParts } from "./cellParts.ts";
import { isUnserved } from "./faultCases.ts";
import { holeOf } from "./figures.ts";
import type { Sent } from "./traffic.ts";
import type { World } from "./world.ts";

const MOST_SHOWN = 3;
const HOLE = 16;

/** Violated rules, in words; empty if there are none. */
export interface Violations {
	/** Violations of what must hold on any machine and at any time. */
	readonly lost: readonly string[];
	/** Violations of what depends on answers in time. */
	readonly timely: readonly string[];
}

/** `waitMs`: for what was acknowledged to be mined, and to leave the journal. */
export async function violationsOf(scenario: CellScenario, waitMs = PATIENCE_MS): Promise<Violations> {
	const named = (texts: readonly string[]) => texts.map((text) => `${scenario.fault.name}: ${text}`);
	const timely = [...answersOf(scenario), ...routesOf(scenario), ...breakersOf(scenario)];
	return {
		lost: named([...fallbackOf(scenario), ...(await lostOf(scenario.parts, scenario.sent, waitMs))]),
		timely: named(timely),
	};
}

/** The rules that always hold: nothing that was acknowledged is lost, public or loose. */
export async function lostOf(
	parts: CellParts,
	sent: readonly Sent[],
	waitMs = PATIENCE_MS,
): Promise<string[]> {
	return [
		...(await minedOf(parts, sent, waitMs)),
		...revertsOf(parts, sent),
		...publicOf(parts.world, sent),
		...(await journalOf(parts, sent, waitMs)),
	];
}

/**
 * Clients of a healthy fallback see no error but verdicts. Without one they receive an error that
 * says so, and nothing else.
 */
function answersOf({ fault, sent }: CellScenario): string[] {
	return told("wrong answer", sent, (one) => {
		const { kind, outcome } = one;
		if (outcome.kind === "error" && isUnserved(fault, one.path) && isUnavailable(outcome)) return false;
		if (kind === "sound") return outcome.kind !== "acknowledged";
		return outcome.kind !== "error" || outcome.code !== -32_000;
	});
}

function isUnavailable({
	code,
	message,
	status,
}: {
	code: number;
	message: string;
	status: number;
}): boolean {
	return code === -32_603 && message.startsWith("no relay available") && status === 200;
}

/** While it is open nothing is sent to the relay, and every request is sent once. */
function routesOf({ fault, sent, outages }: CellScenario): string[] {
	if (fault.breaker !== "holds") return [];
	const isOpen = ({ sentAt, answeredAt }: Sent, { trippedAt, liftedAt }: Outage) =>
		trippedAt !== null && sentAt > trippedAt && answeredAt < liftedAt;
	return told("sent to a relay that is down", sent, (one) => {
		return outages.some((outage) => isOpen(one, outage)) && (one.attempts > 1 || /relay/.test(one.upstream));
	});
}

/** A breaker opens for its fault alone: nothing that was refused opens one. */
function breakersOf({ fault, sent, outages, before, after }: CellScenario): string[] {
	const found: string[] = [];
	const [first] = outages;
	// A boost that was killed begins anew.
	const isSame = fault.cutsClients !== true;
	if (isSame && fault.breaker === "never" && after.relay.since !== before.relay.since)
		found.push("the relay's breaker opened");
	if (
		isSame &&
		fault.bothOut !== true &&
		fault.breaker !== "never" &&
		after.fallback?.since !== before.fallback?.since
	)
		found.push("the fallback's breaker opened");
	const most = fault.hole === undefined ? HOLE : fault.hole;
	const hole = first === undefined ? 0 : holeOf(sent, first).length;
	if (most !== null && hole > most)
		found.push(`${hole} requests met the fault before it opened, ${most} at most`);
	if (after.relay.state !== "closed") found.push(`the breaker is ${after.relay.state} in the end`);
	if (!sent.some(({ kind }) => kind !== "sound")) found.push("nothing was sent that must be refused");
	return found;
}

/** The fallback gets each transaction on its own path, and none that it must not have. */
function fallbackOf({ fault, parts, sent }: CellScenario): string[] {
	const paths = new Map(sent.map(({ raw, path }) => [raw, path]));
	const takes = fault.settings?.fallbackTakes?.map((one) => `/${one}`) ?? ["/fast", "/noreverts"];
	return parts.fallbackWire.requests().flatMap(({ target, calls }) =>
		calls.flatMap(({ method, params }) => {
			if (method !== "eth_sendRawTransaction") return [];
			const [path = ""] = target.split("?");
			const own = paths.get(String(params[0]));
			const fits = own === path && takes.includes(path);
			return fits ? [] : [`the fallback got a transaction of ${own ?? "nobody"} on ${path}`];
		}),
	);
}

/** Everything that was acknowledged is mined. */
async function minedOf(
	{ world, boost }: CellParts,
	sent: readonly Sent[],
	waitMs: number,
): Promise<string[]> {
	const isOpen = ({ outcome, hash }: Sent) => outcome.kind === "acknowledged" && !world.mined.has(hash);
	await until("all is mined", () => !sent.some(isOpen), waitMs).catch(() => {});
	const found = told(`acknowledged and not mined within ${waitMs} ms`, sent, isOpen);
	const lost = sent.find(isOpen);
	if (lost === undefined) return found;
	const [atBoost, atFallback] = await Promise.all(
		[boost.url, world.fallbackUrl].map((url) => stageOf(url, lost.hash).catch(() => "no answer")),
	);
	return [
		...found,
		`${lost.hash} of nonce ${lost.nonce} is ${atBoost} at boost, ${atFallback} at the fallback`,
	];
}

/** No builder was ever told that a transaction of /noreverts may revert. */
function revertsOf({ world: { mayRevert } }: CellParts, sent: readonly Sent[]): string[] {
	return told("may revert", sent, ({ path, hash, raw }) => {
		return path === "/noreverts" && (mayRevert.has(hash) || mayRevert.has(raw));
	});
}

/** Nothing of it was in a public mempool. */
function publicOf(world: World, sent: readonly Sent[]): string[] {
	return told("in the public mempool", sent, ({ hash }) => world.publicHashes.has(hash));
}

/**
 * Mined transactions leave the journal, which never failed. A transaction that one upstream may
 * have although another refused it is followed for a while longer.
 */
async function journalOf(parts: CellParts, sent: readonly Sent[], waitMs: number): Promise<string[]> {
	const doubtful = sent.filter(
		({ outcome, attempts }) => outcome.kind !== "acknowledged" && attempts > 0,
	).length;
	const { journal } = await statusWhen(
		"the journal is empty",
		parts.boost.url,
		(status) => status.journal.depth <= doubtful,
		waitMs,
	).catch(() => statusOf(parts.boost.url));
	const found: string[] = [];
	if (journal.depth > doubtful) {
		const stages = await Promise.all(sent.map(({ hash }) => stageOf(parts.boost.url, hash)));
		const open = sent.filter((_, i) => stages[i] !== "INCLUDED");
		found.push(
			...told(
				`${journal.depth} are still in the journal of`,
				open,
				({ outcome }) => outcome.kind === "acknowledged",
			),
		);
	}
	return journal.durable ? found : [...found, "the journal failed"];
}

async function stageOf(url: string, hash: string): Promise<string | undefined> {
	const { body } = await request(`${url}/tx/${hash}`);
	return ((await body.json()) as { stage?: string }).stage;
}

/** The first ones of those that are `wrong`, and their number. */
function told(what: string, list: readonly Sent[], wrong: (one: Sent) => boolean): string[] {
	const found = list.filter(wrong);
	if (found.length === 0) return [];
	const shown = found.slice(0, MOST_SHOWN).map(({ kind, path, hash, outcome, upstream, attempts }) => {
		return `${kind} ${path} ${hash} ${JSON.stringify(outcome)} by ${upstream || "nobody"} in ${attempts}`;
	});
	return [`${found.length} × ${what}: ${shown.join("; ")}`];
}
