// eth_unsubscribe: ends a subscription of this websocket; answers whether there was one.

import { z } from "zod";
import { methodNotFound } from "../../../shared/jsonrpc/dispatch.ts";
import { relayMethod } from "../methodDependencies.ts";

export const eth_unsubscribe = relayMethod({
	name: "eth_unsubscribe",
	summary: "Over a websocket: ends a subscription of this connection.",
	params: [{ name: "id", schema: z.string({ error: "expected the id of a subscription" }) }],
	result: z.boolean().describe("whether this connection had it"),
	handle([id], { connection }, { subscriptions }) {
		if (connection === null) throw methodNotFound("eth_unsubscribe", "over a websocket only");
		return subscriptions.unsubscribe(connection, id);
	},
});
