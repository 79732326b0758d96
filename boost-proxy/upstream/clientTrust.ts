// Whether the relay takes boost's word for who its clients are. If not, it takes all of them for one and can't judge who may cancel.

import type { Background } from "../../shared/background.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import type { Upstream } from "../domain/ports.ts";
import { onBehalfOf } from "../domain/request.ts";

export interface ClientTrustDependencies {
	readonly relay: Pick<Upstream, "call">;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Whether the relay accepts boost's information about clients. */
export interface ClientTrust extends Component {
	/** Null until the relay has been heard. */
	readonly isBelieved: boolean | null;
}

/** Reserved for documentation, so that no client has it. https://www.rfc-editor.org/rfc/rfc5737 */
const TEST_ADDRESS = "192.0.2.113";
const ASK_MS = 2_000;
/** The relay's settings may change at each of its starts. */
const AGAIN_MS = 5_000;
/** While it has not been heard yet cancels are refused for that. */
const FIRST_AGAIN_MS = 500;

/** Asks the relay every few seconds which address it sees for a test client. */
export function createClientTrust(dependencies: ClientTrustDependencies): ClientTrust {
	const { relay, background, clock, log } = dependencies;
	const stopping = new AbortController();
	let isBelieved: boolean | null = null;
	const ask = async (): Promise<void> => {
		const call = { method: "service_client", params: [] };
		const answer = await relay.call(call, {
			deadlineMs: ASK_MS,
			caller: onBehalfOf({ address: TEST_ADDRESS }),
		});
		if (answer === null) return;
		const taken = answer.ok ? (answer.result as { address?: unknown } | null)?.address : undefined;
		const believes = taken === TEST_ADDRESS;
		if (!believes && isBelieved !== false) {
			log.warn(
				"the relay does not take boost's word for who its clients are: is BOOST_SECRET the same on both?",
			);
		}
		isBelieved = believes;
	};
	return {
		name: "client trust",
		get isBelieved() {
			return isBelieved;
		},
		async start() {
			background.run("client trust", async () => {
				while (!stopping.signal.aborted) {
					await ask();
					await pause(clock, isBelieved === null ? FIRST_AGAIN_MS : AGAIN_MS, stopping.signal);
				}
			});
		},
		async stop() {
			stopping.abort();
		},
	};
}
