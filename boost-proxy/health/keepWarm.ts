// Keeps connections to a third party open, so that the first transaction needs no new one.

import type { Clock } from "../../shared/clock.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import type { Transport } from "../domain/ports.ts";
import { askNumber } from "./questions.ts";
import { repeated } from "./rounds.ts";

/** Deadline of a request that only keeps a connection open, in ms. */
const WARM_ASK_MS = 5_000;

/** Asks each of `transports` for its chain id every `everyMs`. */
export function keepWarm(
	{ everyMs }: { readonly everyMs: number },
	{
		transports,
		clock,
		log,
	}: { readonly transports: readonly Transport[]; readonly clock: Clock; readonly log: Logger },
): Component {
	return repeated(
		"warm transports",
		() => everyMs,
		{ clock, log },
		async () => {
			await Promise.all(
				[...new Set(transports)].map((transport) => askNumber(transport, "eth_chainId", WARM_ASK_MS)),
			);
		},
	);
}
