// Gives the followers of a topic its current results and each later change. A topic is the status
// of a transaction or of a bundle.

import { bundleOfTopic, transactionOfTopic } from "../domain/endpoints.ts";
import type { FollowTopic } from "../edge/messages.ts";
import type { SearcherMarket } from "../market/market.ts";
import { bundleBlockView } from "./bundleViews.ts";
import type { CoreNeeds } from "./methodDependencies.ts";
import type { SubscriptionHub } from "./subscriptions.ts";

export interface TopicsDependencies extends Pick<CoreNeeds, "records" | "statusView"> {
	readonly bundles: Pick<SearcherMarket, "bundle">;
	readonly subscriptions: Pick<SubscriptionHub, "tap">;
}

/** Follows topics in the process that has the transactions. */
export function createTopics(dependencies: TopicsDependencies): FollowTopic {
	return async (topic, begin, tell) => {
		let hasBegun = false;
		let hasChanged = false;
		const end = dependencies.subscriptions.tap(topic, (text) => {
			if (hasBegun) tell(text);
			else hasChanged = true;
		});
		try {
			let current = await currentOf(topic, dependencies);
			// The topic changed while the store was read. One more read is enough: a changed record
			// is in memory, and read there without a copy.
			if (hasChanged) current = await currentOf(topic, dependencies);
			hasBegun = true;
			begin(current);
			return end;
		} catch (thrown) {
			end();
			throw thrown;
		}
	};
}

/**
 * The current results: a transaction's status, or a bundle's in each of its blocks. Empty if it is
 * unknown.
 */
async function currentOf(
	topic: string,
	{ records, statusView, bundles }: TopicsDependencies,
): Promise<readonly unknown[]> {
	const hash = transactionOfTopic(topic);
	if (hash !== null) {
		const record = await records.record(hash);
		return record === null ? [] : [statusView(record)];
	}
	const named = bundleOfTopic(topic);
	const bundle = named === null ? null : bundles.bundle({ owner: named.owner, isLive: true }, named.hash);
	if (bundle === null) return [];
	return bundle.blocks.map((status) => bundleBlockView(bundle, status));
}
