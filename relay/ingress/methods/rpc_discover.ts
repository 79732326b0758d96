// rpc.discover: the OpenRPC document of the relay's own methods, made from the schemas that check their parameters.

import { z } from "zod";
import { relayMethod } from "../methodDependencies.ts";

export const rpc_discover = relayMethod({
	name: "rpc.discover",
	summary: "The OpenRPC document of the relay's own methods (https://spec.open-rpc.org).",
	params: [],
	result: z.record(z.string(), z.unknown()).describe("the document"),
	handle: (_params, _context, { describe }) => describe(),
});
