// Waits until the relay, its builders and the node agree with the model, and throws what still
// differs at the deadline. It changes nothing.

import { figureOf, type RelayClient, type WireAnswer, type WireStatus } from "../support/relayClient.ts";
import type { TestSystem } from "../support/systems.ts";
import { until } from "../support/until.ts";
import type { BuilderWatch, SendRules } from "./builders.ts";
import type { ChainReader } from "./chain.ts";
import { type ControlModel, type ModelTx, short } from "./model.ts";

export interface SettlingDependencies {
	readonly model: ControlModel;
	readonly chain: ChainReader;
	readonly sends: SendRules;
	/** The addresses of the accounts, by index. */
	readonly addresses: readonly string[];
}

export class Settling {
	readonly #client: RelayClient;
	readonly #settleMs: number;
	readonly #dependencies: SettlingDependencies;
	readonly #described = new Map<string, string>();

	constructor(
		options: { readonly system: TestSystem; readonly settleMs: number },
		dependencies: SettlingDependencies,
	) {
		this.#client = options.system.client;
		this.#settleMs = options.settleMs;
		this.#dependencies = dependencies;
	}

	/** Resolves once all agree. Throws what differs when the time is up. */
	async agree(): Promise<void> {
		let last: readonly string[] = [];
		const isSettled = async (): Promise<boolean> => {
			last = await this.#differences();
			return last.length === 0;
		};
		try {
			await until("agreement", isSettled, this.#settleMs);
		} catch (thrown) {
			throw last.length === 0 ? thrown : new Error([...last, ...(await this.#lives(last.join()))].join("\n"));
		}
	}

	/**
	 * Resolves once, for each transaction that its user ended, the events show that all builders that
	 * got a cancel accepted it.
	 */
	async acknowledged(watches: readonly BuilderWatch[]): Promise<void> {
		const { model } = this.#dependencies;
		// The events of a transaction that searchers know name no builder if something hidden stood
		// before it.
		const open = model.all().filter((tx) => !tx.wasShown && !tx.expired);
		for (const { hash } of open.filter((tx) => model.isEndedByUser(tx))) {
			const names = watches.filter((watch) => watch.cancels(hash).length > 0).map(({ name }) => name);
			await until(`${names.join()} acknowledged that ${hash} is to be forgotten`, async () => {
				const events = await this.#client.events(hash);
				const acknowledged = events.filter(({ kind, answer }) => kind === "cancel" && answer === "accepted");
				return names.every((name) => acknowledged.some(({ builder }) => builder === name));
			});
		}
	}

	/** The events of those that are named in `text`. */
	async #lives(text: string): Promise<readonly string[]> {
		const named = this.#dependencies.model.all().filter(({ hash }) => text.includes(hash));
		return Promise.all(
			named.map(async ({ hash }) => {
				const events = await this.#client.events(hash);
				const lines = events.map(({ type, block, reason, builder, answer }) =>
					[type, block, reason, builder, answer].filter((one) => one !== undefined).join(" "),
				);
				return `${hash} has lived through: ${lines.join(", ")}`;
			}),
		);
	}

	/** The changes by the model since the last call: in words, and as stages left for others. */
	describe(): { readonly text: string; readonly changes: readonly string[] } {
		const { model } = this.#dependencies;
		const { head, nonces } = model.chain;
		const changed = model.all().flatMap((tx) => {
			const was = this.#described.get(tx.hash);
			const stage = model.stage(tx);
			this.#described.set(tx.hash, stage);
			return was === stage
				? []
				: [{ text: `${short(tx)} /${tx.path} ${stage}`, change: `${was ?? "new"} -> ${stage}` }];
		});
		const text = changed.map((one) => one.text).join(", ");
		return {
			text: `head ${head}, nonces ${nonces.join(" ")}, gate ${model.gateOpen ? "open" : "shut"}; ${text}`,
			changes: changed.map(({ change }) => change),
		};
	}

	/** The cheap questions first: while these differ the others need not be asked. */
	async #differences(): Promise<readonly string[]> {
		const { model, sends } = this.#dependencies;
		const head = await figureOf(this.#client.url, "relay_head_number");
		if (head < model.chain.head) return [`the relay is at head ${head}, the chain at ${model.chain.head}`];
		const statuses = await Promise.all(
			model.all().map(async (tx) => statusDifferences(model, tx, await this.#client.status(tx.hash))),
		);
		if (statuses.flat().length > 0) return statuses.flat();
		// Read after the stages: deliveries of what is shown as BROADCAST are in the lanes by then.
		const depth = await figureOf(this.#client.url, "relay_lane_depth");
		if (depth > 0) return [`${depth} deliveries are under way`];
		sends.now();
		const lacks = sends.lacks(model);
		return lacks.length > 0 ? lacks : this.#readDifferences();
	}

	/** The differences in eth_getTransactionByHash and the pending nonces. */
	async #readDifferences(): Promise<readonly string[]> {
		const { model, chain, addresses } = this.#dependencies;
		const all = model.all();
		const ended = all.filter((tx) => !model.isPending(tx) && model.mined(tx) === undefined);
		const [results, counts, known] = await Promise.all([
			this.#reads([
				...all.map(({ hash }) => ["eth_getTransactionByHash", [hash]] as const),
				...addresses.flatMap((address) => [
					["eth_getTransactionCount", [address, "pending"]] as const,
					["eth_getTransactionCount", [address, "latest"]] as const,
				]),
			]),
			chain.pendingCounts(),
			chain.knows(ended.map(({ hash }) => hash)),
		]);
		const byHash = all.flatMap((tx, i) => {
			const shown = readBlockHash(results[i]);
			// An ended transaction may still stand in the node's own mempool, if somebody published it.
			const expected = model.isPending(tx) || known.has(tx.hash) ? "pending" : "null";
			const wanted = model.chain.mined.get(tx.hash)?.blockHash ?? expected;
			return shown === wanted ? [] : [`${tx.hash} by its hash is ${shown}, expected ${wanted}`];
		});
		const nonces = addresses.flatMap((_, account) => {
			const at = all.length + 2 * account;
			const pending = model.pendingNonce(account, counts[account] ?? 0);
			const latest = model.chain.nonces[account];
			const shown = [Number(results[at]), Number(results[at + 1])];
			if (shown[0] === pending && shown[1] === latest) return [];
			return [`account ${account} has the nonces ${shown.join(", ")}, expected ${pending}, ${latest}`];
		});
		return [...byHash, ...nonces];
	}

	/** The results of many reads in one batch. */
	async #reads(calls: readonly (readonly [string, readonly unknown[]])[]): Promise<unknown[]> {
		const response = await fetch(this.#client.url, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify(calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params }))),
		});
		const answers = (await response.json()) as WireAnswer[];
		return answers.map(({ result, error }, i) => {
			if (error !== undefined) throw new Error(`${calls[i]?.[0]}: ${error.code} ${error.message}`);
			return result;
		});
	}
}

function statusDifferences(model: ControlModel, tx: ModelTx, shown: WireStatus): readonly string[] {
	const status = model.status(tx);
	const stage = stageOf(model, tx, shown);
	const isShown = status !== "UNKNOWN";
	const expected = {
		status,
		stage,
		// A soft cancel goes nowhere, whatever its path.
		shared: tx.isShown && !tx.cancels,
		fastMode: tx.path === "fast",
		nonce: isShown ? String(tx.nonce) : "",
		received: isShown,
		...(stage === "SIMULATION_FAILED" ? { failure: "EXECUTION_REVERTED" } : {}),
	};
	const { transaction, rpc_timestamp, simulationError } = shown;
	const found = {
		status: shown.status,
		stage: shown.stage,
		shared: shown.shared,
		fastMode: shown.fastMode,
		nonce: transaction.nonce,
		received: rpc_timestamp !== null,
		...(stage === "SIMULATION_FAILED" ? { failure: simulationError?.code } : {}),
	};
	const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
	return a === b ? [] : [`${tx.hash} on /${tx.path} is ${a}, expected ${b}`];
}

/**
 * The expected stage. A transaction that has outlived its life, and whose nonce is used, may have
 * ended by either.
 */
function stageOf(model: ControlModel, tx: ModelTx, { stage }: WireStatus): string {
	const expected = model.stage(tx);
	return expected === "DROPPED" && stage === "EXPIRED" && model.isOver(tx) ? stage : expected;
}

/** The block's hash, or whether it is pending or not there. */
function readBlockHash(result: unknown): string {
	if (result === null) return "null";
	return String((result as { blockHash: string | null }).blockHash ?? "pending");
}
