// The way in that bids and plain bundles share: while one is being considered it holds its place in the order of its uuid;
// how that ended is counted.

import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { nodeUnavailable } from "../admission/admission.ts";
import type { BundleTable, Submission } from "../auction/bundleTable.ts";
import type { BundleEnvelope, BundleOutcome, BundleRefusal } from "../domain/bundle.ts";

export interface BundleEntranceDependencies {
	readonly table: BundleTable;
	/** How a bundle ended: a refusal by its code. */
	readonly onOutcome: (outcome: "accepted" | "failed" | BundleRefusal) => void;
}

/** What `consider` answers for the bundle. Throws RpcError where the node fails. */
export async function enterBundle<R extends BundleEnvelope>(
	request: R,
	{ table, onOutcome }: BundleEntranceDependencies,
	consider: (request: R, submission: Submission) => Promise<BundleOutcome>,
): Promise<BundleOutcome> {
	const submission = table.enter(request.owner, request.uuid);
	try {
		const outcome = await consider(request, submission);
		onOutcome(outcome.outcome === "refused" ? outcome.code : "accepted");
		return outcome;
	} catch (thrown) {
		onOutcome("failed");
		throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
	} finally {
		if (submission.end === null) table.release(submission);
	}
}
