// eth_sendPrivateTransaction: refused, as the interface wants it.

import { z } from "zod";
import { methodNotFound } from "../../../shared/jsonrpc/dispatch.ts";
import { RAW_PARAMS_SIZE } from "../../../shared/jsonrpc/method.ts";
import { relayMethod } from "../methodDependencies.ts";

export const eth_sendPrivateTransaction = relayMethod({
	name: "eth_sendPrivateTransaction",
	summary: "Not supported: eth_sendRawTransaction never shares transactions in the public mempool.",
	params: [
		{ name: "transaction", schema: z.unknown().optional() },
		{ name: "options", schema: z.unknown().optional() },
		{ name: "more", schema: z.unknown().optional() },
	],
	maxParamsSize: RAW_PARAMS_SIZE,
	result: z.never(),
	handle() {
		throw methodNotFound(
			"eth_sendPrivateTransaction",
			"eth_sendRawTransaction never shares transactions in the public mempool, use it instead",
		);
	},
});
