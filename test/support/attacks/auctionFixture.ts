// The fixture of auctions with cheats: a relay in a process of its own, a chain whose last 64 blocks are the dev builder's,
// users, honest searchers at 127.0.0.1, and cheats at addresses of their own, each with its own key, account and contract.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createKey } from "../../../shared/ethereum/signatures.ts";
import { type Contract, compileFolder } from "../../devnet/compileContracts.ts";
import { type DevBuilder, startDevBuilder } from "../../devnet/devBuilder.ts";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
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
import { until } from "../until.ts";
import { ask, attackerAddress, HONEST, type Outcome, resultOf, send } from "./wire.ts";

export const ETHER: bigint = 10n ** 18n;
/** The tip of every transaction here, in wei per gas. */
export const TIP: bigint = 1_000_000_000n;
export const FEE_CAP: bigint = 20_000_000_000n;
/** How a cheat's contract tells a block: its owner says so; the same, with a trace that is too long to be read. */
const OWNER = 12;
export const OWNER_UNSEEN = 13;
/** The gas limit of a backrun. */
export const BACKRUN_GAS = 200_000n;
/** The balance of the builder's coinbase at the start. */
export const COINBASE_WEI: bigint = 1_000n * ETHER;
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

/** A bidder: an account, and for cheats a key and a contract. */
export interface Searcher {
	readonly account: TestAccount;
	readonly from: string;
	readonly key: string | undefined;
	/** The contract that its backruns call. */
	readonly contract: string;
	nonce: number;
}

/** The status of a bundle, as its owner sees it. */
interface ToldBundle {
	readonly blocks: readonly {
		readonly blockNumber: number;
		readonly stage: string;
		readonly bid: string | null;
	}[];
	/** Absent if the searcher is not barred. */
	readonly barred?: unknown;
	readonly provenUpTo?: string;
	readonly spentUntil?: number | null;
}

/** How a bid is made: with a `replacementUuid`, or as a web page of `origin` sends it. */
interface BidOptions {
	readonly uuid?: string;
	readonly origin?: string;
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
	readonly share: Contract;
	readonly #folder: string;
	#accounts = 700_000;
	#cheats = 0;

	constructor(
		{ chain, builder, relay }: Pick<CheatAuction, "chain" | "builder" | "relay">,
		contracts: (name: string) => Contract,
		folder: string,
	) {
		this.chain = chain;
		this.builder = builder;
		this.relay = relay;
		this.cheat = contracts("Cheat");
		this.share = contracts("Share");
		this.#folder = folder;
	}

	/** Submits a user's transaction on /fast, and waits until the builder and searchers have it. */
	async target(options: Partial<TxOptions> = {}): Promise<Target> {
		const by = options.by ?? (await this.account());
		const recipient = testAccount(this.#accounts++).address;
		const tx = signed({ to: EMITTER, ...options, by });
		const call = {
			url: `${this.relay.url}/fast?refundRecipient=${recipient}`,
			from: HONEST,
			deadlineMs: DEADLINE_MS,
		};
		await resultOf("eth_sendRawTransaction", [tx.raw], call);
		await until(`${tx.hash} shown`, async () => (await this.relay.client.status(tx.hash)).shared);
		return { ...tx, account: by, recipient };
	}

	/** A new honest searcher, whose backruns pay their whole value to the coinbase. */
	async honest(): Promise<Searcher> {
		return {
			account: await this.account(),
			from: HONEST,
			key: undefined,
			contract: await this.place(PAYS_COINBASE),
			nonce: 0,
		};
	}

	/** A new cheat, with a new contract, account, key and, unless it is given, network address. */
	async cheater(code = this.cheat.runtime, from = attackerAddress(this.#cheats++)): Promise<Searcher> {
		return {
			...{ account: await this.account(), from, key: createKey() },
			...{ contract: await this.place(code), nonce: 0 },
		};
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

	/** A backrun that pays `value` wei, unless the block was named: see {@link nameBlock}. */
	lyingBackrun(
		cheat: Searcher,
		value: bigint,
		{ tell = OWNER, reverts = false, gas = BACKRUN_GAS } = {},
	): Signed {
		const data = this.cheat.abi.encodeFunctionData("run", [tell, [], [], reverts]);
		return this.backrun(cheat, value, data, gas);
	}

	/** The owner tells the cheat's contract at the top of the next block that this is the block. */
	async nameBlock(owner: Searcher, cheat: Searcher): Promise<void> {
		const { account, nonce } = owner;
		owner.nonce += 1;
		const { raw } = this.first(account, {
			...{ to: cheat.contract, nonce, gasLimit: 60_000 },
			data: this.cheat.abi.encodeFunctionData("name"),
		});
		await this.sendToBuilder([raw]);
	}

	/** Bids `value` wei on a target alone, has that mined, and waits until it has proven the searcher. */
	async prove(searcher: Searcher, value: bigint): Promise<void> {
		const target = await this.target();
		const paying = this.backrun(searcher, value);
		const { result, error } = await this.bid(searcher, target, paying);
		if (error !== undefined) throw new Error(error.message);
		await this.delivered(paying);
		await this.nextBlock();
		searcher.nonce += 1;
		const proven = async () => (await this.told(searcher, String(result))).provenUpTo === String(8n * value);
		await until("the payment has proven it", proven);
	}

	/** Reads how many transactions of the searcher's are in the chain. */
	async readNonce(searcher: Searcher): Promise<void> {
		const { address } = searcher.account;
		searcher.nonce = Number(await this.chain.rpc("eth_getTransactionCount", [address, "latest"]));
	}

	/** Bids for the next block, and returns the outcome, with the bundle's hash as the result. */
	bid(searcher: Searcher, target: Target, backrun: Signed, about: BidOptions = {}): Promise<Outcome> {
		const { uuid, origin } = about;
		const named = uuid === undefined ? {} : { replacementUuid: uuid };
		return this.#ask(searcher, { txs: [target.hash, backrun.raw], ...named }, origin);
	}

	/** Takes back the searcher's bid with this uuid. */
	withdraw(searcher: Searcher, uuid: string): Promise<Outcome> {
		return this.#ask(searcher, { txs: [], replacementUuid: uuid });
	}

	#ask({ from, key }: Searcher, bundle: object, origin?: string): Promise<Outcome> {
		return ask("eth_sendBundle", [bundle], {
			...{ url: this.relay.url, from, deadlineMs: DEADLINE_MS },
			...(key === undefined ? {} : { key }),
			...(origin === undefined ? {} : { headers: { origin } }),
		});
	}

	/** Has the next block built, and waits until the relay has handled it. */
	async nextBlock(): Promise<{ readonly number: number; readonly transactions: readonly string[] }> {
		const { number, transactions } = await this.builder.buildBlock();
		await until(`the relay sees block ${number}`, async () => (await this.#head()) >= number);
		return { number, transactions };
	}

	/** Mines a block with nothing of ours, and waits until the relay has handled it. */
	async emptyBlock(): Promise<void> {
		const { number } = await this.head();
		await this.chain.rpc("evm_mine", []);
		await until("the relay sees the block", async () => (await this.#head()) > number);
	}

	/** Waits until the builder has `tx` for the next block. */
	delivered(tx: Signed): Promise<void> {
		return this.#holds(tx);
	}

	/** Waits until the builder has `backrun` behind `target` for the next block. */
	behind(target: Signed, backrun: Signed): Promise<void> {
		return this.#holds(target, backrun);
	}

	/** Waits until the builder has nothing but `backrun` behind `target`. */
	async onlyBehind(target: Signed, backrun: Signed): Promise<void> {
		const known = [target.hash, backrun.hash];
		await until(`nothing but ${backrun.hash} with the builder`, () =>
			this.builder.bundles().every(({ state, transactions }) => {
				const hashes = transactions.map(({ hash }) => hash);
				return (
					state !== "live" || !hashes.includes(target.hash) || hashes.every((hash) => known.includes(hash))
				);
			}),
		);
	}

	async #holds(...txs: readonly Signed[]): Promise<void> {
		const next = (await this.head()).number + 1;
		await until(`${txs.map(({ hash }) => hash).join()} with the builder`, () =>
			this.builder.bundles().some(({ transactions, firstBlock }) => {
				const hashes = transactions.map(({ hash }) => hash);
				return firstBlock === next && txs.every(({ hash }) => hashes.includes(hash));
			}),
		);
	}

	/** The status of a bundle, as its owner sees it. */
	async told({ from, key }: Searcher, bundle: string): Promise<ToldBundle> {
		const call = { url: `${this.relay.url}/bundle/${bundle}`, from, deadlineMs: DEADLINE_MS };
		const { body } = await send({ ...call, ...(key === undefined ? {} : { key }) });
		return JSON.parse(body) as ToldBundle;
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

	/** A transaction whose tip makes it the first in its block. */
	first(by: TestAccount, tx: Omit<TxOptions, "by">): Signed {
		return signed({ by, maxFeePerGas: 10n ** 14n, maxPriorityFeePerGas: 10n ** 14n, ...tx });
	}

	/** The chain's head. */
	async head(): Promise<{
		readonly number: number;
		readonly hash: string;
		readonly gasLimit: bigint;
		readonly nextBaseFee: bigint;
	}> {
		const block = (await this.chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		const { baseFeePerGas } = (await this.chain.rpc("eth_feeHistory", ["0x1", "latest", []])) as {
			baseFeePerGas: readonly string[];
		};
		return {
			number: Number(block.number),
			hash: String(block.hash),
			gasLimit: BigInt(block.gasLimit ?? 0),
			nextBaseFee: BigInt(baseFeePerGas.at(-1) ?? 0),
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
	async account(): Promise<TestAccount> {
		const account = testAccount(this.#accounts++);
		await this.chain.fund([account], FUNDS);
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
			BUILDERS: JSON.stringify([{ name: "dev", url: builder.url }]),
			DATA_DIR: folder,
			MAX_HEAD_AGE_S: "86400",
			METRICS_TOKEN,
			...env,
		},
	});
	return new CheatAuction({ chain, builder, relay }, contracts, folder);
}

function signed(options: TxOptions): Signed {
	const whole = { maxFeePerGas: FEE_CAP, maxPriorityFeePerGas: TIP, ...options };
	return { raw: `0x${rawTransaction(whole).toString("hex")}`, hash: signedTransaction(whole).hash };
}
