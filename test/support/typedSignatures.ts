// Typed data that keys sign for Leeward, made by ethers: the header of live reads, and cancels.

import { Wallet } from "ethers";

export const READ_SIGNATURE = "x-leeward-signature";

export interface ReadOptions {
	/** Default: this machine. */
	readonly relay?: string;
	readonly scope?: string;
	/** Default: the dev chain's. */
	readonly chainId?: number;
	/** Seconds since the epoch; default: in ten minutes. */
	readonly until?: number;
}

/** The second parameter of eth_cancelTransaction. */
export function cancelSignature(key: string, transaction: string, chainId = 31_337): Promise<string> {
	return new Wallet(key).signTypedData(
		{ name: "Leeward", version: "1", chainId },
		{ Cancel: [{ name: "transaction", type: "bytes32" }] },
		{ transaction },
	);
}

/** The header's value. */
export async function readHeader(key: string, options: ReadOptions = {}): Promise<string> {
	const { relay = "127.0.0.1", scope = "bundles", chainId = 31_337 } = options;
	const { until = Math.floor(Date.now() / 1_000) + 600 } = options;
	const wallet = new Wallet(key);
	const signature = await wallet.signTypedData(
		{ name: "Leeward", version: "1", chainId },
		{
			Read: [
				{ name: "relay", type: "string" },
				{ name: "scope", type: "string" },
				{ name: "until", type: "uint256" },
			],
		},
		{ relay, scope, until },
	);
	return `address=${wallet.address}, relay=${relay}, until=${until}, signature=${signature}`;
}
