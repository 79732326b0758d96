// Random submissions, cancels, blocks and restarts of one transaction, against a model that knows
// nothing of how the relay keeps it.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ENDPOINTS, type SubmissionPath } from "../../../relay/domain/endpoints.ts";
import { isLive } from "../../../relay/domain/record.ts";
import type { CancelOutcome, SubmitOutcome } from "../../../relay/domain/transaction.ts";
import { type Brought, cancelBy, hash, holds, offer, R, S, stageOf } from "./ownersFixture.ts";
import { LIFE_BLOCKS, StagesFixture } from "./stagesFixture.ts";

/**
 * A model of a few lines: all that each client asked for, and whether it still wants the
 * transaction. The transaction fails its simulation until it is sent.
 */
class Model {
	readonly asked: Brought[] = [];
	/** Clients that cancelled it. */
	readonly gone = new Set<string>();
	isOut = false;
	over: "no" | "for all" | "for these" = "no";

	/** The answer to the client. */
	bring(step: Brought): SubmitOutcome["outcome"] {
		const { by, path = "fast" } = step;
		if (this.over === "for all" || (this.over === "for these" && this.gone.has(by))) return "known";
		if (this.over === "for these") {
			if (step.again !== true || by === "page") return "rejected";
			this.over = "no";
			this.isOut = false;
			this.asked.push(step);
			return "accepted";
		}
		const isNew = this.asked.length === 0;
		const first = this.asked.find((one) => !this.gone.has(one.by))?.by;
		const isLate = this.isOut && (by === "page" || by !== first);
		const isHidden = this.isOut && ENDPOINTS[path].sharing === "never";
		this.asked.push({ ...step, path: isLate ? this.path : path, hidden: isHidden });
		return isNew ? "accepted" : "known";
	}

	get path(): SubmissionPath {
		const order = ["fullprivacy", "noreverts", "fast", "maxbackruns", "nochecks"] as const;
		return order.find((one) => this.asked.some(({ path = "fast" }) => path === one)) ?? "fast";
	}

	get holds(): string {
		const shares = new Set(this.asked.map(({ path = "fast" }) => ENDPOINTS[path].sharing as string));
		const isHidden = shares.has("never") || this.asked.some(({ hidden }) => hidden);
		const sharing = isHidden ? "never" : shares.has("likely") ? "likely" : "always";
		const refunds = new Set(this.asked.map(({ refund }) => refund ?? null));
		const [refund] = refunds.size === 1 ? refunds : [null];
		return `${this.path} ${sharing} ${refund === R ? "R" : refund === S ? "S" : "sender"}`;
	}

	/** The answer to the client. */
	cancel(by: string): CancelOutcome {
		if (by === "signature") {
			this.over = "for all";
			return "cancelled";
		}
		if (by === "page" || !this.asked.some((one) => one.by === by)) return "notPending";
		if (this.over !== "no") return "cancelled";
		this.gone.add(by);
		if (this.asked.some((one) => !this.gone.has(one.by))) return "stillWanted";
		this.over = "for these";
		return "cancelled";
	}
}

const NAMES = ["a", "b", "c", "page", "e"] as const;
const STEPS = fc.oneof(
	{
		weight: 4,
		arbitrary: fc.record({
			by: fc.constantFrom(...NAMES),
			// A transaction on /nochecks is sent at once. The model leaves that to the table.
			path: fc.constantFrom(
				...(Object.keys(ENDPOINTS) as SubmissionPath[]).filter((one) => one !== "nochecks"),
			),
			refund: fc.constantFrom(null, R, S),
			again: fc.boolean(),
		}),
	},
	{ weight: 3, arbitrary: fc.constantFrom(...NAMES, "d") },
	{ weight: 1, arbitrary: fc.constantFrom("restart" as const, "block" as const, "out" as const) },
	{ weight: 1, arbitrary: fc.constant("signature" as const) },
);

test("random submissions, cancels, blocks and restarts end as the model says", async () => {
	await fc.assert(
		fc.asyncProperty(fc.array(STEPS, { maxLength: 25 }), async (steps) => {
			let fixture = new StagesFixture();
			fixture.failing.add(hash);
			const model = new Model();
			let age = 0;
			const passBlock = async () => {
				if (age < LIFE_BLOCKS - 5) await fixture.block();
				age += 1;
			};
			for (const step of steps) {
				if (typeof step === "object") {
					assert.equal((await offer(fixture, step)).outcome, model.bring(step), JSON.stringify(step));
				} else if (step === "restart") {
					const failing = fixture.failing.has(hash);
					fixture = await fixture.restart();
					if (failing) fixture.failing.add(hash);
				} else if (step === "block") await passBlock();
				else if (step === "out") {
					fixture.failing.delete(hash);
					await passBlock();
				} else if (model.asked.length > 0) {
					assert.equal(await cancelBy(fixture, step), model.cancel(step), `cancel by ${step}`);
				}
				model.isOut = fixture.builders.isOut(hash);
				if (model.asked.length === 0) continue;
				const stage = await stageOf(fixture);
				assert.equal(isLive(stage), model.over === "no", stage);
				if (model.over === "no") assert.equal(holds(fixture), model.holds);
			}
			assert.deepEqual(fixture.faults, []);
		}),
		{ numRuns: 200 },
	);
});
