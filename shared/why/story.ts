// Explains in a paragraph why a transaction did not land, or that it did. It uses the public data
// of relay or boost: the record, whose words it quotes, and the events. It uses the chain for
// questions that these leave open. Pure.

import { builderAnswers, counted } from "../builderAnswers.ts";
import { MINED_STAGES, OUTGOING_STAGES, RELAY_OUT, type StatusRecord } from "../ethereum/statusRecord.ts";

/** The fields of an event of `GET /tx/{hash}/events` that are used here. */
interface LifeEvent {
	readonly type: string;
	readonly at: string;
	readonly block?: number;
	readonly reason?: string;
	readonly error?: { readonly code: string; readonly message?: string };
	readonly by?: string;
	readonly builder?: string;
	readonly kind?: string;
	readonly answer?: string;
}

/** `GET /tx/{hash}/events`. */
export interface Life {
	readonly events: readonly LifeEvent[];
	readonly omitted: number;
	readonly cancels?: { readonly summary: string };
}

/** The fields of `GET /tx/{hash}/journal` that are read here. */
export interface Journal {
	/** State of the transaction at the fallback. `absent` if the fallback never received it. */
	readonly fallback: string;
	readonly fallbackSince: string | null;
}

/** Facts from the chain. Null if the node did not report them. */
export interface ChainFacts {
	/** Fee of a pending transaction, in wei. */
	readonly maxFeePerGas: bigint | null;
	readonly maxPriorityFeePerGas: bigint | null;
	readonly nonce: number | null;
	/** The next nonce of its sender on the chain. */
	readonly nextNonce: number | null;
	readonly head: number | null;
	/** Base fee of the head, in wei. */
	readonly baseFee: bigint | null;
	/** The block of the chain that contains it. */
	readonly minedIn: number | null;
}

export interface Facts {
	readonly record: StatusRecord;
	/** Null if no server reports it now. */
	readonly life: Life | null;
	/**
	 * Boost's journal. Null if the server is not boost, or if boost did not accept the transaction.
	 */
	readonly journal: Journal | null;
	readonly chain: ChainFacts;
}

/** Advice if no server knows the hash. */
const NOT_KNOWN = [
	"This server does not know it; it knows each transaction that was sent to it within the last week. Check the hash. Check that",
	"this is the relay, and the chain, to which it was sent. Check what the wallet received: a hash means that the transaction was",
	"accepted; a refusal is in the relay's log as `transaction refused`, with its code.",
].join(" ");

/** Why it waits, by the reason in its event `queued`. */
const WAITS: Readonly<Record<string, string>> = {
	nonceGap: "an earlier nonce of its sender is missing",
	behindHeld: "an earlier transaction of its sender is not sent, and must go first",
	behindUnchecked: "an earlier transaction of its sender is not simulated, and must be mined first",
};

/** Whether it is in a block. */
export function hasLanded({ record: { status, stage }, chain }: Facts): boolean {
	// A fallback's page has a status, but not always a stage.
	const isMined = status === "INCLUDED" || (MINED_STAGES as readonly string[]).includes(stage ?? "");
	return isMined || chain.minedIn !== null;
}

/** The paragraph. */
export function story(facts: Facts): string {
	const { record, chain, life, journal } = facts;
	if (record.stage === undefined && record.status === "UNKNOWN") {
		const mined = `It is in block ${chain.minedIn} nevertheless, so another sender gave it to a builder.`;
		return chain.minedIn === null ? NOT_KNOWN : `${NOT_KNOWN} ${mined}`;
	}
	const sentences = [
		outcome(facts),
		...(life === null ? ["No server reports its history now."] : lifeOf(facts, life)),
		...(journal === null ? [] : fallbackOf(journal)),
		...(hasLanded(facts) ? [] : [...feesOf(record, chain), ...nonceOf(chain)]),
		record.exposed === undefined ? "" : sentence(record.exposed.message),
		record.seenInPublic === undefined ? "" : sentence(record.seenInPublic.message),
		nextStep(facts),
	];
	return sentences.filter((one) => one !== "").join(" ");
}

function outcome(facts: Facts): string {
	const { record, chain } = facts;
	const { state = "known", reason, blockNumber, refundWei = "0", stage } = record;
	const why = reason == null ? "" : `: ${reason}`;
	if (hasLanded(facts)) {
		const number = blockNumber ?? chain.minedIn;
		const block = number === null ? "a block" : `block ${number}`;
		const paid = refundWei === "0" ? "" : ` Its refund was ${refundWei} wei.`;
		return `It landed: it is in ${block}${stage === "REVERTED" ? ", and reverted there" : ""}${why}.${paid}`;
	}
	return `It has not landed${isOver(record) ? "" : " yet"}: it is ${state}${why}.`;
}

/** Its state at the fallback, which does not report the builders that it sent it to. */
function fallbackOf({ fallback, fallbackSince }: Journal): readonly string[] {
	if (fallback === "absent") return [];
	const since = fallbackSince === null ? "" : ` since ${fallbackSince}`;
	return fallback === "has"
		? [
				`The fallback, another private relay, has it${since}; which builders received it from there is not known.`,
			]
		: ["It was sent to the fallback, another private relay, whose answer is not known."];
}

function isOver({ stage = "" }: StatusRecord): boolean {
	return ["REPLACED", "CANCELLED", "EXPIRED", "DROPPED"].includes(stage);
}

/** Its history, in the order of its stages. */
function lifeOf({ record, journal }: Facts, { events, cancels, omitted }: Life): readonly string[] {
	const of = (type: string) => events.filter((event) => event.type === type);
	const received = of("received").at(-1);
	const path = record.fastMode ? "by /fast" : "by a path other than /fast";
	const came =
		received === undefined ? "" : `It was received at ${received.at}, ${path}, at block ${received.block}.`;
	const joined =
		of("joined").length > 0 ? "Others sent it too, so the strictest of their preferences apply." : "";
	const waits = events.findLast(({ type }) => type === "queued" || type === "ready");
	const why =
		waits?.type === "queued"
			? (WAITS[waits.reason ?? ""] ?? "an earlier transaction of its sender must be sent first")
			: "";
	const replaced = of("replaced").at(-1)?.by;
	return [
		came,
		joined,
		why === "" ? "" : sentence(`it waits: ${why}`),
		simulations(record, events, omitted),
		shown(record, events),
		sending(events, omitted, journal),
		...of("reorged")
			.slice(-1)
			.map(({ block }) => `Block ${block}, which contained it or used its nonce, has left the chain.`),
		replaced === undefined ? "" : `It was replaced by ${replaced}.`,
		cancels === undefined ? "" : `The relay asked its builders to drop it: ${cancels.summary}.`,
		omitted === 0 ? "" : `(${counted(omitted, "event")} between these are not kept.)`,
	];
}

/** `omitted`: events that are not kept, among which its simulation may have been. */
function simulations(
	{ simulationError }: StatusRecord,
	events: readonly LifeEvent[],
	omitted: number,
): string {
	const last = events.findLast(
		({ type }) => type === "simulated" || type === "simulationFailed" || type === "notSimulated",
	);
	if (last === undefined && simulationError !== null)
		return `Its simulation failed: ${simulationError.message || simulationError.code} (${simulationError.code}).`;
	if (last === undefined)
		return omitted === 0 ? "It was not simulated." : "It is no longer known whether it was simulated.";
	const found = last.error?.message ?? last.error?.code;
	const failures = events.filter(({ type }) => type === "simulationFailed").length;
	if (last.type === "simulated") {
		const before = failures === 0 ? "" : `, after ${counted(failures, "failure")} before`;
		return `Its simulation passed for block ${last.block}${before}.`;
	}
	if (last.type === "notSimulated") return `It was sent without a simulation: ${found}.`;
	return `Its simulation failed for block ${last.block}: ${found} (${last.error?.code}).`;
}

function shown({ status, shared, backruns }: StatusRecord, events: readonly LifeEvent[]): string {
	if (!shared && !events.some(({ type }) => type === "shared")) return "It was not shown to searchers.";
	if (status !== "INCLUDED")
		return "It was shown to searchers; the number of bids is published once it is mined.";
	return `It was shown to searchers, who sent ${backruns === 0 ? "no bids" : counted(backruns, "bid")}.`;
}

function sending(events: readonly LifeEvent[], omitted: number, journal: Journal | null): string {
	const deliveries = events.flatMap(({ type, builder = "", kind = "", answer = "", block = 0 }) =>
		type === "delivered" ? [{ builder, kind, answer, block }] : [],
	);
	const answers = builderAnswers(deliveries);
	if (answers !== null) return sentence(`it was ${answers}`);
	if (events.some(({ type }) => type === "broadcast"))
		return "It was sent to builders, whose answers are not known.";
	if (omitted > 0) return "It is no longer known to which builders it was sent.";
	const isCarried = journal !== null && journal.fallback !== "absent";
	return isCarried ? "The relay sent it to no builder." : "It was sent to no builder.";
}

/** Reports its fees if they are, or may be, the reason. */
function feesOf({ stage = "" }: StatusRecord, chain: ChainFacts): readonly string[] {
	const { maxFeePerGas, maxPriorityFeePerGas, baseFee, head } = chain;
	if (maxFeePerGas === null || baseFee === null) return [];
	const fees = `Its fee cap is ${gwei(maxFeePerGas)} gwei, and the base fee of block ${head} is ${gwei(baseFee)} gwei`;
	if (maxFeePerGas < baseFee) return [`${fees}: no block can take it until that falls.`];
	if (!(OUTGOING_STAGES as readonly string[]).includes(stage)) return [];
	const left = maxFeePerGas - baseFee;
	const tip = maxPriorityFeePerGas === null || maxPriorityFeePerGas > left ? left : maxPriorityFeePerGas;
	return [`${fees}, so it pays the builder ${gwei(tip)} gwei for each unit of gas.`];
}

/** Reports its nonce if earlier nonces of its sender are missing on the chain. */
function nonceOf({ nonce, nextNonce }: ChainFacts): readonly string[] {
	if (nonce === null || nextNonce === null || nonce <= nextNonce) return [];
	return [`Its nonce is ${nonce}, and the next one of its sender on the chain is ${nextNonce}.`];
}

function nextStep(facts: Facts): string {
	const { nextStep: step, stage, reason } = facts.record;
	if (step != null) return `What to do: ${step}.`;
	if (hasLanded(facts) || isOver(facts.record)) return "";
	if (stage === "HELD") {
		return reason === RELAY_OUT
			? "What to do: restart the relay; boost then sends it there by itself."
			: "What to do: wait; boost makes sure that a relay has it.";
	}
	return "What to do: wait, since it is sent again for each block until it expires; with a higher priority fee builders include it sooner.";
}

function gwei(wei: bigint): string {
	return String(Number(wei) / 1e9);
}

function sentence(text: string): string {
	return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
