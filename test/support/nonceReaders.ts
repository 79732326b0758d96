// Reads an account's nonces from a relay as each wallet library does. Nothing is cached between two reads.

import { JsonRpcProvider } from "ethers";
import { createPublicClient, http, type PublicClient, webSocket } from "viem";
import { foundry } from "viem/chains";
import { cast } from "./castCommand.ts";

/** The two nonces that wallets ask for. */
export interface Nonces {
	readonly pending: number;
	readonly latest: number;
}

/** ethers, viem over HTTP and viem over a websocket, on one relay. */
export class NonceReaders {
	readonly #url: string;
	readonly #ethers: JsonRpcProvider;
	readonly #viem: readonly PublicClient[];

	constructor(url: string) {
		this.#url = url;
		// By itself ethers gives the answer of a quarter of a second ago again.
		this.#ethers = new JsonRpcProvider(url, foundry.id, { staticNetwork: true, cacheTimeout: -1 });
		// Not asked again: what was asked before a fault is lifted must not be answered behind it.
		const once = { retryCount: 0 };
		const sockets = webSocket(`${url.replace("http", "ws")}/fast`, { ...once, reconnect: false });
		this.#viem = [http(url, once), sockets].map((transport) =>
			createPublicClient({ chain: foundry, transport }),
		);
	}

	/** What every one of them was told; throws where two were told different nonces, or one got an error. */
	async read(address: string): Promise<Nonces> {
		const told = await all([
			this.#both((tag) => this.#ethers.getTransactionCount(address, tag)),
			...this.#viem.map((client) =>
				this.#both((blockTag) => client.getTransactionCount({ address: address as `0x${string}`, blockTag })),
			),
		]);
		return agreed(told);
	}

	/** The same by cast, a process of its own. */
	readByCast(address: string): Promise<Nonces> {
		return this.#both(async (tag) => {
			const { code, stdout, stderr } = await cast("nonce", address, "--block", tag, "--rpc-url", this.#url);
			if (code !== 0) throw new Error(stderr);
			return Number(stdout);
		});
	}

	/** Ends all connections. */
	async close(): Promise<void> {
		this.#ethers.destroy();
		for (const { transport } of this.#viem) {
			if (transport.type === "webSocket") (await transport.getRpcClient()).close();
		}
	}

	async #both(ask: (tag: "pending" | "latest") => Promise<number>): Promise<Nonces> {
		const [pending = 0, latest = 0] = await all([ask("pending"), ask("latest")]);
		return { pending, latest };
	}
}

/** As Promise.all, once none is under way any more. */
async function all<T>(promises: readonly Promise<T>[]): Promise<T[]> {
	await Promise.allSettled(promises);
	return Promise.all(promises);
}

function agreed(told: readonly Nonces[]): Nonces {
	const [first, ...others] = told;
	if (first === undefined) throw new Error("nobody was asked");
	for (const { pending, latest } of others) {
		if (pending !== first.pending || latest !== first.latest) {
			throw new Error(`the clients were told different nonces: ${JSON.stringify(told)}`);
		}
	}
	return first;
}
