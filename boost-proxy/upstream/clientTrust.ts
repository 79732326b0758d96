// Whether the relay trusts boost's information about its clients. If not, the relay treats them as
// one client, which owns nothing. Boost is then not ready, and reports why.

import type { Background } from "../../shared/background.ts";
import { UNBELIEVED, type Unbelieved } from "../../shared/client.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import type { ReadinessCheck } from "../../shared/http/opsRoutes.ts";
import { RPC_ERRORS } from "../../shared/jsonrpc/errors.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import type { Upstream } from "../domain/ports.ts";
import { onBehalfOf } from "../domain/request.ts";

export interface ClientTrustDependencies {
	readonly relay: Pick<Upstream, "call" | "breaker">;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Whether the relay trusts boost's information about its clients. */
export interface ClientTrust extends Component {
	/**
	 * Null until the relay has answered, and again after each of its outages: another relay may have
	 * come back.
	 */
	readonly isBelieved: boolean | null;
	/** Fails once the relay has reported that it does not trust boost. */
	readonly check: ReadinessCheck;
}

/** Reserved for documentation, so that no client has it. https://www.rfc-editor.org/rfc/rfc5737 */
const TEST_ADDRESS = "192.0.2.113";
const ASK_MS = 2_000;
/** The relay's settings may change whenever it starts. */
const AGAIN_MS = 5_000;
/** Until it has answered, cancels are refused. */
const FIRST_AGAIN_MS = 500;

/** The answer of a server that is no relay of this kind. */
const NO_METHOD = RPC_ERRORS.methodNotFound.code;
const UNKNOWN_CAUSE =
	"the relay does not trust boost's client addresses: is its BOOST_SECRET the same as boost's?";
/** By the setting that the relay names. */
const CAUSES: Readonly<Record<Unbelieved, string>> = {
	BOOST_SECRET: "the relay does not trust boost's client addresses: its BOOST_SECRET differs from boost's",
	TRUST_PROXY:
		"the relay does not trust boost's client addresses: its TRUST_PROXY is not the number of proxies between them",
};

/** Asks the relay every few seconds which address it sees for a test client. */
export function createClientTrust(dependencies: ClientTrustDependencies): ClientTrust {
	const { relay, background, clock, log } = dependencies;
	const stopping = new AbortController();
	/** Null: the relay trusts boost. Undefined: it has not answered. */
	let cause: string | null | undefined;
	/** Counts the breaker's changes: an answer from before the last change is useless. */
	let outages = 0;
	const ask = async (): Promise<void> => {
		const before = outages;
		const call = { method: "service_client", params: [] };
		const answer = await relay.call(call, {
			deadlineMs: ASK_MS,
			caller: onBehalfOf({ address: TEST_ADDRESS }),
		});
		if (answer === null || outages !== before) return;
		// A temporary error proves nothing. A balancer may have no relay at this moment.
		if (!answer.ok && answer.error.code !== NO_METHOD) return;
		const found = answer.ok ? causeIn(answer.result) : UNKNOWN_CAUSE;
		if (found !== null && found !== cause) log.warn(found);
		cause = found;
	};
	relay.breaker.onChange(() => {
		cause = undefined;
		outages += 1;
		if (!relay.breaker.isUnavailable) background.run("client trust", ask);
	});
	return {
		name: "client trust",
		get isBelieved() {
			return cause === undefined ? null : cause === null;
		},
		check: {
			name: "clients",
			check: () => (typeof cause === "string" ? { ok: false, reason: cause } : { ok: true }),
		},
		async start() {
			// Before the port opens, so that the first /readyz is true.
			await ask();
			background.run("client trust", async () => {
				while (!stopping.signal.aborted) {
					await pause(clock, cause === undefined ? FIRST_AGAIN_MS : AGAIN_MS, stopping.signal);
					await ask();
				}
			});
		},
		async stop() {
			stopping.abort();
		},
	};
}

/** Why the relay does not trust boost, by its answer; null if it does. */
function causeIn(result: unknown): string | null {
	const { address, unbelieved } = (result ?? {}) as { address?: unknown; unbelieved?: unknown };
	const setting = UNBELIEVED.find((one) => one === unbelieved);
	// Behind proxies that it trusts, the relay may know the address and still not trust boost.
	if (setting !== undefined) return CAUSES[setting];
	return address === TEST_ADDRESS ? null : UNKNOWN_CAUSE;
}
