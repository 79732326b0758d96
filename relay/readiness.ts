// The checks of /readyz: whether this relay can serve a submission now. An edge asks the core for
// the checks of the store and of deliveries.

import type { SlotLength } from "../shared/ethereum/slots.ts";
import type { CheckResult, ReadinessCheck } from "../shared/http/opsRoutes.ts";
import { RpcError } from "../shared/jsonrpc/errors.ts";
import { PROBLEMS } from "../shared/problems.ts";
import type { RelayConfig } from "./config.ts";
import type { CoreFinder } from "./edge/coreFinder.ts";
import type { CoreNeeds } from "./ingress/methodDependencies.ts";
import { core_check } from "./ingress/methods/betweenRelays.ts";
import { OWN_CALL } from "./ingress/ownCall.ts";
import type { CoreModules, EdgeModules } from "./modules.ts";

/** Slots without a new head, and at least this many ms, after which the relay is not ready. */
const MAX_AGE_SLOTS = 5;
const LEAST_MAX_AGE_MS = 5_000;

/** The age from which a head is too old, in ms. */
export function maxHeadAge(
	{ MAX_HEAD_AGE_S }: Pick<RelayConfig, "MAX_HEAD_AGE_S">,
	slot: SlotLength,
): () => number {
	if (MAX_HEAD_AGE_S !== undefined) return () => MAX_HEAD_AGE_S * 1_000;
	return () => Math.max(MAX_AGE_SLOTS * slot.ms, LEAST_MAX_AGE_MS);
}

/** All checks. `finder` is null if no other relay can reach the store. */
export function readinessChecks(
	maxHeadAgeMs: () => number,
	{ tip, heads, core }: Pick<EdgeModules, "tip" | "heads" | "core">,
	finder: Pick<CoreFinder, "isAway" | "trouble"> | null,
): readonly ReadinessCheck[] {
	const isNodeWell = () => tip.head() !== null && !heads.isUnavailable;
	const asked = (name: CoreCheck): ReadinessCheck => ({
		name,
		async check() {
			const { local, remote } = core;
			if (local !== null) return local.needs.check(name);
			if (remote !== null) {
				if (name === "store" && !core.isFed) return verdict(false, PROBLEMS.feedUnread.text);
				try {
					return (await core.run(core_check, [name], OWN_CALL)) as CheckResult;
				} catch (thrown) {
					// The core went away during the call.
					if (!(thrown instanceof RpcError)) throw thrown;
				}
			}
			const reason = `${PROBLEMS.noCore.text}: ${finder?.trouble ?? "there is none"}`;
			return verdict(name !== "store" || finder?.isAway === false, reason);
		},
	});
	return [
		{ name: "node", check: () => verdict(isNodeWell(), PROBLEMS.nodeSilent.text) },
		{
			name: "head",
			check() {
				if (heads.trouble !== null) return { ok: false, reason: heads.trouble };
				const result = verdict(heads.times.ageMs() <= maxHeadAgeMs(), PROBLEMS.headStale.text);
				return { ...result, ...clockNote(heads.times.differenceMs()) };
			},
		},
		asked("store"),
		asked("delivery"),
	];
}

/** The name of a check that only the core can run. */
export type CoreCheck = Parameters<CoreNeeds["check"]>[0];

/** The core's checks. */
export function coreChecks({
	kv,
	transactions,
	deliveries,
}: Pick<CoreModules, "kv" | "transactions" | "deliveries">): CoreNeeds["check"] {
	return async (name) => {
		// Fails when there were deliveries in the last two slots and no builder answered any.
		if (name === "delivery") return verdict(deliveries.healthy, PROBLEMS.noBuilder.text);
		// Without the store's lock nothing is sent to builders.
		if (!kv.isHeld) return verdict(false, kv.trouble ?? PROBLEMS.storeSilent.text);
		const isWritable = await transactions.keeper.isWritable();
		return verdict(isWritable, kv.trouble ?? PROBLEMS.storeFailed.text);
	};
}

function verdict(ok: boolean, reason: string): CheckResult {
	return ok ? { ok } : { ok, reason };
}

/**
 * A note about a wrong clock. It does not make the relay unready, but the operator should set the
 * clock.
 */
function clockNote(differenceMs: number): { readonly note?: string } {
	if (differenceMs === 0) return {};
	const seconds = Math.round(Math.abs(differenceMs) / 1000);
	return {
		note: `${PROBLEMS.clock.text} ${seconds} s ${differenceMs > 0 ? "ahead of" : "behind"} the chain's`,
	};
}
