// Typed data (EIP-712) for a wallet to sign. It is made here, and a wallet shows all of it: no
// server's answer is signed but the relay's name, which this page shows too.
// https://eips.ethereum.org/EIPS/eip-712

import { call } from "./common.js";

const DOMAIN = [
	{ name: "name", type: "string" },
	{ name: "version", type: "string" },
	{ name: "chainId", type: "uint256" },
];

/**
 * The signature of the wallet's `account` over `message`. Throws an Error if the wallet is on
 * another chain than this server.
 */
export async function signTyped(provider, account, primaryType, fields, message) {
	const [own, here] = [await provider.request({ method: "eth_chainId" }), await call("eth_chainId")];
	const chainId = Number(own);
	if (chainId !== Number(here))
		throw new Error(`your wallet is on chain ${chainId}: switch it to chain ${Number(here)}, and try again`);
	const types = { EIP712Domain: DOMAIN, [primaryType]: fields };
	const data = { types, domain: { name: "Leeward", version: "1", chainId }, primaryType, message };
	return provider.request({ method: "eth_signTypedData_v4", params: [account, JSON.stringify(data)] });
}
