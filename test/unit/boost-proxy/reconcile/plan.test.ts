// The plan as a table: how a row stands at the relay and at the fallback, who of the two is out, and what is to be done.

import assert from "node:assert/strict";
import { test } from "node:test";
import { UPSTREAMS, type UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import {
	ABSENT,
	ended,
	NEVER,
	type Row,
	replacementPendingAt,
	type Standing,
} from "../../../../boost-proxy/domain/row.ts";
import { type Action, type Health, plan } from "../../../../boost-proxy/reconcile/plan.ts";
import { HEALTHY, NOW, rowOf, STANDINGS, type StandingName } from "./planFixture.ts";

function actionsOf(rows: readonly Row[], health: Health, latest?: bigint | null): readonly string[] {
	return [...plan(rows, health, NOW, latest)].map(said);
}

function said(action: Action): string {
	const what = action.kind === "send" ? `${action.kind} for ${action.need}` : action.kind;
	return `${what}: ${action.row.nonce} at the ${action.to}`;
}

/** Who is out. */
type Out = "none" | "relay" | "fallback" | "both";
const OUTS: readonly Out[] = ["none", "relay", "fallback", "both"];

function healthOf(out: Out): Health {
	const isUnavailable = (name: UpstreamName) => out === "both" || out === name;
	return {
		relay: { ...HEALTHY.relay, isUnavailable: isUnavailable("relay") },
		fallback: { ...HEALTHY.fallback, isUnavailable: isUnavailable("fallback") },
	};
}

const HANDOVER = "send for handover";
const LOST = "send for lost";
/** A letter for each action at relay and fallback: what is to be done with none, relay, fallback or both out. */
const LETTERS: Readonly<Record<string, string>> = { h: HANDOVER, l: LOST, w: "wait" };

/**
 * Each pair of standings. A cell says what is done at the relay and at the fallback: `h` handed over, `l` given again what it
 * has lost, `w` waits for its time, `.` nothing. Columns: nobody is out, the relay, the fallback, both.
 */
const TABLE: Readonly<Record<StandingName, Readonly<Record<StandingName, string>>>> = {
	absent: {
		...{
			absent: "h. .h h. ..",
			given: ".. .. h. ..",
			due: "h. .h h. ..",
			later: "h. .w h. ..",
			has: ".. .. h. ..",
		},
		...{ lost: "h. .l h. ..", refused: "h. .. h. ..", spent: "h. .. h. .." },
	},
	given: {
		...{
			absent: ".. .h .. ..",
			given: ".. .. .. ..",
			due: ".. .h .. ..",
			later: ".. .w .. ..",
			has: ".. .. .. ..",
		},
		...{ lost: ".. .l .. ..", refused: ".. .. .. ..", spent: ".. .. .. .." },
	},
	due: {
		...{
			absent: "h. .h h. ..",
			given: ".. .. h. ..",
			due: "h. .h h. ..",
			later: "h. .w h. ..",
			has: ".. .. h. ..",
		},
		...{ lost: "h. .l h. ..", refused: "h. .. h. ..", spent: "h. .. h. .." },
	},
	later: {
		...{
			absent: "wh .h w. ..",
			given: ".. .. w. ..",
			due: "wh .h w. ..",
			later: "ww .w w. ..",
			has: ".. .. w. ..",
		},
		...{ lost: "wl .l w. ..", refused: "w. .. w. ..", spent: "w. .. w. .." },
	},
	has: {
		...{
			absent: ".. .h .. ..",
			given: ".. .. .. ..",
			due: ".. .h .. ..",
			later: ".. .w .. ..",
			has: ".. .. .. ..",
		},
		...{ lost: ".. .l .. ..", refused: ".. .. .. ..", spent: ".. .. .. .." },
	},
	lost: {
		...{
			absent: "l. .h l. ..",
			given: "l. .. l. ..",
			due: "l. .h l. ..",
			later: "l. .w l. ..",
			has: "l. .. l. ..",
		},
		...{ lost: "l. .l l. ..", refused: "l. .. l. ..", spent: "l. .. l. .." },
	},
	refused: {
		...{
			absent: ".h .h .. ..",
			given: ".. .. .. ..",
			due: ".h .h .. ..",
			later: ".w .w .. ..",
			has: ".. .. .. ..",
		},
		...{ lost: ".l .l .. ..", refused: ".. .. .. ..", spent: ".. .. .. .." },
	},
	spent: {
		...{
			absent: ".h .h .. ..",
			given: ".. .. .. ..",
			due: ".h .h .. ..",
			later: ".w .w .. ..",
			has: ".. .. .. ..",
		},
		...{ lost: ".l .l .. ..", refused: ".. .. .. ..", spent: ".. .. .. .." },
	},
};

test("every pair of standings, whoever is out", () => {
	for (const [atRelay, columns] of Object.entries(TABLE) as [StandingName, (typeof TABLE)[StandingName]][]) {
		for (const [atFallback, cells] of Object.entries(columns) as [StandingName, string][]) {
			const row = rowOf(1, { relay: STANDINGS[atRelay], fallback: STANDINGS[atFallback] });
			for (const [i, cell] of cells.split(" ").entries()) {
				const out = OUTS[i] ?? "none";
				const expected = UPSTREAMS.flatMap((to, at) => {
					const letter = LETTERS[cell[at] ?? "."];
					return letter === undefined ? [] : [`${letter}: 1 at the ${to}`];
				});
				const what = `${atRelay} at the relay, ${atFallback} at the fallback, out: ${out}`;
				assert.deepEqual(actionsOf([row], healthOf(out)), expected, what);
			}
		}
	}
});

const AT_RELAY = { relay: STANDINGS.has, fallback: ABSENT };

test("what an upstream is replacementPending it gets, whoever else has it; where it may not go that is forgotten", () => {
	const row = replacementPendingAt(rowOf(1, AT_RELAY), "fallback");
	assert.deepEqual(actionsOf([row], HEALTHY), ["send for replacement: 1 at the fallback"]);
	assert.deepEqual(actionsOf([row], healthOf("fallback")), []);
	const fallback = { ...HEALTHY.fallback, mayHave: () => false };
	assert.deepEqual(actionsOf([row], { ...HEALTHY, fallback }), ["forget: 1 at the fallback"]);
});

test("what has ended is never sent; who was not told is, in time, and forgotten where there is no way", () => {
	const row = ended(rowOf(1, AT_RELAY), "cancelled", 1, ["relay", "fallback"]);
	assert.deepEqual(actionsOf([row], healthOf("relay")), ["cancel: 1 at the fallback"]);
	const fallback = { ...HEALTHY.fallback, cancels: false };
	assert.deepEqual(actionsOf([row], { ...HEALTHY, fallback }), [
		"cancel: 1 at the relay",
		"forget: 1 at the fallback",
	]);
	assert.deepEqual(actionsOf([row], { relay: HEALTHY.relay }), [
		"cancel: 1 at the relay",
		"forget: 1 at the fallback",
	]);
	const later: Standing = { ...row.at.relay, retryAt: NOW.monotonic + 1, epoch: NOW.epoch };
	assert.deepEqual(actionsOf([{ ...row, at: { relay: later, fallback: ABSENT } }], HEALTHY), [
		"wait: 1 at the relay",
	]);
});

const WITH: readonly (readonly [string, Partial<Row>, readonly string[]])[] = [
	["not acknowledged", { acknowledged: false }, []],
	["past its time", { aliveUntil: NOW.now }, []],
	["seen to by a request", { requests: 1 }, []],
	["of a path that may not go there", { path: "noreverts" }, []],
];

for (const [what, change, expected] of WITH) {
	test(`one that is ${what} goes nowhere`, () => {
		const health = healthOf("relay");
		const fallback = health.fallback && {
			...health.fallback,
			mayHave: (path: string) => path !== "noreverts",
		};
		const row = { ...rowOf(1, AT_RELAY), ...change };
		assert.deepEqual(actionsOf([row], { ...health, ...(fallback && { fallback }) }), expected);
	});
}

test("an upstream that set a limit gets nothing for a while", () => {
	const health = healthOf("relay");
	const fallback = { ...HEALTHY.fallback, pausedUntil: NOW.monotonic + 1 };
	assert.deepEqual(actionsOf([rowOf(1, AT_RELAY)], { ...health, fallback }), ["wait: 1 at the fallback"]);
});

test("of one nonce the last acknowledged one counts, and none while a request sees to any", () => {
	const [first, second] = [rowOf(1, AT_RELAY), { ...rowOf(1, AT_RELAY), hash: "0x2" }];
	const sentTo = (rows: readonly Row[]) =>
		[...plan(rows, healthOf("relay"), NOW)].flatMap(({ kind, row }) => (kind === "send" ? [row.hash] : []));
	assert.deepEqual(sentTo([first, second]), ["0x2"]);
	assert.deepEqual(sentTo([first, { ...second, acknowledged: false }]), [first.hash]);
	assert.deepEqual(sentTo([first, { ...second, requests: 1 }]), []);
});

test("nonces go one after another: what stands behind one that is not there waits", () => {
	const rows = [1, 2, 3].map((n) => rowOf(n, AT_RELAY));
	const [one, ...rest] = actionsOf(rows, healthOf("relay"));
	assert.equal(one, "send for handover: 1 at the fallback");
	assert.deepEqual(rest, ["wait: 2 at the fallback", "wait: 3 at the fallback"]);
	const refused = { ...AT_RELAY, fallback: STANDINGS.spent };
	const [, ...behind] = [rowOf(1, refused), ...rows.slice(1)];
	assert.equal(
		actionsOf([rowOf(1, refused), ...behind], healthOf("relay"))[0],
		"send for handover: 2 at the fallback",
		"it takes gaps",
	);
});

test("who takes no gaps gets what follows the chain's nonce or what it has, and only that", () => {
	const health = healthOf("relay");
	const fallback = { ...HEALTHY.fallback, takesGaps: false };
	const rows = [4, 5, 6, 8].map((n) => rowOf(n, AT_RELAY));
	const ask = (latest: bigint | null, some = rows) =>
		actionsOf(some, { ...health, fallback }, latest).filter((one) => one.startsWith("send"));
	assert.deepEqual(ask(null), [], "an unknown nonce is no nonce");
	assert.deepEqual(ask(5n), ["send for handover: 5 at the fallback"], "4 is used");
	const [, , six, eight] = rows;
	const five = rowOf(5, { relay: STANDINGS.has, fallback: STANDINGS.has });
	assert.deepEqual(ask(5n, [five, six as Row, eight as Row]), ["send for handover: 6 at the fallback"]);
	assert.deepEqual(ask(7n, [eight as Row]), [], "7 is missing");
	assert.equal(STANDINGS.spent.retryAt, NEVER);
});
