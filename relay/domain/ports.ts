// The interfaces that more than one class has: one of the relay's, and one of a test. relay.ts
// connects them. Code that uses a single class refers to its type.

import type { Stage } from "../../shared/ethereum/statusRecord.ts";
import type { RequestLife } from "../../shared/http/callContext.ts";
import type { AccountState, Header } from "./chain.ts";
import type { TxEvent } from "./events.ts";
import type { TransactionRecord } from "./record.ts";
import type { SimulationOutcome, SimulationRequest } from "./simulation.ts";

/**
 * Account states, read from the node once per head and address, with fair queueing by client. The
 * test of admission has its own, whose node lags.
 */
export interface Accounts {
	/**
	 * State of `address` after the tracked head, charged to `client` (see clientOf). `urgent` reads
	 * go first. Throws an UpstreamError if it is not available within a second.
	 */
	get(address: string, client: string, urgent?: boolean): Promise<AccountState>;
	/**
	 * The same, read from the node now and possibly after a later head: for the check before a
	 * rejection. Urgent. Throws an UpstreamError if it is not available within a second.
	 */
	fresh(address: string, client: string): Promise<AccountState>;
	/** Sets the tracked head and drops all cached states. */
	setHead(head: Pick<Header, "number" | "hash">): void;
}

/** The queue of simulations. The market's tests have one whose outcomes they set. */
export interface Simulations {
	/** As {@link Simulator.simulate}, after waiting in the queue. */
	simulate(request: SimulationRequest): Promise<readonly SimulationOutcome[]>;
}

/** Runs simulations. The queue's tests have one that they can hold back. */
export interface Simulator {
	/**
	 * Runs the transactions in order. Returns one outcome each, up to the first one that fails and
	 * must not. A failing node is an outcome (`NODE_UNAVAILABLE`), never thrown.
	 */
	simulate(request: SimulationRequest): Promise<SimulationOutcome[]>;
}

/** Called for every event after it was applied to the record. */
export type EventListener = (record: TransactionRecord, before: Stage, event: TxEvent) => void;

/** The client for which the node is called. */
export interface Caller {
	/** The client that is charged for the call: see clientOf. */
	readonly client: string;
	/** A queued call is abandoned when the client disconnects. */
	readonly life: Pick<RequestLife, "onGone">;
}

/** Publishes notifications to subscribers: the hub of ingress, which no stage depends on. */
export interface Publisher {
	/**
	 * `make` creates the notification's result as JSON values; called once, and only if there are
	 * subscribers.
	 */
	publish(topic: string, make: () => unknown): void;
}
