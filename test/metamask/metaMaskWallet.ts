// A MetaMask without its window: one account on a relay, driven by MetaMask's own packages as its
// extension runs them (https://github.com/MetaMask/core; the types here are narrow, since theirs
// need other settings of TypeScript). Only three things are not MetaMask's: who approves
// (everything, at once), who signs (the account's key), and the poll intervals, which are 20 ms for
// a block's 20 s.

import { createRequire } from "node:module";
import { setImmediate } from "node:timers/promises";
import type { Signed } from "../support/relayFixture.ts";
import type { TestAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const POLL_MS = 20;
const CHAIN_ID = "0x7a69";
const { Messenger, NetworkController, TransactionController } = loadMetaMask();

/** One transaction as MetaMask keeps it; quantities are 0x hex. */
export interface MetaMaskTransaction {
	readonly id: string;
	readonly status: "unapproved" | "approved" | "signed" | "submitted" | "confirmed" | "dropped" | "failed";
	/** `cancel` and `retry` are what its two buttons make. */
	readonly type?: string;
	readonly hash?: string;
	readonly rawTx?: string;
	readonly gasFeeEstimatesLoaded?: boolean;
	readonly txParams: Readonly<Record<string, string | undefined>>;
	readonly error?: { readonly message: string };
	/** The text for its user when the bytes could not be sent again. */
	readonly warning?: { readonly error: string; readonly message: string };
	/** The block from which its distances are counted: it was first looked at there. */
	readonly firstRetryBlockNumber?: string;
	/** How often the bytes were sent again with success. */
	readonly retryCount?: number;
	/** The hash of the transaction that was mined in its place. */
	readonly replacedBy?: string;
}

/** The calls between MetaMask's parts: actions with answers, and events. */
interface MetaMaskMessenger {
	registerActionHandler(action: string, handler: (...params: never[]) => unknown): void;
	delegate(to: { messenger: MetaMaskMessenger; actions?: string[]; events?: string[] }): void;
}

/**
 * Asks its `fetch` for each request, with MetaMask's own retries, cache and reading of errors on
 * top.
 */
interface MetaMaskNetworks {
	initializeProvider(): Promise<void>;
	getNetworkClientRegistry(): unknown;
	getEIP1559Compatibility(networkClientId: string): Promise<boolean>;
	destroy(): void;
}

/** Sends, follows, sends again, speeds up and cancels. */
interface MetaMaskTransactions {
	readonly state: { readonly transactions: readonly MetaMaskTransaction[] };
	addTransaction(
		params: Readonly<Record<string, string>>,
		options: Readonly<Record<string, unknown>>,
	): Promise<{ readonly result: Promise<string>; readonly transactionMeta: MetaMaskTransaction }>;
	speedUpTransaction(id: string): Promise<void>;
	stopTransaction(id: string): Promise<void>;
	getNonceLock(
		address: string,
		networkClientId: string,
	): Promise<{ readonly nextNonce: number; releaseLock(): void }>;
	wipeTransactions(of: { readonly address: string }): void;
	destroy(): void;
}

type Options = Readonly<Record<string, unknown>>;

/** The classes. */
interface MetaMaskCode {
	readonly Messenger: new (options: { namespace: string; parent?: MetaMaskMessenger }) => MetaMaskMessenger;
	readonly NetworkController: new (options: Options) => MetaMaskNetworks;
	readonly TransactionController: new (options: Options) => MetaMaskTransactions;
}

/** Loads them (0.5 s). */
function loadMetaMask(): MetaMaskCode {
	const load = createRequire(import.meta.url);
	const transactions = load.resolve("@metamask/transaction-controller");
	const { Messenger } = createRequire(transactions)("@metamask/messenger") as Pick<MetaMaskCode, "Messenger">;
	const { TransactionController } = load(transactions) as Pick<MetaMaskCode, "TransactionController">;
	const { NetworkController } = load("@metamask/network-controller") as Pick<
		MetaMaskCode,
		"NetworkController"
	>;
	return { Messenger, NetworkController, TransactionController };
}

/** A JSON-RPC request as it left MetaMask, with its answer. */
interface AskedRequest {
	readonly method: string;
	readonly params: readonly unknown[];
	readonly answer: { readonly result?: unknown; readonly error?: { code: number; message: string } };
}

/** The user's request; quantities in wei. */
interface WantedTransaction {
	readonly to: string;
	readonly value?: bigint;
	readonly data?: string;
	readonly gas?: bigint;
	readonly maxFeePerGas?: bigint;
	readonly maxPriorityFeePerGas?: bigint;
	/** The number typed into the field "custom nonce". */
	readonly customNonce?: number;
}

/** Which MetaMask it is. */
interface MetaMaskOptions {
	/** The address that its user has typed in for the network. */
	readonly rpcUrl: string;
	readonly account: TestAccount;
	/**
	 * Whether it sends the bytes of what is pending again: its extension did for years, and does not
	 * any more; its app never did. True unless said.
	 */
	readonly resubmits?: boolean;
}

const GWEI = 1_000_000_000n;

/** One user with one account and one network with one RPC address. */
export class MetaMaskWallet {
	/** Everything that was asked, oldest first. */
	readonly asked: AskedRequest[] = [];
	/** The address that its network has, where a proxy in front names it; null: there is no proxy. */
	network: string | null = null;
	readonly #address: string;
	readonly #key: Buffer;
	readonly #networks: MetaMaskNetworks;
	readonly #transactions: MetaMaskTransactions;
	#customNonce: number | undefined;

	constructor(options: MetaMaskOptions) {
		this.#address = options.account.address;
		this.#key = options.account.key;
		const root = new Messenger({ namespace: "Root" });
		this.#registerOthers(root);
		this.#networks = this.#createNetworks(root, options.rpcUrl);
		this.#transactions = this.#createTransactions(root, options.resubmits ?? true);
	}

	/** Must come first: lets the network be chosen. */
	async open(): Promise<void> {
		await this.#networks.initializeProvider();
	}

	/** No polls, no timers from here on. */
	close(): void {
		this.#transactions.destroy();
		this.#networks.destroy();
	}

	/** Approves, signs and submits; throws what MetaMask would show. */
	async send(wanted: WantedTransaction): Promise<MetaMaskTransaction> {
		this.#customNonce = wanted.customNonce;
		const params = {
			from: this.#address,
			to: wanted.to,
			value: hex(wanted.value ?? 0n),
			gas: hex(wanted.gas ?? 100_000n),
			maxFeePerGas: hex(wanted.maxFeePerGas ?? 20n * GWEI),
			maxPriorityFeePerGas: hex(wanted.maxPriorityFeePerGas ?? GWEI),
			...(wanted.data === undefined ? {} : { data: wanted.data }),
		};
		const { result, transactionMeta } = await this.#transactions.addTransaction(params, {
			networkClientId: "relay",
			origin: "metamask",
		});
		await result;
		return this.see(transactionMeta);
	}

	/** The button "speed up", with the values that MetaMask fills in; answers the new transaction. */
	speedUp(transaction: MetaMaskTransaction): Promise<MetaMaskTransaction> {
		return this.#addsOne(() => this.#transactions.speedUpTransaction(transaction.id));
	}

	/**
	 * The button "cancel", with the values that MetaMask fills in; answers the cancelling
	 * transaction.
	 */
	cancel(transaction: MetaMaskTransaction): Promise<MetaMaskTransaction> {
		return this.#addsOne(() => this.#transactions.stopTransaction(transaction.id));
	}

	/** "Clear activity tab data". */
	clearActivity(): void {
		this.#transactions.wipeTransactions({ address: this.#address });
	}

	/** All that is in its activity list, oldest first. */
	get list(): readonly MetaMaskTransaction[] {
		return this.#transactions.state.transactions.toReversed();
	}

	/** The present state of a transaction. */
	see({ id }: { readonly id: string }): MetaMaskTransaction {
		const found = this.list.find((one) => one.id === id);
		if (found === undefined) throw new Error("MetaMask does not list this transaction");
		return found;
	}

	/** Waits until MetaMask shows `status` for a transaction. */
	shows(
		transaction: MetaMaskTransaction,
		status: MetaMaskTransaction["status"],
	): Promise<MetaMaskTransaction> {
		return until(`MetaMask shows ${status}`, () => {
			const seen = this.see(transaction);
			return seen.status === status && seen;
		}).catch((thrown: Error) => {
			const { status: last, error, warning } = this.see(transaction);
			throw new Error(`${thrown.message}; it shows ${last} ${JSON.stringify({ error, warning })}`);
		});
	}

	/** The nonce that the next transaction would get. */
	async nextNonce(): Promise<number> {
		const lock = await this.#transactions.getNonceLock(this.#address, "relay");
		lock.releaseLock();
		return lock.nextNonce;
	}

	/** The answers that were errors, oldest first. */
	get failures(): readonly AskedRequest[] {
		return this.asked.filter(({ answer }) => answer.error !== undefined);
	}

	/** Requests of `method` with `first` as first param (any unless given). */
	requests(method: string, first?: unknown): readonly AskedRequest[] {
		return this.asked.filter(
			(one) => one.method === method && (first === undefined || one.params[0] === first),
		);
	}

	/**
	 * Waits until a transaction was looked at once; answers the block from which its distances are
	 * counted.
	 */
	async firstLook(transaction: MetaMaskTransaction): Promise<number> {
		const { firstRetryBlockNumber } = await until("MetaMask's first look", () => {
			const seen = this.see(transaction);
			return seen.firstRetryBlockNumber !== undefined && seen;
		});
		return Number(firstRetryBlockNumber);
	}

	/**
	 * Waits until the bytes of a transaction were sent `times` times in all and answered; the
	 * answers.
	 */
	async sent(transaction: MetaMaskTransaction, times: number): Promise<readonly unknown[]> {
		const { rawTx } = this.see(transaction);
		const all = () => this.requests("eth_sendRawTransaction", rawTx);
		await until(`MetaMask has sent it ${times} times`, () => all().length >= times);
		return all().map(({ answer }) => answer.error ?? answer.result);
	}

	/**
	 * Waits until a whole look at its pending transactions at `block` is over: the receipt, and the
	 * account's count. Anything due to be sent again is sent after it.
	 */
	async looked(block: number): Promise<void> {
		await until(`MetaMask has looked at block ${block}`, () =>
			this.requests("eth_getTransactionCount", this.#address).some(
				({ params }) => Number(params[1]) >= block,
			),
		);
	}

	async #addsOne(press: () => Promise<void>): Promise<MetaMaskTransaction> {
		const before = new Set(this.list.map(({ id }) => id));
		await press();
		const added = this.list.find(({ id }) => !before.has(id));
		if (added === undefined) throw new Error("MetaMask has made no transaction");
		return added;
	}

	/** The parts of MetaMask that the two controllers ask. */
	#registerOthers(root: MetaMaskMessenger): void {
		const account = { address: this.#address, type: "eip155:eoa" };
		const polling = { acceleratedPolling: { defaultCountMax: 1, defaultIntervalMs: POLL_MS } };
		const answers: Readonly<Record<string, (request: { requestData: { txId: string } }) => unknown>> = {
			"AccountsController:getSelectedAccount": () => account,
			"AccountsController:getState": () => ({ internalAccounts: { accounts: { one: account } } }),
			"ApprovalController:addRequest": ({ requestData }) => this.#approve(requestData.txId),
			"RemoteFeatureFlagController:getState": () => ({
				remoteFeatureFlags: { confirmations_transactions: polling },
			}),
		};
		for (const [action, answer] of Object.entries(answers)) {
			const part = new Messenger({ namespace: action.split(":")[0] ?? "", parent: root });
			part.registerActionHandler(action, answer);
		}
	}

	/**
	 * The confirmation window hands its transaction back, with the nonce that was typed into it. Its
	 * button waits for the fee estimates; without that MetaMask's fee poller, still busy, would never
	 * stop.
	 */
	async #approve(id: string): Promise<unknown> {
		await until("MetaMask's fee estimates", () => this.see({ id }).gasFeeEstimatesLoaded === true);
		await setImmediate();
		const customNonceValue = this.#customNonce === undefined ? undefined : String(this.#customNonce);
		return { value: { txMeta: { ...this.see({ id }), customNonceValue } } };
	}

	#createNetworks(root: MetaMaskMessenger, rpcUrl: string): MetaMaskNetworks {
		const messenger = new Messenger({ namespace: "NetworkController", parent: root });
		const recording = async (url: URL, init: RequestInit): Promise<Response> => {
			const { method, params } = JSON.parse(String(init.body)) as AskedRequest;
			const headers = new Headers(init.headers);
			if (this.network !== null) headers.set("x-forwarded-for", this.network);
			const response = await fetch(url, { ...init, headers });
			const answer = (await response.clone().json()) as AskedRequest["answer"];
			this.asked.push({ method, params, answer });
			return response;
		};
		return new NetworkController({
			messenger,
			infuraProjectId: "none",
			getRpcServiceOptions: () => ({ fetch: recording, btoa }),
			getBlockTrackerOptions: () => ({ pollingInterval: POLL_MS }),
			state: {
				selectedNetworkClientId: "relay",
				networksMetadata: {},
				networkConfigurationsByChainId: {
					[CHAIN_ID]: {
						chainId: CHAIN_ID,
						name: "the relay",
						nativeCurrency: "ETH",
						blockExplorerUrls: [],
						defaultRpcEndpointIndex: 0,
						rpcEndpoints: [{ networkClientId: "relay", type: "custom", url: rpcUrl }],
					},
				},
			},
		});
	}

	#createTransactions(root: MetaMaskMessenger, resubmits: boolean): MetaMaskTransactions {
		const messenger = new Messenger({ namespace: "TransactionController", parent: root });
		root.delegate({
			messenger,
			actions: [
				"AccountsController:getSelectedAccount",
				"AccountsController:getState",
				"ApprovalController:addRequest",
				"NetworkController:findNetworkClientIdByChainId",
				"NetworkController:getNetworkClientById",
				"RemoteFeatureFlagController:getState",
			],
			events: ["NetworkController:stateChange"],
		});
		const networks = this.#networks;
		return new TransactionController({
			messenger,
			getNetworkClientRegistry: () => networks.getNetworkClientRegistry(),
			getCurrentNetworkEIP1559Compatibility: (id: string) => networks.getEIP1559Compatibility(id),
			getNetworkState: () => ({ networkConfigurationsByChainId: {} }),
			pendingTransactions: { isResubmitEnabled: () => resubmits },
			// both ask servers of MetaMask's
			isSimulationEnabled: () => false,
			isFirstTimeInteractionEnabled: () => false,
			sign: async (unsigned: { sign(key: Buffer): unknown }) => unsigned.sign(this.#key),
		});
	}
}

/** As the fixture of a test knows transactions. */
export function signedBy(transaction: MetaMaskTransaction): Signed {
	const { rawTx, hash, txParams } = transaction;
	if (rawTx === undefined || hash === undefined)
		throw new Error("MetaMask has not submitted this transaction");
	return { raw: rawTx, hash, from: txParams.from ?? "" };
}

function hex(value: bigint): string {
	return `0x${value.toString(16)}`;
}
