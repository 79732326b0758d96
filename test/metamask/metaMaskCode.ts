// Loads MetaMask's own packages as its extension runs them, for the tests' wallet. The types here are narrow because
// the packages' own are of another version of TypeScript's settings.
// https://github.com/MetaMask/core

import { createRequire } from "node:module";

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
	/** What its user reads when the bytes could not be sent again. */
	readonly warning?: { readonly error: string; readonly message: string };
	/** The block from which its distances are counted: it was first looked at there. */
	readonly firstRetryBlockNumber?: string;
	/** How often the bytes were sent again with success. */
	readonly retryCount?: number;
	/** Of the one that was mined in its place. */
	readonly replacedBy?: string;
}

/** What MetaMask's parts call each other through: actions with answers, and events. */
export interface MetaMaskMessenger {
	registerActionHandler(action: string, handler: (...params: never[]) => unknown): void;
	delegate(to: { messenger: MetaMaskMessenger; actions?: string[]; events?: string[] }): void;
}

/** Asks its `fetch` for each request, with MetaMask's own retries, cache and reading of errors on top. */
export interface MetaMaskNetworks {
	initializeProvider(): Promise<void>;
	getNetworkClientRegistry(): unknown;
	getEIP1559Compatibility(networkClientId: string): Promise<boolean>;
	destroy(): void;
}

/** Sends, follows, sends again, speeds up and cancels. */
export interface MetaMaskTransactions {
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
export interface MetaMaskCode {
	readonly Messenger: new (options: { namespace: string; parent?: MetaMaskMessenger }) => MetaMaskMessenger;
	readonly NetworkController: new (options: Options) => MetaMaskNetworks;
	readonly TransactionController: new (options: Options) => MetaMaskTransactions;
}

/** Loads them (0.5 s). */
export function loadMetaMask(): MetaMaskCode {
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
