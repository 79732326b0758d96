// The checks of /readyz: whether the relay would serve a submission well now.

import type { CheckResult, ReadinessCheck } from "../shared/http/opsRoutes.ts";

/** What is read when /readyz is asked. */
export interface Readings {
	/** Whether the node told its head when it was last asked. */
	readonly isNodeWell: () => boolean;
	readonly headAgeMs: () => number;
	readonly maxHeadAgeMs: number;
	/** Whether the last write came through. */
	readonly isStoreWell: () => Promise<boolean>;
	/** Whether the store is surely this relay's: else nothing is sent to builders. */
	readonly isStoreHeld: () => boolean;
	/** False when deliveries were tried in the last two slots and no builder answered any. */
	readonly isDelivering: () => boolean;
}

/** The checks, by the names that /readyz shows. */
export function readinessChecks(read: Readings): readonly ReadinessCheck[] {
	return [
		{ name: "node", check: () => verdict(read.isNodeWell(), "the node does not answer") },
		{ name: "head", check: () => verdict(read.headAgeMs() <= read.maxHeadAgeMs, "the head is too old") },
		{ name: "store", check: () => storeVerdict(read) },
		{ name: "delivery", check: () => verdict(read.isDelivering(), "no builder answers") },
	];
}

async function storeVerdict({ isStoreHeld, isStoreWell }: Readings): Promise<CheckResult> {
	if (!isStoreHeld()) return verdict(false, "the store does not answer, or is another relay's");
	return verdict(await isStoreWell(), "the last write failed");
}

function verdict(ok: boolean, reason: string): CheckResult {
	return ok ? { ok } : { ok, reason };
}
