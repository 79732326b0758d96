// Submits single transactions through boost, for tests that count.

import { keccak256 } from "../../shared/ethereum/signatures.ts";
import { rawTransaction, type TestAccount } from "../support/txFactory.ts";
import { type Answered, askBoost } from "./traffic.ts";

export type { Answered } from "./traffic.ts";

/** Sends one transaction of `by`, which has sent none before, on /fast. */
export function sendOne(by: TestAccount | undefined, url: string): Promise<Answered> {
	if (by === undefined) throw new Error("no account");
	const raw = rawTransaction({ by, gasLimit: 21_000, value: 1 });
	return askBoost(`${url}/fast`, raw, `0x${keccak256(raw).toString("hex")}`);
}
