// The plan as a table: the state of a row at the relay and the fallback, their health, and the
// actions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ABSENT, type DeliveryState } from "../../../../boost-proxy/domain/deliveryState.ts";
import { type Route, UPSTREAMS, type UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import { endRow, type Row, setReplacementPending } from "../../../../boost-proxy/domain/row.ts";
import { type Action, plan, type UpstreamHealths } from "../../../../boost-proxy/reconcile/plan.ts";
import { HEALTHY, NOW, rowOf, STATES, type StateName } from "./planFixture.ts";

function actionsOf(
	rows: readonly Row[],
	health: UpstreamHealths,
	nextNonce?: bigint | null,
): readonly string[] {
	return [...plan(rows, health, NOW, nextNonce)].map(said);
}

function said(action: Action): string {
	const what = action.kind === "send" ? `${action.kind} for ${action.need}` : action.kind;
	return `${what}: ${action.row.nonce} at the ${action.to}`;
}

/** The unavailable upstreams. */
type Out = "none" | "relay" | "fallback" | "both";
const NAMES = Object.keys(STATES);

function healthOf(out: Out): UpstreamHealths {
	const isUnavailable = (name: UpstreamName) => out === "both" || out === name;
	return {
		relay: { ...HEALTHY.relay, isUnavailable: isUnavailable("relay") },
		fallback: { ...HEALTHY.fallback, isUnavailable: isUnavailable("fallback") },
	};
}

const HANDOVER = "send for handover";
const LOST = "send for lost";
const LETTERS: Readonly<Record<string, string>> = { h: HANDOVER, l: LOST, w: "wait" };

/**
 * Each pair of delivery states, down at the relay, across at the fallback. A cell has the actions
 * at the relay and at the fallback: `h` sent for a handover, `l` sent again after a loss, `w` waits
 * for its time, `.` nothing. If both are unavailable, nothing is done.
 */
const TABLE: Readonly<Record<Exclude<Out, "both">, string>> = {
	none: `
		-         absent    given     due       later     has       lost      rejected  abandoned
		absent    h.        ..        h.        h.        ..        h.        h.        h.
		given     ..        ..        ..        ..        ..        ..        ..        ..
		due       h.        ..        h.        h.        ..        h.        h.        h.
		later     wh        ..        wh        ww        ..        wl        w.        w.
		has       ..        ..        ..        ..        ..        ..        ..        ..
		lost      l.        l.        l.        l.        l.        l.        l.        l.
		rejected  .h        ..        .h        .w        ..        .l        ..        ..
		abandoned .h        ..        .h        .w        ..        .l        ..        ..
	`,
	relay: `
		-         absent    given     due       later     has       lost      rejected  abandoned
		absent    .h        ..        .h        .w        ..        .l        ..        ..
		given     .h        ..        .h        .w        ..        .l        ..        ..
		due       .h        ..        .h        .w        ..        .l        ..        ..
		later     .h        ..        .h        .w        ..        .l        ..        ..
		has       .h        ..        .h        .w        ..        .l        ..        ..
		lost      .h        ..        .h        .w        ..        .l        ..        ..
		rejected  .h        ..        .h        .w        ..        .l        ..        ..
		abandoned .h        ..        .h        .w        ..        .l        ..        ..
	`,
	fallback: `
		-         absent    given     due       later     has       lost      rejected  abandoned
		absent    h.        h.        h.        h.        h.        h.        h.        h.
		given     ..        ..        ..        ..        ..        ..        ..        ..
		due       h.        h.        h.        h.        h.        h.        h.        h.
		later     w.        w.        w.        w.        w.        w.        w.        w.
		has       ..        ..        ..        ..        ..        ..        ..        ..
		lost      l.        l.        l.        l.        l.        l.        l.        l.
		rejected  ..        ..        ..        ..        ..        ..        ..        ..
		abandoned ..        ..        ..        ..        ..        ..        ..        ..
	`,
};

for (const [out, table] of Object.entries(TABLE) as [Out, string][]) {
	test(`every pair of states, unavailable: ${out}`, () => {
		const [[, ...across] = [], ...lines] = table
			.trim()
			.split("\n")
			.map((line) => line.trim().split(/ +/));
		assert.deepEqual([across, lines.map(([name]) => name)], [NAMES, NAMES]);
		for (const [down, ...cells] of lines as [StateName, ...string[]][]) {
			for (const [i, cell] of cells.entries()) {
				const at = across[i] as StateName;
				const row = rowOf(1, { relay: STATES[down], fallback: STATES[at] });
				const expected = UPSTREAMS.flatMap((to, place) => {
					const what = LETTERS[cell[place] ?? "."];
					return what === undefined ? [] : [`${what}: 1 at the ${to}`];
				});
				assert.deepEqual(
					actionsOf([row], healthOf(out)),
					expected,
					`${down} at the relay, ${at} at the fallback`,
				);
				assert.deepEqual(actionsOf([row], healthOf("both")), []);
			}
		}
	});
}

const AT_RELAY = { relay: STATES.has, fallback: ABSENT };

test("a pending replacement is sent even if another upstream has it, and forgotten where it may not go", () => {
	const row = setReplacementPending(rowOf(1, AT_RELAY), "fallback", true);
	assert.deepEqual(actionsOf([row], HEALTHY), ["send for replacement: 1 at the fallback"]);
	assert.deepEqual(actionsOf([row], healthOf("fallback")), []);
	const fallback = { ...HEALTHY.fallback, accepts: () => false };
	assert.deepEqual(actionsOf([row], { ...HEALTHY, fallback }), ["forget: 1 at the fallback"]);
});

test("an ended row is never sent; pending cancels are sent when due, and forgotten where there is no method", () => {
	const row = endRow(rowOf(1, AT_RELAY), "cancelled", 1, ["relay", "fallback"]);
	assert.deepEqual(actionsOf([row], healthOf("relay")), ["cancel: 1 at the fallback"]);
	const fallback = { ...HEALTHY.fallback, canCancel: false };
	assert.deepEqual(actionsOf([row], { ...HEALTHY, fallback }), [
		"cancel: 1 at the relay",
		"forget: 1 at the fallback",
	]);
	assert.deepEqual(actionsOf([row], { relay: HEALTHY.relay }), [
		"cancel: 1 at the relay",
		"forget: 1 at the fallback",
	]);
	const later: DeliveryState = { ...row.at.relay, retryAt: NOW.monotonic + 1, epoch: NOW.epoch };
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
	test(`one that is ${what} is not sent`, () => {
		const health = healthOf("relay");
		const fallback = health.fallback && {
			...health.fallback,
			accepts: ({ path }: Route) => path !== "noreverts",
		};
		const row = { ...rowOf(1, AT_RELAY), ...change };
		assert.deepEqual(actionsOf([row], { ...health, ...(fallback && { fallback }) }), expected);
	});
}

test("an upstream that rate-limits boost gets nothing for a while", () => {
	const health = healthOf("relay");
	const fallback = { ...HEALTHY.fallback, pausedUntil: NOW.monotonic + 1 };
	assert.deepEqual(actionsOf([rowOf(1, AT_RELAY)], { ...health, fallback }), ["wait: 1 at the fallback"]);
});

test("of one nonce the last acknowledged row counts, and none while a request is in progress", () => {
	const [first, second] = [rowOf(1, AT_RELAY), { ...rowOf(1, AT_RELAY), hash: "0x2" }];
	const sentTo = (rows: readonly Row[]) =>
		[...plan(rows, healthOf("relay"), NOW)].flatMap(({ kind, row }) => (kind === "send" ? [row.hash] : []));
	assert.deepEqual(sentTo([first, second]), ["0x2"]);
	assert.deepEqual(sentTo([first, { ...second, acknowledged: false }]), [first.hash]);
	assert.deepEqual(sentTo([first, { ...second, requests: 1 }]), []);
});

test("nonces are sent in order: later ones wait for a missing one", () => {
	const rows = [1, 2, 3].map((n) => rowOf(n, AT_RELAY));
	const [one, ...rest] = actionsOf(rows, healthOf("relay"));
	assert.equal(one, "send for handover: 1 at the fallback");
	assert.deepEqual(rest, ["wait: 2 at the fallback", "wait: 3 at the fallback"]);
	const replacing = setReplacementPending(rowOf(3, AT_RELAY), "fallback", true);
	assert.deepEqual(
		actionsOf([...rows.slice(0, 2), replacing], healthOf("relay")).at(-1),
		"send for replacement: 3 at the fallback",
		"the nonce is there",
	);
	const abandoned = { ...AT_RELAY, fallback: STATES.abandoned };
	const [, ...behind] = [rowOf(1, abandoned), ...rows.slice(1)];
	assert.equal(
		actionsOf([rowOf(1, abandoned), ...behind], healthOf("relay"))[0],
		"send for handover: 2 at the fallback",
		"it takes gaps",
	);
});

test("an upstream that takes no gaps gets only nonces that follow the chain's or its own", () => {
	const health = healthOf("relay");
	const fallback = { ...HEALTHY.fallback, acceptsNonceGaps: false };
	const rows = [4, 5, 6, 8].map((n) => rowOf(n, AT_RELAY));
	const ask = (nextNonce: bigint | null, some = rows) =>
		actionsOf(some, { ...health, fallback }, nextNonce).filter((one) => one.startsWith("send"));
	assert.deepEqual(ask(null), [], "an unknown nonce is no nonce");
	assert.deepEqual(ask(5n), ["send for handover: 5 at the fallback"], "4 is used");
	const [, , six, eight] = rows;
	const five = rowOf(5, { relay: STATES.has, fallback: STATES.has });
	assert.deepEqual(ask(5n, [five, six as Row, eight as Row]), ["send for handover: 6 at the fallback"]);
	assert.deepEqual(ask(7n, [eight as Row]), [], "7 is missing");
});
