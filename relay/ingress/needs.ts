// What the relay's methods need of the process, and what they get of a request: two types, for the method files.

import type { CallContext } from "../../shared/http/callContext.ts";
import { defineMethod } from "../../shared/jsonrpc/method.ts";
import type { NodeReads, PendingReader, Submitter } from "../domain/ports.ts";

/** The parts of the relay that methods use. */
export interface MethodNeeds {
	readonly chainId: bigint;
	readonly submitter: Submitter;
	readonly pending: PendingReader;
	readonly node: NodeReads;
	/** The OpenRPC document of all methods. */
	readonly describe: () => unknown;
}

/** Defines a method of the relay's. */
export const relayMethod = defineMethod<MethodNeeds, CallContext>();
