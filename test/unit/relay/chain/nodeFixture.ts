// A real chain behind a proxy that counts calls and injects faults, with a client of it; one for
// each test file.

import { after, afterEach } from "node:test";
import { NodeReader } from "../../../../relay/chain/nodeReader.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient, UpstreamError, type UpstreamFault } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { startDevChain } from "../../../devnet/devChain.ts";
import { startNodeProxy } from "../../../support/nodes.ts";

/**
 * Starts it, to be called where a file begins. After each test no fault is left and nothing
 * counted.
 */
export async function startProxiedChain() {
	const chain = await startDevChain();
	const proxy = await startNodeProxy(chain.url);
	const client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000 }, { clock: systemClock });
	afterEach(() => {
		proxy.setFault(null);
		proxy.setRule(null);
		proxy.reset();
	});
	after(async () => {
		await client.close();
		await proxy.stop();
		await chain.stop();
	});
	return {
		chain,
		proxy,
		client,
		/** Reads through the proxy. */
		reader: () => new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log: silentLogger }),
		/** Mines so many blocks; the number of the last one. */
		mine: async (count = 1): Promise<number> => {
			await chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);
			return Number(await chain.rpc("eth_blockNumber"));
		},
		/** Sends a transaction of account `from` to the chain itself; its hash. */
		send: async (from: number, nonce: number, fields: object = {}): Promise<string> => {
			const raw = await chain.wallet(from).signTransaction({
				chainId: chain.chainId,
				to: `0x${"77".repeat(20)}`,
				value: 1n,
				nonce,
				gasLimit: 100_000n,
				maxFeePerGas: 10n ** 10n,
				maxPriorityFeePerGas: 1n,
				...fields,
			});
			return String(await chain.rpc("eth_sendRawTransaction", [raw]));
		},
	};
}

/** Whether what was thrown is an upstream's fault of this kind. */
export function fails(code: UpstreamFault): (thrown: unknown) => boolean {
	return (thrown) => thrown instanceof UpstreamError && thrown.code === code;
}
