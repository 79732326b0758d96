// Publishes the core's news on a relay that has edges. A shared transaction is encoded once, for
// all edges and for this process's own clients.

import { PENDING_TRANSACTIONS } from "../domain/endpoints.ts";
import type { Publisher } from "../domain/ports.ts";
import type { EdgeServer } from "./edgeServer.ts";

interface FeedPublisherDependencies {
	/** Publishes all other topics. */
	readonly subscriptions: Publisher;
	readonly edges: Pick<EdgeServer, "shared">;
	/** Publishes to this process's clients. */
	readonly core: { shared(hash: string, text: string): void };
}

export class FeedPublisher implements Publisher {
	readonly #dependencies: FeedPublisherDependencies;

	constructor(dependencies: FeedPublisherDependencies) {
		this.#dependencies = dependencies;
	}

	publish(topic: string, make: () => unknown): void {
		const { subscriptions, edges, core } = this.#dependencies;
		if (topic !== PENDING_TRANSACTIONS) {
			subscriptions.publish(topic, make);
			return;
		}
		const shared = make() as { readonly hash: string };
		const text = JSON.stringify(shared);
		// The edges come first, since many clients of this process take several turns.
		edges.shared(shared.hash, text);
		core.shared(shared.hash, text);
	}
}
