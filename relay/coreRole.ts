// Makes this process the core once it gets the store, and releases the store on shutdown. While
// another process has the store, this one serves as an edge.

import type { Clock } from "../shared/clock.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import { type Component, onStop, StoppedError, sequence } from "../shared/lifecycle.ts";
import { type Logger, safeError } from "../shared/log.ts";
import type { CoreModules, EdgeModules } from "./modules.ts";

export interface CoreRoleDependencies {
	readonly edge: EdgeModules;
	/**
	 * Opens the store. `onWait` is called while another process has it or the database does not
	 * answer.
	 */
	readonly open: (onWait: () => Promise<void>, stopped: AbortSignal) => Promise<SharedStore>;
	readonly make: (kv: SharedStore) => Promise<CoreModules>;
	/** Called when this process can no longer become the core: it must end. */
	readonly onLost: () => void;
	readonly clock: Clock;
	readonly log: Logger;
}

/** How long the core waits for its first head before it accepts calls, in ms. */
const FIRST_HEAD_MS = 1_000;

export class CoreRole implements Component {
	readonly name = "core";
	readonly #dependencies: CoreRoleDependencies;
	readonly #stopping = new AbortController();
	#modules: CoreModules | null = null;
	#component: Component | null = null;
	#becoming: Promise<void> = Promise.resolve();

	constructor(dependencies: CoreRoleDependencies) {
		this.#dependencies = dependencies;
	}

	/** The core's modules; null while this process is not the core. */
	get modules(): CoreModules | null {
		return this.#modules;
	}

	/**
	 * Resolves when this process is the core, or has to wait for the store. Rejects with the error
	 * of `open` if that fails without a wait.
	 */
	start(): Promise<void> {
		return new Promise((resolve, reject) => {
			let isWaiting = false;
			const onWait = async (): Promise<void> => {
				isWaiting = true;
				resolve();
			};
			this.#becoming = this.#become(onWait).then(resolve, (thrown: unknown) => {
				if (!isWaiting) reject(thrown);
				else if (!(thrown instanceof StoppedError) && !this.#stopping.signal.aborted) this.#failed(thrown);
			});
		});
	}

	/** Releases the store once the accepted calls are answered. May be called twice. */
	async stop(): Promise<void> {
		this.#stopping.abort();
		await this.#becoming;
		const modules = this.#modules;
		if (modules === null) return;
		const { edge, log } = this.#dependencies;
		if (modules.edges !== null) {
			modules.receipts.close();
			await Promise.all([edge.core.leave(), modules.edges.stop()]);
		}
		await this.#component?.stop();
		this.#modules = null;
		if (modules.kv.term !== null) log.info("no longer the core", { term: modules.kv.term.number });
	}

	async #become(onWait: () => Promise<void>): Promise<void> {
		const { open, make, edge, clock, log } = this.#dependencies;
		const kv = await open(onWait, this.#stopping.signal);
		edge.core.prepare(kv.term);
		let component: Component | null = null;
		try {
			const modules = await make(kv);
			component = sequence("core", coreComponents(modules, edge, log), { log, clock });
			await component.start();
			this.#component = component;
			this.#modules = modules;
			if (edge.tip.head() !== null) {
				const worked = edge.tip.following({ clock, ms: FIRST_HEAD_MS });
				edge.heads.again();
				await worked;
			}
			await edge.core.take(modules.decides);
			if (kv.term !== null) log.info("became the core", { term: kv.term.number });
		} catch (thrown) {
			if (this.#modules === null && component === null) await kv.close();
			throw thrown;
		}
	}

	#failed(thrown: unknown): void {
		this.#dependencies.log.error("could not become the core", { fault: safeError(thrown) });
		this.#dependencies.onLost();
	}
}

/** The components in start order; they stop in reverse order. */
function coreComponents(
	modules: CoreModules,
	{ background }: EdgeModules,
	log: Logger,
): readonly Component[] {
	const {
		kv,
		transactions,
		fanout,
		market,
		runner,
		simulations,
		blobProofs,
		work,
		publicPool,
		canaries,
		blockLoop,
		history,
		uptime,
	} = modules;
	return [
		onStop("store", () => kv.close()),
		blobProofs,
		work,
		uptime,
		onStop("records", () => transactions.keeper.flush(true)),
		onStop("builders", () => fanout.close()),
		{
			name: "pool",
			async start() {
				await transactions.load();
				await market.load();
				log.info("pending transactions restored", { count: transactions.pool.size });
			},
			async stop() {
				canaries?.stop();
				runner.stop();
				market.stop();
				transactions.keeper.stop();
				await simulations.stop();
				await background.join();
			},
		},
		publicPool,
		onStop("blocks", async () => blockLoop.stop()),
		history,
	];
}
