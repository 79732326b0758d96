// Problems in the words of /readyz, alerts and the operators' pages, with advice. A test compares
// the alerts with this table, and docs/operators.md has it.

import type { CheckResult } from "./http/opsRoutes.ts";

/** One thing that is wrong, for the operator. */
export interface Problem {
	/** A sentence without its full stop, in lower case. */
	readonly text: string;
	/** Advice in the same form; "" if the text has it. */
	readonly todo: string;
	/** Whether the process is not ready because of it. */
	readonly isSerious: boolean;
}

/** A row of the table. */
export interface ProblemWords {
	readonly text: string;
	readonly todo: string;
	/** The alert that reports it, too. */
	readonly alert?: string;
}

/** All by name; a text of /readyz or of an alert begins with `text`. */
export const PROBLEMS = {
	nodeSilent: {
		text: "the node does not answer",
		todo: "start the node, or correct ETH_RPC_URL",
	},
	headStale: {
		text: "the head is too old",
		todo: "check whether the node is in sync and has peers",
		alert: "HeadStale",
	},
	clock: {
		text: "this machine's clock is",
		todo: "set the clock, by NTP",
	},
	noBuilder: {
		text: "no builder answers",
		todo: "check the network from here to the builders, and BUILDERS",
	},
	storeSilent: {
		text: "the store does not answer, or is another relay's",
		todo: "check the database",
	},
	storeFailed: {
		text: "the last write failed",
		todo: "check the disk's free space, or the database",
	},
	noCore: {
		text: "no core reachable",
		todo: "check the database, then the other relays' /readyz",
		alert: "EdgeAlone",
	},
	feedUnread: {
		text: "disclosed transactions are still being read from the core",
		todo: "wait some seconds",
	},
	pendingLong: {
		text: "a transaction has been pending for over a quarter of an hour",
		todo: "see which stage most are in, and what the builders answer",
		alert: "TransactionsStuck",
	},
	relayDown: {
		text: "the relay is down: the fallback serves its clients",
		todo: "check the relay's process and its /readyz",
		alert: "RelayOut",
	},
	relayForced: {
		text: "an operator has forced the relay's breaker open: the fallback serves its clients",
		todo: "choose auto once the relay may serve again",
		alert: "RelayOut",
	},
	relayDownAlone: {
		text: "the relay is down, and there is no fallback",
		todo: "start the relay, and set FALLBACK_URL for the next time",
	},
	relayDownUnfit: {
		text: "the relay is down, and nothing may be sent to the fallback",
		todo: "start the relay; FALLBACK_PRIVATE and FALLBACK_REVERT_PROTECTED say what the fallback may get",
	},
	bothDown: {
		text: "the relay and the fallback are down",
		todo: "start the relay; submissions are refused meanwhile",
	},
	fallbackDown: {
		text: "the fallback is down: nothing can take over from the relay",
		todo: "wait, or set another FALLBACK_URL",
		alert: "FallbackOut",
	},
	otherUnreaching: {
		text: "another boost instance does not reach the relay",
		todo: "check the network from there, and its RELAY_URL",
	},
	journalInMemory: {
		text: "the journal is not on disk, or full",
		todo: "check the disk's free space and the database; do not restart boost",
		alert: "JournalNotDurable",
	},
} as const satisfies Readonly<Record<string, ProblemWords>>;

/**
 * The problems that the results of the checks of /readyz report, the most serious one first.
 * `notes`: the names of checks whose notes are none.
 */
export function problemsOf(
	results: readonly (readonly [name: string, result: CheckResult])[],
	notes: readonly string[] = [],
): readonly Problem[] {
	const problems = results.flatMap(([name, result]): Problem[] => {
		const texts = [result.ok ? null : result.reason, notes.includes(name) ? null : (result.note ?? null)];
		return texts.flatMap((text, i) => (text === null ? [] : [{ ...withAdvice(text), isSerious: i === 0 }]));
	});
	return problems.sort((a, b) => Number(b.isSerious) - Number(a.isSerious));
}

/** A problem of another process, `name`. This one is ready all the same. */
export function problemElsewhere(text: string, name: string): Problem {
	return { ...withAdvice(text), text: `${text} (${name})`, isSerious: false };
}

function withAdvice(text: string): Pick<Problem, "text" | "todo"> {
	const words: readonly ProblemWords[] = Object.values(PROBLEMS);
	return { text, todo: words.find((one) => text.startsWith(one.text))?.todo ?? "" };
}
