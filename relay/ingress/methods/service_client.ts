// service_client: the client as the relay sees it. An operator behind a proxy learns whether its headers are trusted.

import { z } from "zod";
import { relayMethod } from "../methodDependencies.ts";

export const service_client = relayMethod({
	name: "service_client",
	summary: "Who you are to the relay: what limits, cancels and uuids go by.",
	params: [],
	result: z.object({
		address: z.string().describe("network address"),
		signer: z.string().nullable().describe("address whose key signed the body, or null"),
		vouched: z.boolean().describe("whether a proxy that knows the secret has named the address"),
	}),
	handle: (_params, { client: { address, signer, vouched } }) => ({ address, signer, vouched }),
});
