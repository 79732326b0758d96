// The context of a call to the core that no client has made.

import { callContext } from "../../shared/http/callContext.ts";

export const OWN_CALL = callContext(
	{ path: "/", search: "" },
	{ address: "", signer: null, vouched: false },
	null,
	null,
);
