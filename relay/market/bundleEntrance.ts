// The way in that bids and plain bundles share: a bundle comes in, what its consideration comes to goes out. Meanwhile it
// holds its place in the order of its uuid; how it ended is counted. It judges nothing.

import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import type { Ticket, UuidSlots } from "../auction/slots.ts";
import type { BundleEnvelope, BundleOutcome, BundleRefusal } from "../domain/bundle.ts";

export interface BundleEntranceDependencies {
	readonly slots: UuidSlots;
	/** How a bundle ended: a refusal by its code. */
	readonly onOutcome: (outcome: "accepted" | "failed" | BundleRefusal) => void;
}

/** Runs `consider` with the bundle's ticket. Throws RpcError where the node fails. */
export async function enterBundle<R extends BundleEnvelope>(
	request: R,
	{ slots, onOutcome }: BundleEntranceDependencies,
	consider: (request: R, ticket: Ticket) => Promise<BundleOutcome>,
): Promise<BundleOutcome> {
	const ticket = slots.enter(request.owner, request.uuid);
	try {
		const outcome = await consider(request, ticket);
		onOutcome(outcome.outcome === "refused" ? outcome.code : "accepted");
		return outcome;
	} catch (thrown) {
		onOutcome("failed");
		throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
	} finally {
		ticket.leave();
	}
}
