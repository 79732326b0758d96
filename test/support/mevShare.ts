// Flashbots' MEV-Share client for tests, unmodified: only the URLs are the relay's.

import MevShare from "@flashbots/mev-share-client";
import { Wallet } from "ethers";

export type MevShareClient = InstanceType<typeof MevShare.default>;

/** The key by which {@link mevShareClient} signs its requests. */
export const MEV_SHARE_KEY = `0x${"c3".repeat(32)}`;

/** A client of the relay at `url`, which signs by `signer`. */
export function mevShareClient(url: string, signer = new Wallet(MEV_SHARE_KEY)): MevShareClient {
	const network = { name: "dev", chainId: 31_337, streamUrl: `${url}/mev-share`, apiUrl: url };
	// The package is CommonJS and wants ethers' types as such; it is the same wallet.
	return new MevShare.default(signer as never, network);
}
