// The fixture of tests of the whole relay: accounts, signed transactions, and waits for what
// builders must receive. It reads the builders' own records, and asserts nothing.

import type { RecordedRequest } from "../devnet/builderRecord.ts";
import type { DevBuilder } from "../devnet/devBuilder.ts";
import type { WireEvent, WireStatus } from "./relayClient.ts";
import type { TestSystem } from "./systems.ts";
import { signedTransaction, type TestAccount, type TxOptions, testAccount } from "./txFactory.ts";
import { until } from "./until.ts";

export const GWEI = 1_000_000_000n;
export const ETHER = GWEI * GWEI;

/** A signed transaction. */
export interface Signed {
	readonly raw: string;
	readonly hash: string;
	readonly from: string;
}

/** An account that only one test uses, so that tests of one system do not disturb each other. */
export interface Actor {
	readonly account: TestAccount;
	/** Lower case. */
	readonly address: string;
	/** Signs a transaction with `options`; default nonce 0, other defaults as in txFactory.ts. */
	sign(options?: Omit<TxOptions, "by">): Signed;
}

/** A request that gives a builder one transaction. */
export interface Delivery {
	/** Its place among all requests to the builder. */
	readonly seq: number;
	readonly at: number;
	readonly method: string;
	/** The block it is for; null for any block. */
	readonly block: number | null;
	/** Null unless it is a bundle. */
	readonly uuid: string | null;
	/** The call's only param. */
	readonly param: unknown;
	readonly request: RecordedRequest;
}

/** A running system, as its users see it. */
export class RelayFixture {
	readonly system: TestSystem;
	#actors = 1_000;

	constructor(system: TestSystem) {
		this.system = system;
	}

	/** A new account with `balance` wei, which no part of the system has read yet. */
	async actor(balance: bigint = 100n * ETHER): Promise<Actor> {
		this.#actors += 1;
		const account = testAccount(this.#actors);
		await this.setBalance(account.address, balance);
		const sign = (options: Omit<TxOptions, "by"> = {}): Signed => {
			const tx = signedTransaction({ ...options, by: account });
			return { raw: `0x${Buffer.from(tx.raw).toString("hex")}`, hash: tx.hash, from: account.address };
		};
		return { account, address: account.address, sign };
	}

	/** Sets a balance at the node; the relay sees it with the next head. */
	async setBalance(address: string, wei: bigint): Promise<void> {
		await this.system.chain.fund([{ address }], wei);
	}

	/** Puts code at a new address, and returns the address. */
	async placeCode(code: string): Promise<string> {
		this.#actors += 1;
		const { address } = testAccount(this.#actors);
		await this.system.chain.rpc("anvil_setCode", [address, code]);
		return address;
	}

	/** Submits each on `path`, one after the other, and checks the hash of the answer. */
	async submit(path: string, ...transactions: readonly Signed[]): Promise<void> {
		for (const { raw, hash } of transactions) {
			const answer = await this.system.client.send(raw, path);
			if (answer !== hash) throw new Error(`${path} answered ${answer} for ${hash}`);
		}
	}

	status(tx: Signed): Promise<WireStatus> {
		return this.system.client.status(tx.hash);
	}

	/** Waits until the transaction has `stage`, and returns its status. */
	async reaches(tx: Signed, stage: string): Promise<WireStatus> {
		let last: WireStatus | undefined;
		return until(`${tx.hash} at ${stage}`, async () => {
			last = await this.status(tx);
			return last.stage === stage && last;
		}).catch((thrown: Error) => {
			throw new Error(`${thrown.message}; it is ${last?.stage}: ${JSON.stringify(last?.simulationError)}`);
		});
	}

	events(tx: Signed): Promise<readonly WireEvent[]> {
		return this.system.client.events(tx.hash);
	}

	/** Waits for an event of `type` that `matches`, and returns the first. */
	event(tx: Signed, type: string, matches: (event: WireEvent) => boolean = () => true): Promise<WireEvent> {
		return until(`${type} of ${tx.hash}`, async () =>
			(await this.events(tx)).find((event) => event.type === type && matches(event)),
		);
	}

	/** The events of `tx` without deliveries, as `type` or `type block`. */
	async life(tx: Signed): Promise<readonly string[]> {
		const events = (await this.events(tx)).filter(({ type }) => type !== "delivered");
		return events.map(({ type, block }) => (block === undefined ? type : `${type} ${block}`));
	}

	/** The node's head. */
	async head(): Promise<number> {
		return Number(await this.system.chain.rpc("eth_blockNumber"));
	}

	/**
	 * Mines a block from the node's public mempool, without the builders' orders, and waits until the
	 * relay has seen it. Returns its number.
	 */
	async passBlock(): Promise<number> {
		const number = await this.mineUnseen();
		await this.seesHead(number);
		return number;
	}

	/** Like {@link passBlock}, without waiting for the relay. */
	async mineUnseen(): Promise<number> {
		const { chain } = this.system;
		const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		await chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + chain.slotSeconds }]);
		return Number(head.number) + 1;
	}

	/** Waits until the relay's head has at least this number. */
	seesHead(number: number): Promise<void> {
		return this.system.seesHead(number);
	}

	/** The builder with this name. */
	builder(name: string): DevBuilder {
		const found = this.system.builders.find((one) => one.name === name);
		if (found === undefined) throw new Error(`no builder ${name}`);
		return found;
	}

	/** The requests that gave `builder` the transaction `tx`, oldest first. */
	deliveries(builder: DevBuilder, tx: Signed): readonly Delivery[] {
		return builder.requests().flatMap((request) => {
			const read = readDelivery(request);
			return read !== null && read.raw === tx.raw ? [read.delivery] : [];
		});
	}

	/** The blocks for which `builder` received `tx`. */
	blocks(builder: DevBuilder, tx: Signed): readonly (number | null)[] {
		return this.deliveries(builder, tx).map(({ block }) => block);
	}

	/** The number of orders with `tx` that the builder would still put into a block. */
	liveOrders(builder: DevBuilder, tx: Signed): number {
		return builder.liveOrders(tx.hash).length;
	}

	/** The requests that told `builder` to cancel `tx`. */
	cancels(builder: DevBuilder, tx: Signed): readonly RecordedRequest[] {
		const uuids = this.deliveries(builder, tx).map(({ uuid }) => uuid);
		return builder.requests(({ method, params: [param] }) => {
			const { replacementUuid, txHash, txs } = fields(param);
			if (method === "eth_cancelPrivateTransaction") return txHash === tx.hash;
			const cancels = method === "eth_cancelBundle" || (Array.isArray(txs) && txs.length === 0);
			return cancels && typeof replacementUuid === "string" && uuids.includes(replacementUuid);
		});
	}

	/**
	 * Waits until each of `builders` (default all) has received `tx` for `block` (default the next
	 * one). A private transaction, which names no block, counts for any.
	 */
	async waitUntilSent(
		tx: Signed,
		options: { readonly block?: number; readonly builders?: readonly string[] } = {},
	): Promise<void> {
		const block = options.block ?? (await this.head()) + 1;
		const builders = options.builders?.map((name) => this.builder(name)) ?? this.system.builders;
		for (const builder of builders) {
			await until(`${tx.hash} at ${builder.name} for block ${block}`, () =>
				this.blocks(builder, tx).some((sent) => sent === null || sent === block),
			);
		}
	}

	/** The pending nonce that the relay returns. */
	async pendingNonce(actor: { readonly address: string }): Promise<number> {
		return Number(await this.system.client.call("eth_getTransactionCount", [actor.address, "pending"]));
	}

	byHash(tx: Signed): Promise<Record<string, unknown> | null> {
		return this.system.client.call("eth_getTransactionByHash", [tx.hash]) as Promise<Record<
			string,
			unknown
		> | null>;
	}

	/** The node's receipt of `tx`, or null. */
	async receipt(tx: Signed): Promise<{ readonly block: number; readonly ok: boolean; index: number } | null> {
		const receipt = (await this.system.chain.rpc("eth_getTransactionReceipt", [tx.hash])) as Record<
			string,
			string
		> | null;
		if (receipt === null) return null;
		const { blockNumber, status, transactionIndex } = receipt;
		return { block: Number(blockNumber), ok: status === "0x1", index: Number(transactionIndex) };
	}

	/**
	 * Waits until the relay that is asked no longer follows a block with `tx`. An edge follows the
	 * chain by itself.
	 */
	async leftBlock(tx: Signed): Promise<void> {
		await until(`${tx.hash} is in no block`, async () => {
			const { result, error } = await this.system.client.ask("eth_getTransactionReceipt", [tx.hash]);
			return error === undefined && result === null;
		});
	}

	/** Sends `tx` to the node's public mempool. */
	async publish(tx: Signed): Promise<void> {
		await this.system.chain.rpc("eth_sendRawTransaction", [tx.raw]);
	}
}

function readDelivery(request: RecordedRequest): { raw: unknown; delivery: Delivery } | null {
	const { method, params, seq, at } = request;
	const [param] = params;
	const { txs, body, blockNumber, inclusion, replacementUuid, tx } = fields(param);
	const uuid = typeof replacementUuid === "string" ? replacementUuid : null;
	const delivery = (raw: unknown, block: unknown) => ({
		raw,
		delivery: { seq, at, method, block: block === null ? null : Number(block), uuid, param, request },
	});
	if (method === "eth_sendBundle") {
		return Array.isArray(txs) && txs.length > 0 ? delivery(txs[0], blockNumber) : null;
	}
	if (method === "mev_sendBundle" && Array.isArray(body)) {
		return delivery(fields(body[0]).tx, fields(inclusion).block);
	}
	if (/^eth_send(Private|)(Raw|)Transaction$/.test(method)) return delivery(tx ?? param, null);
	return null;
}

function fields(value: unknown): Record<string, unknown> {
	return typeof value === "object" && value !== null ? { ...value } : {};
}
