// The fixture of auctions with cheats: a relay in a process of its own, a chain whose last 64
// blocks are the dev builder's, users, and searchers, honest or not. Unless said, each searcher has
// its own network, account and contract, and each cheat its own key.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { createKey } from "../../../shared/ethereum/signatures.ts";
import { type Contract, compileFolder } from "../../devnet/compileContracts.ts";
import { type DevBuilder, startDevBuilder } from "../../devnet/devBuilder.ts";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { builderRow } from "../../devnet/devSystem.ts";
import { PAYS_COINBASE } from "../auctionContracts.ts";
import { EMITS } from "../contracts.ts";
import { metered } from "../eventLoopTime.ts";
import { type RelayProcess, startRelayProcess } from "../processes.ts";
import {
	rawTransaction,
	signedTransaction,
	type TestAccount,
	type TxOptions,
	testAccount,
} from "../txFactory.ts";
import { READ_SIGNATURE, readHeader } from "../typedSignatures.ts";
import { until } from "../until.ts";
import { ask, attackerAddress, HONEST, type Outcome, resultOf, send } from "./wire.ts";

export const ETHER: bigint = 10n ** 18n;
/** The tip of every transaction here, in wei per gas. */
const TIP: bigint = 1_000_000_000n;
const FEE_CAP: bigint = 20_000_000_000n;
/** How a cheat's contract recognises the block, in the order of Cheat.sol. */
export const TELLS = {
	coinbase: 0,
	coinbaseBalance: 1,
	coinbaseCode: 2,
	randomness: 3,
	/** Its owner says so. */
	owner: 4,
	/** The same, with a trace that is too long to be read. */
	ownerUnseen: 5,
	/** The same, and in about every second simulation it pays nothing either. */
	ownerDrawn: 6,
} as const;
/** The fee of a transaction at the top of its block. */
const FIRST_FEE = 10n ** 14n;
const BACKRUN_GAS = 200_000n;
/** The balance of the builder's coinbase at the start. */
const COINBASE_WEI: bigint = 1_000n * ETHER;
const FUNDS = 100n * ETHER;
const EMITTER = `0x${"e1".repeat(20)}`;
const METRICS_TOKEN = "a token of the operator's";
const DEADLINE_MS = 30_000;
/** More blocks than a relay looks at for their coinbases. */
const HISTORY = 70;
const SLOT_SECONDS = 12;

export interface Signed {
	readonly raw: string;
	readonly hash: string;
}

/** A transaction that can be bid on, with the address of its refund. */
export interface Target extends Signed {
	readonly account: TestAccount;
	readonly recipient: string;
}

/** A bidder. */
export interface Searcher {
	readonly account: TestAccount;
	/** Its network address. */
	readonly from: string;
	/** Signs its requests, if it has one. */
	readonly key: string | undefined;
	/** The contract that its backruns call. */
	readonly contract: string;
	nonce: number;
}

/** A bundle in one block, as its owner sees it. */
interface ToldBlock {
	readonly blockNumber: number;
	readonly stage: string;
	readonly reason: string | null;
	/** Wei. */
	readonly bid: string | null;
	readonly paid: string | null;
}

/** A lying backrun: how it recognises the block, by which values, and what it does there. */
interface Lie {
	readonly tell?: number;
	readonly addresses?: readonly string[];
	readonly values?: readonly bigint[];
	readonly reverts?: boolean;
	readonly gas?: bigint;
}

interface CheatAuctionOptions {
	readonly env?: Readonly<Record<string, string>>;
	/** Whether the relay's event loop is measured, see eventLoopTime.ts. */
	readonly isMetered?: boolean;
}

/** The running system. */
export class CheatAuction {
	readonly chain: DevChain;
	readonly builder: DevBuilder;
	readonly relay: RelayProcess;
	readonly cheat: Contract;
	readonly #folder: string;
	#accounts = 700_000;
	#networks = 0;

	constructor(
		{ chain, builder, relay }: Pick<CheatAuction, "chain" | "builder" | "relay">,
		cheat: Contract,
		folder: string,
	) {
		this.chain = chain;
		this.builder = builder;
		this.relay = relay;
		this.cheat = cheat;
		this.#folder = folder;
	}

	/** Submits a user's transaction on /fast, and waits until searchers see it. */
	async target(recipient = testAccount(this.#accounts++).address): Promise<Target> {
		const by = await this.account();
		const tx = signed({ to: EMITTER, by });
		const call = {
			url: `${this.relay.url}/fast?refundRecipient=${recipient}`,
			from: HONEST,
			deadlineMs: DEADLINE_MS,
		};
		await resultOf("eth_sendRawTransaction", [tx.raw], call);
		await until(`${tx.hash} shown`, async () => (await this.relay.client.status(tx.hash)).shared);
		return { ...tx, account: by, recipient };
	}

	/** An address in a network (/24) of its own. */
	network(): string {
		this.#networks += 1;
		return `127.${10 + (this.#networks >> 8)}.${this.#networks & 255}.1`;
	}

	/** A new honest searcher, whose backruns pay their whole value to the coinbase. */
	async honest(): Promise<Searcher> {
		const contract = await this.place(PAYS_COINBASE);
		return { account: await this.account(), from: this.network(), key: undefined, contract, nonce: 0 };
	}

	/** A new cheat at `from`. */
	async cheater(from = this.network()): Promise<Searcher> {
		const contract = await this.place(this.cheat.runtime);
		return { account: await this.account(), from, key: createKey(), contract, nonce: 0 };
	}

	/** So many new cheats, each at `from` if it is given. */
	async cheaters(count: number, from?: string): Promise<readonly Searcher[]> {
		return Promise.all(Array.from({ length: count }, () => this.cheater(from)));
	}

	/** A backrun that sends `value` wei to the searcher's contract. */
	backrun(
		{ account, contract, nonce }: Searcher,
		value: bigint,
		data = "0x",
		gasLimit = BACKRUN_GAS,
	): Signed {
		return signed({ by: account, nonce, to: contract, value, data, gasLimit });
	}

	/**
	 * A backrun that pays `value` wei where it sees no block, by default one that was named: see
	 * {@link nameBlock}. Else 1 wei.
	 */
	lyingBackrun(
		cheat: Searcher,
		value: bigint,
		{ tell = TELLS.owner, addresses = [], values = [], reverts = false, gas = BACKRUN_GAS }: Lie = {},
	): Signed {
		const data = this.cheat.abi.encodeFunctionData("run", [tell, addresses, values, reverts]);
		return this.backrun(cheat, value, data, gas);
	}

	/**
	 * One owner tells the contracts of the cheats at the top of the next block that this is the
	 * block.
	 */
	async nameBlock(cheats: readonly Searcher[]): Promise<void> {
		const owner = await this.account(BigInt(cheats.length) * FUNDS);
		const data = this.cheat.abi.encodeFunctionData("name");
		const named = cheats.map(({ contract: to }, nonce) => {
			const fees = { maxFeePerGas: FIRST_FEE, maxPriorityFeePerGas: FIRST_FEE };
			return signed({ by: owner, nonce, to, data, gasLimit: 60_000, ...fees }).raw;
		});
		await this.sendToBuilder(named);
	}

	/** Reads how many transactions of the searcher's are in the chain. */
	async readNonce(searcher: Searcher): Promise<void> {
		const { address } = searcher.account;
		searcher.nonce = Number(await this.chain.rpc("eth_getTransactionCount", [address, "latest"]));
	}

	/** Bids for the next block, and returns the outcome, with the bundle's hash as the result. */
	bid(searcher: Searcher, target: Signed, backrun: Signed, uuid?: string): Promise<Outcome> {
		const named = uuid === undefined ? {} : { replacementUuid: uuid };
		return this.#ask(searcher, "eth_sendBundle", { txs: [target.hash, backrun.raw], ...named });
	}

	/** Bids, and returns the bundle's hash. Throws if the bid is refused. */
	async accepted(searcher: Searcher, target: Signed, backrun: Signed, uuid?: string): Promise<string> {
		const { result, error } = await this.bid(searcher, target, backrun, uuid);
		if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
		return String(result);
	}

	/** Takes back the searcher's bid with this uuid. */
	async withdraw(searcher: Searcher, uuid: string): Promise<void> {
		const { error } = await this.#ask(searcher, "eth_cancelBundle", { replacementUuid: uuid });
		if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
	}

	#ask({ from, key }: Searcher, method: string, param: object): Promise<Outcome> {
		const call = { url: this.relay.url, from, deadlineMs: DEADLINE_MS };
		return ask(method, [param], { ...call, ...(key === undefined ? {} : { key }) });
	}

	/** Has the next block built, and waits until the relay has handled it. */
	async nextBlock(): Promise<{ readonly number: number; readonly transactions: readonly string[] }> {
		const { number, transactions } = await this.builder.buildBlock();
		await until(`the relay sees block ${number}`, async () => (await this.#head()) >= number);
		return { number, transactions };
	}

	/**
	 * A block with another coinbase, of these transactions alone, past the builder; waits until the
	 * relay has handled it.
	 */
	async blockBy(
		coinbase: string,
		txs: readonly string[],
	): Promise<{ readonly transactions: readonly string[] }> {
		await this.chain.rpc("anvil_setCoinbase", [coinbase]);
		for (const raw of txs) await this.chain.rpc("eth_sendRawTransaction", [raw]);
		await this.emptyBlock();
		return (await this.chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
			transactions: readonly string[];
		};
	}

	/** The sender of a target uses its nonce for something else, past the relay. */
	async replaceAtBuilder({ account: by }: Target): Promise<void> {
		const fees = { maxFeePerGas: FIRST_FEE, maxPriorityFeePerGas: FIRST_FEE };
		await this.sendToBuilder([signed({ by, nonce: 0, ...fees }).raw]);
	}

	/** Mines a block with nothing of ours, and waits until the relay has handled it. */
	async emptyBlock(): Promise<void> {
		const { number } = await this.head();
		await this.chain.rpc("evm_mine", []);
		await until("the relay sees the block", async () => (await this.#head()) > number);
	}

	/** Waits until the builder has `backrun` behind `target` for the next block. */
	async behind(target: Signed, backrun: Signed): Promise<void> {
		await until(`${backrun.hash} with the builder`, () => this.backrunsOn(target).includes(backrun.hash));
	}

	/** Waits until the builder has these backruns behind `target`, and no others. */
	async onlyBehind(target: Signed, backruns: readonly Signed[]): Promise<void> {
		const expected = backruns.map(({ hash }) => hash).sort();
		await until(`${backruns.length} bids with the builder`, () =>
			isDeepStrictEqual([...this.backrunsOn(target)].sort(), expected),
		);
	}

	/** Hashes of the backruns that the builder has behind `target`. */
	backrunsOn({ hash }: Signed): readonly string[] {
		const orders = this.builder.liveOrders(hash);
		return orders.flatMap(({ transactions }) => transactions.slice(1).map((one) => one.hash));
	}

	/** The owner's report of a bundle in its last block so far. */
	async told(searcher: Searcher, bundle: string): Promise<ToldBlock> {
		const { from, key } = searcher;
		const call = { url: `${this.relay.url}/bundle/${bundle}`, from, deadlineMs: DEADLINE_MS };
		const headers: Record<string, string> =
			key === undefined ? {} : { [READ_SIGNATURE]: await readHeader(key) };
		const { body } = await send({ ...call, headers });
		const last = (JSON.parse(body) as { blocks: readonly ToldBlock[] }).blocks.at(-1);
		if (last === undefined) throw new Error(`nothing is reported of ${bundle}`);
		return last;
	}

	/** Waits until the owner's report of the bundle has these values in its last block. */
	async becomes(searcher: Searcher, bundle: string, expected: Partial<ToldBlock>): Promise<void> {
		let last: ToldBlock | undefined;
		const isTold = async () => {
			last = await this.told(searcher, bundle);
			return isDeepStrictEqual({ ...last, ...expected }, last);
		};
		await until("the owner is notified", isTold, DEADLINE_MS).catch(() =>
			assert.deepEqual(last, { ...last, ...expected }),
		);
	}

	/** Whether who sent the bundle has a record at a builder. */
	async hasRecord(searcher: Searcher, bundle: string): Promise<boolean> {
		const { blockNumber } = await this.told(searcher, bundle);
		const param = { bundleHash: bundle, blockNumber: `0x${blockNumber.toString(16)}` };
		const { result } = await this.#ask(searcher, "flashbots_getBundleStatsV2", param);
		return (result as { readonly isHighPriority: boolean }).isHighPriority;
	}

	/** Sends raw transactions for the next block to the builder directly. */
	async sendToBuilder(txs: readonly string[]): Promise<void> {
		const blockNumber = `0x${((await this.head()).number + 1).toString(16)}`;
		const body = JSON.stringify({
			...{ jsonrpc: "2.0", id: 1, method: "eth_sendBundle" },
			params: [{ txs, blockNumber }],
		});
		const call = {
			url: this.builder.url,
			from: attackerAddress(),
			key: createKey(),
			deadlineMs: DEADLINE_MS,
		};
		const { body: answer } = await send({ ...call, body });
		if (!answer.includes('"result"')) throw new Error(`the builder says ${answer}`);
	}

	/** The chain's head. */
	async head(): Promise<{ readonly number: number; readonly hash: string; readonly timestamp: number }> {
		const block = (await this.chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		return {
			number: Number(block.number),
			hash: String(block.hash),
			timestamp: Number(block.timestamp),
		};
	}

	async balance(address: string): Promise<bigint> {
		return BigInt(String(await this.chain.rpc("eth_getBalance", [address, "latest"])));
	}

	/** Puts code at a new address, and returns the address. */
	async place(code: string): Promise<string> {
		const { address } = testAccount(this.#accounts++);
		await this.chain.rpc("anvil_setCode", [address, code]);
		return address;
	}

	async stop(): Promise<void> {
		await this.relay.kill();
		await this.builder.stop();
		await this.chain.stop();
		rmSync(this.#folder, { recursive: true, force: true });
	}

	async #head(): Promise<number> {
		const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
		const url = `${this.relay.url}/metrics`;
		const { body } = await send({ url, from: HONEST, headers, deadlineMs: DEADLINE_MS });
		return Number(/^relay_head_number (\d+)$/m.exec(body)?.[1] ?? -1);
	}

	/** A new account with funds. */
	async account(wei = FUNDS): Promise<TestAccount> {
		const account = testAccount(this.#accounts++);
		await this.chain.fund([account], wei);
		return account;
	}
}

/** Starts the system. */
export async function startCheatAuction({ env, isMetered }: CheatAuctionOptions = {}): Promise<CheatAuction> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	const contracts = compileFolder(join(dirname(fileURLToPath(import.meta.url)), "contracts"));
	const genesisTimestamp = Math.floor(Date.now() / 1000) - (HISTORY + 1) * SLOT_SECONDS;
	const chain = await startDevChain({ genesisTimestamp, slotSeconds: SLOT_SECONDS });
	const builder = await startDevBuilder({ chain, name: "dev", manual: true });
	await chain.fund([{ address: builder.coinbase }], COINBASE_WEI);
	// The coinbase is a contract wallet (EIP-7702) that accepts ether.
	await chain.rpc("anvil_setCode", [EMITTER, EMITS]);
	await chain.rpc("anvil_setCode", [builder.coinbase, `0xef0100${EMITTER.slice(2)}`]);
	await chain.rpc("anvil_setCoinbase", [builder.coinbase]);
	await chain.rpc("anvil_mine", [`0x${HISTORY.toString(16)}`, `0x${SLOT_SECONDS.toString(16)}`]);
	const relay = await startRelayProcess({
		...(isMetered === true ? metered("relay/main.ts") : {}),
		env: {
			PORT: "0",
			HOST: "127.0.0.1",
			ETH_RPC_URL: chain.url,
			HEAD_POLL_MS: "100",
			BUILDERS: JSON.stringify([builderRow(builder)]),
			DATA_DIR: folder,
			MAX_HEAD_AGE_S: "86400",
			METRICS_TOKEN,
			...env,
		},
	});
	return new CheatAuction({ chain, builder, relay }, contracts("Cheat"), folder);
}

function signed(options: TxOptions): Signed {
	const whole = { maxFeePerGas: FEE_CAP, maxPriorityFeePerGas: TIP, ...options };
	return { raw: `0x${rawTransaction(whole).toString("hex")}`, hash: signedTransaction(whole).hash };
}
