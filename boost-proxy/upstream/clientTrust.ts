// Whether our relay believes who we say asks: it is asked for whom it takes a client that nobody can be. Where it does
// not, it sees all our clients as one, and must not be the one to judge which of them may cancel what.

import type { Background } from "../../shared/background.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import type { Upstream } from "../domain/ports.ts";
import { onBehalfOf } from "../domain/request.ts";

export interface ClientTrustDependencies {
	readonly relay: Upstream;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

/** The relay's belief; false until it was seen. */
export interface ClientTrust extends Component {
	readonly isBelieved: boolean;
}

/** For documents alone, so no client has it. https://www.rfc-editor.org/rfc/rfc5737 */
const NOBODYS_ADDRESS = "192.0.2.113";
const ASK_MS = 2_000;
/** It may be configured anew at each of its starts. */
const AGAIN_MS = 5_000;

/** Asks from the start on, every few seconds. */
export function createClientTrust(dependencies: ClientTrustDependencies): ClientTrust {
	const { relay, background, clock, log } = dependencies;
	const stopping = new AbortController();
	let isBelieved: boolean | null = null;
	const ask = async (): Promise<void> => {
		const call = { method: "service_client", params: [] };
		const answer = await relay.call(call, {
			deadlineMs: ASK_MS,
			caller: onBehalfOf({ address: NOBODYS_ADDRESS }),
		});
		if (answer === null) return;
		const taken = answer.ok ? (answer.result as { address?: unknown } | null)?.address : undefined;
		const believes = taken === NOBODYS_ADDRESS;
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
			return isBelieved === true;
		},
		async start() {
			background.run("client trust", async () => {
				while (!stopping.signal.aborted) {
					await ask();
					await pause(clock, AGAIN_MS, stopping.signal);
				}
			});
		},
		async stop() {
			stopping.abort();
		},
	};
}
