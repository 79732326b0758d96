// The fixture for boost's request handling: a real journal on a disk in memory, upstreams with
// scripted answers, and requests.

import { test } from "node:test";
import { type DialectName, NO_OTHERS } from "../../../../boost-proxy/domain/ports.ts";
import type { BoostPath, RequestState, UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import { Reconciler } from "../../../../boost-proxy/reconcile/reconciler.ts";
import { Cancels } from "../../../../boost-proxy/requests/cancels.ts";
import { Failover } from "../../../../boost-proxy/requests/failover.ts";
import { Submissions } from "../../../../boost-proxy/requests/submissions.ts";
import { Background } from "../../../../shared/background.ts";
import { nextTurn } from "../../../../shared/clock.ts";
import { decodeTransaction } from "../../../../shared/ethereum/transaction.ts";
import type { RpcAnswer } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { NO_TRACES } from "../../../../shared/tracing/traces.ts";
import { PRAGUE } from "../../../support/forks.ts";
import type { FakeDisk } from "../../relay/fakeDisk.ts";
import { fixture as journalFixture } from "../journal/journalFixture.ts";
import { type Left, type PlayedUpstream, playUpstreams, refusal, type Said } from "../wire.ts";

export const ACKNOWLEDGED: Said = "keeps";
export const BROKEN_OFF: Said = "breaks off";
export const REFUSED: Said = "refuses";
export const INTERNAL = refusal("internal error", -32603);

/** An upstream whose next answers are in `deliveries` and `answers`. */
export class AnsweringUpstream {
	/** To submissions, one after another; the last one repeats. */
	deliveries: (Said | (() => Promise<Said>))[] = [ACKNOWLEDGED];
	/** To calls; then it gives none. */
	answers: (Said | RpcAnswer)[] = [];
	/** Runs during each call. */
	onCall: () => Promise<void> = async () => {};
	/** Whether it answers although its breaker is open. */
	isReachable = false;
	/** Submissions that have left for it. */
	readonly sent: Left[] = [];
	/** Calls that it could answer. */
	readonly called: Left[] = [];
	readonly #played: PlayedUpstream;

	constructor(played: PlayedUpstream) {
		this.#played = played;
		played.onSubmission = (call) => this.#next(call);
		played.onCall = (call) => this.#answer(call);
	}

	get name(): UpstreamName {
		return this.#played.name;
	}

	get isUnavailable(): boolean {
		return this.#played.isOut;
	}

	set isUnavailable(isUnavailable: boolean) {
		this.#played.isOut = isUnavailable;
	}

	/** Hashes of what was sent to it. */
	get hashes(): readonly string[] {
		return this.sent.map(({ hash }) => hash);
	}

	/** Whether a byte of a submission has arrived. */
	get hasAny(): boolean {
		return this.#played.arrived.length > 0;
	}

	#next(call: Left): Said | Promise<Said> {
		this.sent.push(call);
		const [next] = this.deliveries;
		if (this.deliveries.length > 1) this.deliveries.shift();
		if (next === undefined) throw new Error("nothing to say");
		return typeof next === "function" ? next() : next;
	}

	#answer(call: Left): Said | Promise<Said> {
		if (this.isUnavailable && !this.isReachable) return "refuses";
		this.called.push(call);
		return this.onCall().then(() => this.answers.shift() ?? "breaks off");
	}
}

export interface RequestFixtureOptions {
	readonly dialect?: DialectName;
	readonly budgetMs?: number;
	/** The limits of the rows. */
	readonly limits?: Parameters<typeof journalFixture>[0];
	/** The disk that an earlier process has left. */
	readonly disk?: FakeDisk;
	/**
	 * Whether the relay accepts boost's information about clients (default true); null: it has not
	 * responded yet.
	 */
	readonly relayKnowsClient?: boolean | null;
}

/** Ends what the running test has started. */
const ends: (() => Promise<void>)[] = [];

export async function requestFixture(options: RequestFixtureOptions = {}) {
	const { budgetMs = 10_000, dialect = "mevblocker", relayKnowsClient = true } = options;
	let triggers = 0;
	const { journal, clock, disk } = await journalFixture(options.limits, options.disk);
	const { rows } = journal;
	/** Why the fallback may not have a path's transactions. */
	const unfitPaths: Record<BoostPath, string | null> = { fast: null, noreverts: null };
	const played = await playUpstreams({ hashOf, clock, dialect, unfitPaths });
	ends.push(played.end);
	const relay = new AnsweringUpstream(played.relay);
	const fallback = new AnsweringUpstream(played.fallback);
	const upstreams = { relay: played.relay.near, fallback: played.fallback.near };
	const failover = new Failover({ budgetMs }, { upstreams, clock });
	/** Its id, and the next nonce of every account, as hex; null: it can't be read. */
	const chain: { id: bigint | null; nextNonce: string | null } = { id: 31_337n, nextNonce: null };
	// Not started: it does what requests ask for, and nothing by itself.
	const reconciler = new Reconciler(
		{ budgetMs, deadlineMs: 1_000, tickMs: 1_000 },
		{
			...{ rows, upstreams, others: NO_OTHERS, clock, log: silentLogger },
			chain: {
				batch: async () => (chain.nextNonce === null ? null : [{ ok: true, result: chain.nextNonce }]),
			},
			background: new Background({}, { log: silentLogger }),
		},
	);
	rows.onWork(() => {
		triggers += 1;
	});
	const parts = { rows, upstreams, failover, reconciler, others: NO_OTHERS };
	const cancels = new Cancels({ ...parts, clock, relayKnowsClient: () => relayKnowsClient });
	const submissions = new Submissions({
		...{ ...parts, cancels, clock, log: silentLogger, traces: NO_TRACES, chainId: () => chain.id },
		fork: () => PRAGUE,
	});
	const request = (changed: Partial<RequestState> & { readonly address?: string } = {}): RequestState => ({
		caller: {
			address: changed.address ?? "192.0.2.1",
			...{ signer: null, origin: null, via: null, signature: null, requestId: null },
			life: { bytes: 0, onGone: () => {} },
		},
		target: null,
		...{ path: "fast", search: "" },
		until: clock.monotonic() + budgetMs,
		routing: { answeredBy: new Set(), attempts: 0, dropped: new Set() },
		...changed,
	});
	return {
		...{ journal, clock, disk, relay, fallback, submissions, cancels, chain, request, unfitPaths },
		triggers: () => triggers,
	};
}

function hashOf(raw: string): string {
	const decoded = decodeTransaction(Buffer.from(raw.slice(2), "hex"));
	if (!decoded.ok) throw new Error("what has left is no transaction");
	return decoded.tx.hash;
}

export type RequestFixture = Awaited<ReturnType<typeof requestFixture>>;

/** A test of a fixture of its own. */
export function scenario(
	name: string,
	body: (fixture: RequestFixture) => Promise<void>,
	options: RequestFixtureOptions = {},
): void {
	test(name, async () => {
		try {
			await body(await requestFixture(options));
		} finally {
			for (const end of ends.splice(0)) await end();
		}
	});
}

/**
 * The next delivery to `upstream` hangs; resolves once it has begun with a function that answers
 * it.
 */
export async function hanging(upstream: AnsweringUpstream): Promise<(said: Said) => void> {
	const before = upstream.sent.length;
	let answer = (_: Said): void => {};
	upstream.deliveries = [() => new Promise((resolve) => (answer = resolve))];
	while (upstream.sent.length === before) await nextTurn();
	return answer;
}
