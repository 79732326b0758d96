// A boost instance whose requests go through a network that a test controls. Its request handling,
// reconciler, rows and homes are real.

import { dialectOf } from "../../../../boost-proxy/dialects/dialects.ts";
import {
	type Breaker,
	type Dialect,
	NO_OTHERS,
	type OtherBoosts,
	type Sendable,
	type Upstream,
} from "../../../../boost-proxy/domain/ports.ts";
import {
	type Delivery,
	type RequestState,
	UPSTREAMS,
	type UpstreamName,
} from "../../../../boost-proxy/domain/request.ts";
import { Homes } from "../../../../boost-proxy/homes/homes.ts";
import { Reconciler } from "../../../../boost-proxy/reconcile/reconciler.ts";
import { Cancels } from "../../../../boost-proxy/requests/cancels.ts";
import { Failover } from "../../../../boost-proxy/requests/failover.ts";
import { Submissions } from "../../../../boost-proxy/requests/submissions.ts";
import type { Rows } from "../../../../boost-proxy/rows/rows.ts";
import { Background } from "../../../../shared/background.ts";
import type { RpcAnswer, RpcCall } from "../../../../shared/jsonrpc/client.ts";
import type { KeyValueStore } from "../../../../shared/kv/port.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { NO_TRACES } from "../../../../shared/tracing/traces.ts";
import { PRAGUE } from "../../../support/forks.ts";
import { fixtureOn } from "../journal/journalFixture.ts";
import { NAMES } from "./transactions.ts";

const CLIENT = "192.0.2.1";
const BUDGET_MS = 10_000;

export type CallOptions = Parameters<Upstream["call"]>[1];
/** The end of a request. `unsent`: nothing of it has left. */
export type RequestEnd = "answered" | "unanswered" | "unsent";

/** The way of requests to the upstreams, and the upstreams' work. */
export interface Network {
	/** Whether boost takes an upstream for unavailable. */
	isOut(upstream: UpstreamName): boolean;
	/** A request of `by`, whose work is `arrive`; resolves as `outcomeOf` says. */
	request<T>(
		by: Boost,
		request: { readonly name: string; readonly arrive: () => Promise<unknown> },
		outcomeOf: (answer: unknown, end: RequestEnd) => T,
	): Promise<T>;
	submitted(to: UpstreamName, tx: Sendable, options: Parameters<Upstream["deliver"]>[1]): Promise<Delivery>;
	cancelled(to: UpstreamName, hash: string, options: CallOptions): Promise<RpcAnswer>;
	stageAtRelay(hash: string): string | null;
}

/** One boost instance. */
export class Boost {
	readonly name: string;
	readonly reconciler: Reconciler;
	isSuspended = false;
	readonly #rows: Rows;
	readonly #submissions: Submissions;
	readonly #cancels: Cancels;
	readonly #clock: { monotonic(): number; advance(ms: number): Promise<void> };
	readonly #changes: (() => void)[] = [];

	private constructor(
		name: string,
		world: Network,
		{ journal, clock }: Awaited<ReturnType<typeof fixtureOn>>,
	) {
		this.name = name;
		this.#clock = clock;
		const { rows } = journal;
		this.#rows = rows;
		const upstreams = {
			relay: new GatedUpstream("relay", null, world, this, this.#changes),
			fallback: new GatedUpstream(
				"fallback",
				dialectOf("mevblocker", { hasStatusUrl: false }),
				world,
				this,
				this.#changes,
			),
		};
		const background = new Background({}, { log: silentLogger });
		const reachesRelay = () => !world.isOut("relay");
		const others: OtherBoosts =
			rows.shared === null
				? NO_OTHERS
				: new Homes({ shared: rows.shared, rows, reachesRelay, clock, background, log: silentLogger });
		const shared = { rows, upstreams, others, clock, log: silentLogger };
		const chain = { batch: async () => [{ ok: true, result: "0x0" } as const] };
		this.reconciler = new Reconciler(
			{ budgetMs: BUDGET_MS, deadlineMs: 1_000, tickMs: 1_000 },
			{ ...shared, chain, background },
		);
		const failover = new Failover({ budgetMs: BUDGET_MS }, shared);
		const requests = { ...shared, failover, reconciler: this.reconciler };
		this.#cancels = new Cancels({ ...requests, relayKnowsClient: () => true });
		this.#submissions = new Submissions({
			...{ ...requests, cancels: this.#cancels },
			...{ chainId: () => 31_337n, fork: () => PRAGUE, traces: NO_TRACES },
		});
		this.reconciler.start();
	}

	static async start(name: string, world: Network, disk: KeyValueStore): Promise<Boost> {
		return new Boost(name, world, await fixtureOn(disk));
	}

	async takeOver(from: string): Promise<void> {
		const { shared } = this.#rows;
		if (shared !== null) await shared.takeIn(await shared.accounts.takeOver([from]));
	}

	/** Whether it was a soft cancel. */
	async submit(raw: Buffer): Promise<boolean> {
		return (await this.#submissions.submit(raw, this.#request())).cancels;
	}

	cancel(hash: string): Promise<true> {
		return this.#cancels.cancel(hash, this.#request());
	}

	advance(ms: number): Promise<void> {
		return this.#clock.advance(ms);
	}

	pendingCancels(): readonly string[] {
		return [...this.#rows.pendingCancels()].map(
			({ hash, at }) =>
				`${this.name} of ${NAMES.get(hash)} at ${UPSTREAMS.filter((by) => at[by].cancelPending).join(" and ")}`,
		);
	}

	healthChanged(): void {
		for (const listener of this.#changes) listener();
	}

	#request(): RequestState {
		return {
			caller: {
				address: CLIENT,
				...{ signer: null, origin: null, via: null, signature: null, requestId: null },
				life: { bytes: 0, onGone: () => {} },
			},
			...{ target: null, path: "noreverts", search: "softCancellations=true" },
			until: this.#clock.monotonic() + BUDGET_MS,
			routing: { answeredBy: new Set(), attempts: 0, dropped: new Set() },
		};
	}
}

/** An upstream whose requests go through the world. */
class GatedUpstream implements Upstream {
	readonly name: UpstreamName;
	readonly dialect: Dialect | null;
	readonly breaker: Breaker;
	readonly #world: Network;
	readonly #boost: Boost;

	constructor(
		name: UpstreamName,
		dialect: Dialect | null,
		world: Network,
		boost: Boost,
		changes: (() => void)[],
	) {
		this.name = name;
		this.dialect = dialect;
		this.#world = world;
		this.#boost = boost;
		this.breaker = {
			upstream: name,
			get isUnavailable() {
				return world.isOut(name);
			},
			onChange: (listener: () => void) => void changes.push(listener),
		} as Breaker;
	}

	whyUnfit(): null {
		return null;
	}

	async deliver(tx: Sendable, options: Parameters<Upstream["deliver"]>[1]): Promise<Delivery | null> {
		if (this.breaker.isUnavailable) return null;
		const name = `${NAMES.get(tx.hash)} to the ${this.name}`;
		const arrive = () => this.#world.submitted(this.name, tx, options);
		return this.#world.request(this.#boost, { name, arrive }, (answer, state) =>
			state === "answered"
				? (answer as Delivery)
				: { kind: "failed", fault: "timeout", sent: state === "unanswered" },
		);
	}

	async call({ method, params }: RpcCall, options: CallOptions): Promise<RpcAnswer | null> {
		const [first] = params as readonly [unknown];
		if (method === "service_transactionStatuses") {
			if (this.breaker.isUnavailable) return null;
			const hashes = first as readonly string[];
			const result = hashes.map((hash) => ({ hash, stage: this.#world.stageAtRelay(hash) }));
			return { ok: true, result };
		}
		if (method !== "eth_cancelTransaction") return null;
		if (this.breaker.isUnavailable && options.anyway !== true) return null;
		const arrive = () => this.#world.cancelled(this.name, String(first), options);
		const request = { name: `cancel to the ${this.name}`, arrive };
		return this.#world.request(this.#boost, request, (answer, state) =>
			state === "answered" ? (answer as RpcAnswer) : null,
		);
	}

	read = async () => null;
	batch = async () => null;
	statusPage = async () => null;
}
