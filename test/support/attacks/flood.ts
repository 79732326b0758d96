// Requests of an attacker, as many as he likes over connections that stay open; what came of them is counted by wording.

import { Agent, request } from "node:http";

export interface FloodRequest {
	readonly body: string;
	/** Default "/". */
	readonly path?: string;
	readonly headers?: Readonly<Record<string, string>>;
}

interface FloodOptions {
	/** http://127.0.0.1:port */
	readonly url: string;
	/** The network address that it comes from. */
	readonly from: string;
	/** Under way at a time. */
	readonly connections: number;
	/** None is begun after so long, in ms. */
	readonly lastingMs: number;
	/** An answer that has not come by then is given up, in ms. */
	readonly patienceMs: number;
}

/** How many of each: "accepted", `code message` of an error, "HTTP status", or node's name of a failure. */
export interface Tally {
	readonly sent: number;
	readonly ms: number;
	readonly outcomes: Readonly<Record<string, number>>;
}

/** Of an error's message: numbers, hashes and addresses would make a wording of each. */
const WORDING_CHARACTERS = 60;

/** Sends all of `requests`, or as many as there is time for. */
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
			for (const outcome of await post(next.value, options, agent)) {
				outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
			}
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
