// Publishes the core's news where other relays serve too: a shared transaction is encoded once, for all edges and for this process's
// own clients.

import { PENDING_TRANSACTIONS } from "../domain/endpoints.ts";
import type { Publisher } from "../domain/ports.ts";
import type { EdgeServer } from "./edgeServer.ts";

interface FeedPublisherDependencies {
	/** For all other topics. */
	readonly subscriptions: Publisher;
	readonly edges: Pick<EdgeServer, "shared">;
	/** For this process's clients. */
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
		// First to the edges: a crowd of this process's own clients takes some turns.
		edges.shared(shared.hash, text);
		core.shared(shared.hash, text);
	}
}
