// eth_cancelBundle: answers 200, whether the client had a bundle of that uuid or not.

import { z } from "zod";
import { PARAMS_SIZE } from "../../../shared/jsonrpc/method.ts";
import { bundleOwner, mayCancel } from "../bundleOwner.ts";
import { cancelBundle } from "../bundleSchemas.ts";
import { relayMethod } from "../methodDependencies.ts";

export const eth_cancelBundle = relayMethod({
	name: "eth_cancelBundle",
	summary: "Cancels the client's bundle with this replacementUuid; 200 also if there is none.",
	params: [{ name: "bundle", schema: cancelBundle }],
	maxParamsSize: 4 * PARAMS_SIZE,
	result: z.literal(200),
	ordered: true,
	handle([{ replacementUuid }], context, { market }) {
		if (mayCancel(context)) market.cancel(bundleOwner(context), replacementUuid);
		return 200;
	},
});
