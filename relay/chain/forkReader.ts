// Reads the rules of the node's forks: at the start, now and then, and when an announced fork
// begins.

import type { Background } from "../../shared/background.ts";
import { ForkSchedule } from "../../shared/ethereum/forkSchedule.ts";
import type { Fork } from "../../shared/ethereum/forks.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import type { Header, NextBlock } from "../domain/chain.ts";

const ASK_MS = 5_000;

export interface ForkReaderDependencies {
	readonly node: Pick<JsonRpcClient, "call">;
	readonly background: Pick<Background, "run">;
	readonly log: Logger;
}

export class ForkReader {
	readonly #schedule: ForkSchedule;
	readonly #dependencies: ForkReaderDependencies;
	#isToldUnknown = false;
	/** The last logged fork of the next block. */
	#loggedFork: Fork | null = null;

	constructor(options: { readonly chainId: bigint }, dependencies: ForkReaderDependencies) {
		this.#schedule = new ForkSchedule({ chainId: () => options.chainId });
		this.#dependencies = dependencies;
	}

	/** The fork of a block with this timestamp, in seconds since the epoch. */
	at = (timestamp: number): Fork => this.#schedule.at(timestamp);

	/** The fork of the block on top of `head`, with this timestamp in seconds since the epoch. */
	after({ shownFork }: Pick<Header, "shownFork">, timestamp: number): Fork {
		this.#schedule.see(shownFork ?? null);
		return this.#schedule.at(timestamp);
	}

	/** Sets the next block. If the rules should be read again before it, starts that read. */
	setNext(next: Pick<NextBlock, "number" | "timestamp">): void {
		const fork = this.at(next.timestamp);
		if (fork !== this.#loggedFork) {
			this.#loggedFork = fork;
			this.#dependencies.log.info(`next block has the rules of ${fork.name}`, { block: next.number });
		}
		if (this.#schedule.isDue(next)) this.#dependencies.background.run("fork rules", () => this.read());
	}

	/** Reads the rules from the node. If it does not answer, the known rules stay. */
	async read(): Promise<void> {
		const { node, log } = this.#dependencies;
		try {
			const answer = await node.call({ method: "eth_config", params: [] }, ASK_MS);
			const unknown = answer.ok ? this.#schedule.learn(answer.result) : [];
			if (unknown.length === 0 || this.#isToldUnknown) return;
			this.#isToldUnknown = true;
			log.warn("node has rules that this version does not know: using the newest known fork", {
				reason: unknown.join(" "),
			});
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
		}
	}
}
