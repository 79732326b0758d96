// The fixture for boost's request handling: a real journal on a disk in memory, upstreams with scripted answers, and requests.

import { test } from "node:test";
import { dialectOf } from "../../../../boost-proxy/dialects/dialects.ts";
import type { DialectName, Sendable, SendOptions, Upstream } from "../../../../boost-proxy/domain/ports.ts";
import type {
	BoostPath,
	Delivery,
	RequestState,
	UpstreamName,
} from "../../../../boost-proxy/domain/request.ts";
import { Reconciler } from "../../../../boost-proxy/reconcile/reconciler.ts";
import { Cancels } from "../../../../boost-proxy/requests/cancels.ts";
import { Failover } from "../../../../boost-proxy/requests/failover.ts";
import { Submissions } from "../../../../boost-proxy/requests/submissions.ts";
import { Background } from "../../../../shared/background.ts";
import type { RpcAnswer, RpcCall } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { PRAGUE } from "../../../support/forks.ts";
import type { FakeDisk } from "../../relay/fakeDisk.ts";
import { FakeUpstreamBase } from "../fakeUpstream.ts";
import { fixture as journalFixture } from "../journal/journalFixture.ts";

export const ACKNOWLEDGED: Delivery = { kind: "acknowledged", known: false };
export const TIMED_OUT: Delivery = { kind: "failed", fault: "timeout", sent: true };
export const REFUSED: Delivery = { kind: "failed", fault: "refused", sent: false };
export const INTERNAL: Delivery = {
	...{ kind: "failed", fault: "internal", sent: true },
	error: { code: -32603, message: "internal error" },
};
export const rejected = (message: string): Delivery => ({
	kind: "rejected",
	error: { code: -32000, message },
});

/** An upstream whose next answers are in `deliveries` and `answers`. */
export class FakeUpstream extends FakeUpstreamBase {
	/** Used one after another; the last one repeats. */
	deliveries: (Delivery | (() => Promise<Delivery>))[] = [ACKNOWLEDGED];
	answers: (RpcAnswer | null)[] = [];
	refusals: Partial<Record<BoostPath, string>> = {};
	/** Runs during each call. */
	onCall: () => Promise<void> = async () => {};
	/** Whether it answers although its breaker is open. */
	isReachable = false;
	readonly sent: {
		readonly tx: Sendable;
		readonly deadlineMs: number;
		readonly caller: SendOptions["caller"];
	}[] = [];
	readonly called: RpcCall[] = [];

	constructor(name: UpstreamName, dialect: DialectName | null) {
		super(name, dialect === null ? null : dialectOf(dialect));
	}

	/** Hashes that were sent to it. */
	get hashes(): readonly string[] {
		return this.sent.map(({ tx }) => tx.hash);
	}

	override refusal(path: BoostPath): string | null {
		return this.refusals[path] ?? null;
	}

	override async deliver(
		tx: Sendable,
		{ deadlineMs, caller, routing }: Parameters<Upstream["deliver"]>[1],
	): Promise<Delivery | null> {
		if (this.isUnavailable) return null;
		this.sent.push({ tx, deadlineMs, caller });
		if (routing !== undefined) routing.attempts += 1;
		const [next] = this.deliveries;
		if (this.deliveries.length > 1) this.deliveries.shift();
		if (next === undefined) throw new Error("nothing to say");
		return typeof next === "function" ? next() : next;
	}

	override async call(call: RpcCall, options?: { readonly anyway?: boolean }): Promise<RpcAnswer | null> {
		if (this.isUnavailable && !(options?.anyway === true && this.isReachable)) return null;
		this.called.push(call);
		await this.onCall();
		return this.answers.shift() ?? null;
	}
}

export interface RequestFixtureOptions {
	readonly dialect?: DialectName;
	readonly budgetMs?: number;
	/** Of the rows. */
	readonly limits?: Parameters<typeof journalFixture>[0];
	/** What an earlier process has left. */
	readonly disk?: FakeDisk;
}

export async function requestFixture(options: RequestFixtureOptions = {}) {
	const { budgetMs = 10_000, dialect = "mevblocker" } = options;
	let triggers = 0;
	const { journal, clock, disk } = await journalFixture(options.limits, options.disk);
	const { rows } = journal;
	const relay = new FakeUpstream("relay", null);
	const fallback = new FakeUpstream("fallback", dialect);
	const upstreams = { relay, fallback };
	const failover = new Failover({ budgetMs }, { upstreams, clock });
	/** Its id, and the next nonce of every account, as hex; null: it can't be read. */
	const chain: { id: bigint | null; nextNonce: string | null } = { id: 31_337n, nextNonce: null };
	// Not started: it does what requests ask for, and nothing by itself.
	const reconciler = new Reconciler(
		{ budgetMs, deadlineMs: 1_000, tickMs: 1_000 },
		{
			...{ rows, upstreams, clock, log: silentLogger },
			chain: {
				batch: async () => (chain.nextNonce === null ? null : [{ ok: true, result: chain.nextNonce }]),
			},
			background: new Background({}, { log: silentLogger }),
		},
	);
	rows.onWork(() => {
		triggers += 1;
	});
	const cancels = new Cancels({ rows, upstreams, failover, reconciler, relayKnowsClient: () => true });
	const submissions = new Submissions({
		...{ rows, upstreams, failover, reconciler, cancels, clock, log: silentLogger, chainId: () => chain.id },
		fork: () => PRAGUE,
	});
	const request = (changed: Partial<RequestState> & { readonly address?: string } = {}): RequestState => ({
		caller: {
			address: changed.address ?? "192.0.2.1",
			...{ signer: null, origin: null, via: null, signature: null },
			life: { bytes: 0, onGone: () => {} },
		},
		target: null,
		...{ path: "fast", search: "", whole: null },
		until: clock.monotonic() + budgetMs,
		routing: { answeredBy: new Set(), attempts: 0, dropped: new Set() },
		...changed,
	});
	return {
		...{ journal, clock, disk, relay, fallback, submissions, cancels, chain, request },
		triggers: () => triggers,
	};
}

export type RequestFixture = Awaited<ReturnType<typeof requestFixture>>;

/** A test of a fixture of its own. */
export function scenario(
	name: string,
	body: (fixture: RequestFixture) => Promise<void>,
	options: RequestFixtureOptions = {},
): void {
	test(name, async () => body(await requestFixture(options)));
}

/** The next delivery to `upstream` hangs; resolves once it has begun with a function that answers it. */
export async function hanging(upstream: FakeUpstream): Promise<(delivery: Delivery) => void> {
	const before = upstream.sent.length;
	let answer = (_: Delivery): void => {};
	upstream.deliveries = [() => new Promise((resolve) => (answer = resolve))];
	while (upstream.sent.length === before) await Promise.resolve();
	return answer;
}
