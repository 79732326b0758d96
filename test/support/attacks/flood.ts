// Sends an attacker's requests over a number of open connections, and counts the answers by their
// wording.

import { Agent, request } from "node:http";
import { pause, systemClock } from "../../../shared/clock.ts";

export interface FloodRequest {
	readonly body: string;
	/** Default "/". */
	readonly path?: string;
	readonly headers?: Readonly<Record<string, string>>;
}

interface FloodOptions {
	/** http://127.0.0.1:port */
	readonly url: string;
	/** The sender's network address. */
	readonly from: string;
	/** Number of connections, each with one request in flight. */
	readonly connections: number;
	/** Minimum time between two requests of a connection, in ms. Default: none. */
	readonly everyMs?: number;
	/** After this many ms no further request begins. */
	readonly lastingMs: number;
	/** After this many ms a request without an answer is given up. */
	readonly patienceMs: number;
}

/**
 * Counts of outcomes: "accepted", `code message` of an error, "HTTP status", or Node's code of a
 * failure.
 */
export interface Tally {
	readonly sent: number;
	readonly ms: number;
	readonly outcomes: Readonly<Record<string, number>>;
}

/** The tally of several orders that ran one after another. */
export function addTallies(tallies: readonly Tally[]): Tally {
	const outcomes: Record<string, number> = {};
	for (const tally of tallies) {
		for (const [outcome, times] of Object.entries(tally.outcomes))
			outcomes[outcome] = (outcomes[outcome] ?? 0) + times;
	}
	const sum = (of: (tally: Tally) => number): number => tallies.reduce((all, one) => all + of(one), 0);
	return { sent: sum(({ sent }) => sent), ms: sum(({ ms }) => ms), outcomes };
}

/**
 * Characters of an error's message that count: later ones often have numbers and hashes, which
 * would make each message unique.
 */
const WORDING_CHARACTERS = 60;

/** Sends `requests` until all are sent or the time is up. */
export async function flood(requests: Iterable<FloodRequest>, options: FloodOptions): Promise<Tally> {
	const agent = new Agent({ keepAlive: true, maxSockets: options.connections, localAddress: options.from });
	const outcomes = new Map<string, number>();
	const begun = performance.now();
	const source = requests[Symbol.iterator]();
	let sent = 0;
	const work = async (): Promise<void> => {
		while (performance.now() - begun < options.lastingMs) {
			const next = source.next();
			if (next.done === true) return;
			sent += 1;
			const rest = options.everyMs === undefined ? null : pause(systemClock, options.everyMs);
			const [answers] = await Promise.all([post(next.value, options, agent), rest]);
			for (const outcome of answers) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
		}
	};
	await Promise.all(Array.from({ length: options.connections }, work));
	agent.destroy();
	return { sent, ms: Math.round(performance.now() - begun), outcomes: Object.fromEntries(outcomes) };
}

function post(
	{ body, path = "/", headers }: FloodRequest,
	{ url, patienceMs }: FloodOptions,
	agent: Agent,
): Promise<readonly string[]> {
	return new Promise((resolve) => {
		const options = {
			...{ method: "POST", agent, headers: { "content-type": "application/json", ...headers } },
			signal: AbortSignal.timeout(patienceMs),
		};
		const sent = request(`${url}${path}`, options, (answer) => {
			const chunks: Buffer[] = [];
			answer.on("data", (chunk: Buffer) => chunks.push(chunk));
			answer.on("error", (error: NodeJS.ErrnoException) => resolve([error.code ?? error.name]));
			answer.on("end", () => resolve(outcomesOf(answer.statusCode ?? 0, Buffer.concat(chunks).toString())));
		});
		sent.on("error", (error: NodeJS.ErrnoException) => resolve([error.code ?? error.name]));
		sent.end(body);
	});
}

function outcomesOf(status: number, body: string): readonly string[] {
	try {
		const parsed = JSON.parse(body) as unknown;
		return (Array.isArray(parsed) ? parsed : [parsed]).map(
			({ error }: { readonly error?: { readonly code: number; readonly message: string } }) =>
				error === undefined
					? "accepted"
					: `${error.code} ${error.message.replace(/0x[0-9a-f]+|\d+/g, "#").slice(0, WORDING_CHARACTERS)}`,
		);
	} catch {
		return [`HTTP ${status}`];
	}
}
