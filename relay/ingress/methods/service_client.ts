// service_client: nothing comes in, the client goes out as the relay knows it. Who stands behind a proxy sees whether the
// proxy is believed; a proxy sees whether it is.

import { z } from "zod";
import { relayMethod } from "../needs.ts";

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
