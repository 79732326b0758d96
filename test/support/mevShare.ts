// Flashbots' MEV-Share client for tests, unmodified, made as docs/searchers.md says: only the URLs
// are the relay's.

import MevShare from "@flashbots/mev-share-client";
import { Wallet } from "ethers";
import { snippet } from "./documents.ts";

export type MevShareClient = InstanceType<typeof MevShare.default>;

/** The key by which {@link mevShareClient} signs its requests. */
export const MEV_SHARE_KEY = `0x${"c3".repeat(32)}`;

/** A client of the relay at `url`, which signs by `signer`. */
export function mevShareClient(url: string, signer = new Wallet(MEV_SHARE_KEY)): MevShareClient {
	const code = snippet("docs/searchers.md", "const network = {").replaceAll("http://127.0.0.1:8080", url);
	const made = new Function("MevShareClient", "authSigner", `${code}return client;`);
	return made(MevShare.default, signer) as MevShareClient;
}
