// What tests of the whole relay share: accounts, signed transactions, and waits for what builders must be sent. It
// reads the builders' own records, and asserts nothing.

import type { RecordedRequest } from "../devnet/builderRecord.ts";
import type { DevBuilder } from "../devnet/devBuilder.ts";
import type { WireEvent, WireStatus } from "./relayClient.ts";
import { seesHead, type TestSystem } from "./systems.ts";
import { signedTransaction, type TestAccount, type TxOptions, testAccount } from "./txFactory.ts";
import { until } from "./until.ts";

export const GWEI = 1_000_000_000n;
export const ETHER = GWEI * GWEI;

/** A signed transaction as its sender has it. */
export interface Signed {
	readonly raw: string;
	readonly hash: string;
	readonly from: string;
}

/** An account of its own for a test, so that tests of one system do not see each other. */
export interface Actor {
	readonly account: TestAccount;
	/** Lower case. */
	readonly address: string;
	/** Signs with the factory's defaults but for `options`; the nonce is 0 unless given. */
	sign(options?: Omit<TxOptions, "by">): Signed;
}

/** What a builder was sent about one transaction. */
export interface Delivery {
	/** Its place among all the builder got. */
	readonly seq: number;
	readonly at: number;
	readonly method: string;
	/** The block it is for; null where it names none. */
	readonly block: number | null;
	/** Of bundles. */
	readonly uuid: string | null;
	/** The call's only param. */
	readonly param: unknown;
	readonly request: RecordedRequest;
}

/** A system, seen by its users. */
export class RelayFixture {
	readonly system: TestSystem;
	#actors = 1_000;

	constructor(system: TestSystem) {
		this.system = system;
	}

	/** A new account with `balance` wei, which nobody has asked the node for yet. */
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

	/** The relay sees it with the next head. */
	async setBalance(address: string, wei: bigint): Promise<void> {
		await this.system.chain.fund([{ address }], wei);
	}

	/** Puts code at a new address, which it answers. */
	async place(code: string): Promise<string> {
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

	/** The status once it has `stage`. */
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

	/** The first event of `type` that `matches`, once it is there. */
	event(tx: Signed, type: string, matches: (event: WireEvent) => boolean = () => true): Promise<WireEvent> {
		return until(`${type} of ${tx.hash}`, async () =>
			(await this.events(tx)).find((event) => event.type === type && matches(event)),
		);
	}

	/** What happened, deliveries aside, as `type` or `type block`. */
	async life(tx: Signed): Promise<readonly string[]> {
		const events = (await this.events(tx)).filter(({ type }) => type !== "delivered");
		return events.map(({ type, block }) => (block === undefined ? type : `${type} ${block}`));
	}

	/** The node's head. */
	async head(): Promise<number> {
		return Number(await this.system.chain.rpc("eth_blockNumber"));
	}

	/**
	 * Mines a block of what is in the node's mempool and nothing of the builders', and waits until the relay has
	 * seen it. Answers its number.
	 */
	async passBlock(): Promise<number> {
		const number = await this.mineUnseen();
		await this.seesHead(number);
		return number;
	}

	/** As {@link passBlock} without waiting for the relay. */
	async mineUnseen(): Promise<number> {
		const { chain } = this.system;
		const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		await chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + chain.slotSeconds }]);
		return Number(head.number) + 1;
	}

	/** Waits until the relay has taken up a head of at least this number. */
	seesHead(number: number): Promise<void> {
		return seesHead(this.system.client, number);
	}

	/** The builder with this name. */
	builder(name: string): DevBuilder {
		const found = this.system.builders.find((one) => one.name === name);
		if (found === undefined) throw new Error(`no builder ${name}`);
		return found;
	}

	/** All that `builder` was sent to have `tx` mined, oldest first. */
	deliveries(builder: DevBuilder, tx: Signed): readonly Delivery[] {
		return builder.requests().flatMap((request) => {
			const read = readDelivery(request);
			return read !== null && read.raw === tx.raw ? [read.delivery] : [];
		});
	}

	/** Blocks that `builder` was sent `tx` for. */
	blocks(builder: DevBuilder, tx: Signed): readonly (number | null)[] {
		return this.deliveries(builder, tx).map(({ block }) => block);
	}

	/** How many orders with `tx` the builder would still put into a block. */
	live(builder: DevBuilder, tx: Signed): number {
		const holds = builder
			.orders()
			.filter(({ transactions }) => transactions.some(({ hash }) => hash === tx.hash));
		return holds.filter(({ state }) => state === "live").length;
	}

	/** All that `builder` was sent to have `tx` forgotten. */
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
	 * Waits until each of `builders` (all unless given) has `tx` for `block` (the next one unless given); one sent as
	 * a private transaction counts for any block.
	 */
	async sent(
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

	/** The pending nonce as the relay tells it. */
	async pendingNonce(actor: { readonly address: string }): Promise<number> {
		return Number(await this.system.client.call("eth_getTransactionCount", [actor.address, "pending"]));
	}

	byHash(tx: Signed): Promise<Record<string, unknown> | null> {
		return this.system.client.call("eth_getTransactionByHash", [tx.hash]) as Promise<Record<
			string,
			unknown
		> | null>;
	}

	/** The node's receipt's status; null while there is none. */
	async receipt(tx: Signed): Promise<{ readonly block: number; readonly ok: boolean; index: number } | null> {
		const receipt = (await this.system.chain.rpc("eth_getTransactionReceipt", [tx.hash])) as Record<
			string,
			string
		> | null;
		if (receipt === null) return null;
		const { blockNumber, status, transactionIndex } = receipt;
		return { block: Number(blockNumber), ok: status === "0x1", index: Number(transactionIndex) };
	}

	/** Puts `tx` into the node's mempool, as anybody may. */
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
