// The steps of the sequences. fast-check draws only numbers; each step decides when it runs what
// they mean, so that nearly every step does something whatever went before it.

import fc from "fast-check";
import { GWEI } from "../support/relayFixture.ts";
import { testAccount } from "../support/txFactory.ts";
import { bumped, type ControlModel, type ModelTx, type Path, type SignedTx } from "./model.ts";
import { ACCOUNTS, type Sequence } from "./sequence.ts";

/** One step of a sequence. */
export type Step = fc.AsyncCommand<ControlModel, Sequence>;
type Steps = fc.Arbitrary<Step>;

/** Mixed so that what reverts, softly or not, is as frequent as what is plain. */
const PATH: fc.Arbitrary<Path> = fc.oneof(
	{ arbitrary: fc.constant<Path>("fast"), weight: 3 },
	{ arbitrary: fc.constant<Path>("noreverts"), weight: 3 },
	{ arbitrary: fc.constant<Path>("fullprivacy"), weight: 2 },
	{ arbitrary: fc.constant<Path>("maxbackruns"), weight: 1 },
	{ arbitrary: fc.constant<Path>("nochecks"), weight: 2 },
);
const ACCOUNT = fc.nat(ACCOUNTS - 1);
/** Which of those there are: counted from the last one. */
const PICK = fc.nat(30);
const OFTEN = fc.integer({ min: 0, max: 3 }).map((n) => n > 0);
const RARELY = fc.integer({ min: 0, max: 3 }).map((n) => n === 3);
const SOMETIMES = fc.integer({ min: 0, max: 2 }).map((n) => n === 2);
const STRANGER = "10.9.9.9";
const STRANGERS_KEY = testAccount(666).keyHex;

const submissions: Steps = fc
	.record({
		account: ACCOUNT,
		at: fc.constantFrom("next", "next", "next", "next", "next", "next", "gap", "gap", "used", "far"),
		path: PATH,
		soft: OFTEN,
		gated: SOMETIMES,
		legacy: RARELY,
	})
	.map((wish) =>
		step("submit", wish, (sequence) => {
			const { account, at, path, soft, gated, legacy } = wish;
			const used = sequence.model.chain.nonces[account] ?? 0;
			const next = sequence.model.pendingNonce(account, used);
			const nonce = { next, gap: next + 2, used: Math.max(0, used - 1), far: used + 65 }[at];
			const tx = sequence.sign({ account, nonce, gated, legacy });
			return sequence.submit(tx, path, soft);
		}),
	);

/** Several links of a chain at once, in an order of their own. */
const bursts: Steps = fc
	.record({
		account: ACCOUNT,
		links: fc.array(fc.record({ path: PATH, soft: OFTEN, gated: SOMETIMES, turn: fc.nat(9) }), {
			minLength: 2,
			maxLength: 4,
			size: "max",
		}),
	})
	.map((wish) =>
		step("burst", wish, async (sequence) => {
			const { account, links } = wish;
			const first = sequence.model.pendingNonce(account, sequence.model.chain.nonces[account] ?? 0);
			const made = links.map((link, i) => ({
				...link,
				tx: sequence.sign({ account, nonce: first + i, gated: link.gated }),
			}));
			const order = [...made].sort((a, b) => a.turn - b.turn);
			const answers = await Promise.all(order.map(({ tx, path, soft }) => sequence.send(tx, path, soft)));
			return order
				.map(({ tx, path, soft }, i) => sequence.take(tx, path, soft, answers[i] ?? NONE))
				.join(", ");
		}),
	);

/** In the place of a pending one, with fees that are enough, or a wei short. */
const replacements: Steps = fc
	.record({ pick: PICK, enough: OFTEN, path: PATH, soft: OFTEN, gated: SOMETIMES })
	.map((wish) =>
		step("replace", wish, (sequence) => {
			const { pick, enough, path, soft, gated } = wish;
			const old = picked(pick, pending(sequence));
			const fees = old === undefined ? {} : feesAbove(old, enough);
			const place = old ?? {
				account: 0,
				nonce: sequence.model.pendingNonce(0, sequence.model.chain.nonces[0] ?? 0),
			};
			const tx = sequence.sign({ account: place.account, nonce: place.nonce, gated, ...fees });
			return sequence.submit(tx, path, soft);
		}),
	);

const cancels: Steps = fc
	.record({
		pick: PICK,
		pending: OFTEN,
		who: fc.constantFrom("owner", "owner", "owner", "signer", "stranger", "web page", "signing stranger"),
	})
	.map((wish) =>
		step("cancel", wish, (sequence) => {
			const { pick, who } = wish;
			const all = sequence.model.all();
			const tx = picked(pick, wish.pending && pending(sequence).length > 0 ? pending(sequence) : all);
			if (tx === undefined) return sequence.cancel(`0x${"5e".repeat(32)}`, sequence.owner(0), true);
			const owner = sequence.owner(tx.account);
			const callers = {
				owner,
				signer: { from: STRANGER, key: sequence.keyOf(tx.account) },
				stranger: { from: STRANGER },
				"web page": { ...owner, origin: "https://elsewhere.example" },
				"signing stranger": { from: STRANGER, key: STRANGERS_KEY },
			};
			return sequence.cancel(tx.hash, callers[who], who === "owner" || who === "signer");
		}),
	);

/**
 * A self-transfer with the nonce of one that may be taken back so; with the fees it happens to
 * have.
 */
const softCancels: Steps = fc.record({ pick: PICK, path: PATH, soft: RARELY, pending: OFTEN }).map((wish) =>
	step("soft cancel", wish, (sequence) => {
		const all = sequence.model.all();
		const soft = all.filter((tx) => tx.wasSoft);
		const live = pending(sequence).filter((tx) => tx.soft);
		const tx = picked(wish.pick, wish.pending && live.length > 0 ? live : soft.length > 0 ? soft : all);
		const { account, nonce } = tx ?? { account: 0, nonce: sequence.model.chain.nonces[0] ?? 0 };
		const own = sequence.sign({ account, nonce, self: true, maxFee: 2n * GWEI, tip: 1n });
		return sequence.submit(own, wish.path, wish.soft);
	}),
);

/** The same bytes again, as wallets do; mostly of what has ended. */
const resubmissions: Steps = fc
	.record({
		pick: PICK,
		path: PATH,
		which: fc.constantFrom("ended", "ended", "expired", "any"),
		soft: RARELY,
	})
	.map((wish) =>
		step("send again", wish, async (sequence) => {
			const all = sequence.model.all();
			const ended = all.filter((tx) => tx.end !== null);
			const expired = ended.filter((tx) => tx.end === "EXPIRED");
			const wanted = { any: all, ended, expired }[wish.which];
			const tx = picked(wish.pick, wanted.length > 0 ? wanted : all);
			return tx === undefined ? "nothing" : sequence.submit(tx, wish.path, wish.soft);
		}),
	);

/** Sent and taken back at once, while it is on its way to the builders. */
const hastyCancels: Steps = fc.record({ account: ACCOUNT, path: PATH, replaced: RARELY }).map((wish) =>
	step(
		"submit and cancel",
		wish,
		async (sequence) => {
			const { account, path } = wish;
			const nonce = sequence.model.pendingNonce(account, sequence.model.chain.nonces[account] ?? 0);
			const tx = sequence.sign({ account, nonce });
			const taken = await sequence.submit(tx, path, false);
			if (!wish.replaced) return `${taken}, ${await sequence.cancel(tx.hash, sequence.owner(account), true)}`;
			const instead = sequence.sign({ account, nonce, ...feesAbove(tx, true) });
			return `${taken}, ${await sequence.submit(instead, path, false)}`;
		},
		true,
	),
);

/**
 * Taken back, or replaced, while some builders have it, and for others it waits behind the one
 * before it.
 */
const cancelsOnTheWay: Steps = fc
	.record({ account: ACCOUNT, paths: fc.tuple(PATH, PATH, PATH), replaced: SOMETIMES })
	.map((wish) =>
		step(
			"cancel on the way",
			wish,
			(sequence) =>
				sequence.slowly(async () => {
					const { account, paths } = wish;
					const first = sequence.model.pendingNonce(account, sequence.model.chain.nonces[account] ?? 0);
					const outcomes: string[] = [];
					const [one, two] = [0, 1].map((i) => sequence.sign({ account, nonce: first + i }));
					if (one === undefined || two === undefined) return "nothing";
					outcomes.push(
						await sequence.submit(one, paths[0], false),
						await sequence.submit(two, paths[1], false),
					);
					await sequence.arrives(two);
					const instead = sequence.sign({ account, nonce: two.nonce, ...feesAbove(two, true) });
					outcomes.push(
						await (wish.replaced
							? sequence.submit(instead, paths[2], false)
							: sequence.cancel(two.hash, sequence.owner(account), true)),
					);
					return outcomes.join(", ");
				}),
			true,
		),
	);

/** The account uses a wallet without the relay, or somebody has its bytes. */
const publications: Steps = fc
	.record({ account: ACCOUNT, pick: PICK, at: fc.constantFrom("next", "held", "gap", "again") })
	.map((wish) =>
		step("publish elsewhere", wish, async (sequence) => {
			const { account, pick, at } = wish;
			const held = picked(pick, sequence.model.pendingOf(account));
			const known = picked(pick, sequence.model.all());
			if (at === "again" && known !== undefined) return sequence.blocks.publish(known);
			const next = (await sequence.chain.pendingCounts())[account] ?? 0;
			const nonce = at === "held" && held !== undefined ? held.nonce : at === "gap" ? next + 1 : next;
			return sequence.blocks.publish(sequence.sign({ account, nonce, maxFee: 60n * GWEI, tip: 5n * GWEI }));
		}),
	);

/** A builder has the bytes of what ended from somebody else, and mines it all the same. */
const pushes: Steps = fc.record({ pick: PICK }).map((wish) =>
	step("push", wish, async (sequence) => {
		const ended = sequence.model.all().filter((tx) => tx.end !== null);
		const tx = picked(wish.pick, ended.length > 0 ? ended : sequence.model.all());
		return tx === undefined ? "nothing" : sequence.blocks.push(tx);
	}),
);

const blocks: Steps = fc.constant(step("build", {}, (sequence) => sequence.blocks.build()));

/** Blocks by others, with what is public; the gate may open or shut before. */
const passing: Steps = fc
	.record({ blocks: fc.integer({ min: 1, max: 2 }), gate: fc.constantFrom("open", "shut", "as it is") })
	.map((wish) =>
		step("pass", wish, async (sequence) => {
			const gate = wish.gate === "as it is" ? undefined : wish.gate;
			if (wish.blocks === 2) await sequence.step("pass first", () => sequence.blocks.pass(gate));
			return sequence.blocks.pass(gate);
		}),
	);

const reorganisations: Steps = fc
	.record({ depth: fc.integer({ min: 1, max: 3 }), kept: fc.nat(4), sameHeight: fc.boolean() })
	.map((wish) =>
		step("reorganise", wish, (sequence) =>
			sequence.blocks.reorganise(wish.depth, wish.kept, wish.sameHeight),
		),
	);

const restarts: Steps = fc.constant(step("restart", {}, (sequence) => sequence.restart()));

/** All kinds of steps; how often one stands here is how often it is drawn. */
export const STEPS: readonly Steps[] = [
	...[submissions, submissions, submissions, submissions, bursts, bursts],
	...[replacements, replacements, cancels, cancels, cancels, softCancels, softCancels],
	...[hastyCancels, cancelsOnTheWay],
	...[resubmissions, resubmissions, publications, publications, pushes],
	...[blocks, blocks, blocks, passing, passing, reorganisations, reorganisations, restarts],
];

const NONE = { jsonrpc: "2.0", id: null };

function step(
	name: string,
	wish: object,
	act: (sequence: Sequence) => Promise<string>,
	inFlight = false,
): Step {
	const text = `${name}${JSON.stringify(wish)}`;
	return {
		check: () => true,
		run: async (_, sequence) => {
			await sequence.step(text, () => act(sequence), inFlight);
		},
		toString: () => text,
	};
}

/** Those that may still be sent. */
function pending({ model }: Sequence): readonly ModelTx[] {
	return model.all().filter((tx) => model.isPending(tx));
}

/** Counted from the last one, so that what is new is met most. */
function picked<T>(pick: number, items: readonly T[]): T | undefined {
	return items.at(-1 - (pick % Math.max(1, items.length)));
}

/** Fees that are just enough in the place of these; or with one of them a wei short of that. */
function feesAbove(
	{ maxFee, tip }: SignedTx,
	enough: boolean,
): { readonly maxFee: bigint; readonly tip: bigint } {
	return { maxFee: bumped(maxFee), tip: bumped(tip) - (enough ? 0n : 1n) };
}
