// A searcher's own bids: asked for with the signature of its key, by day and by block.

import { chart, percent, short } from "./charts.js";
import { call, element, ether, say, walletButtons } from "./common.js";
import { signedRead } from "./signedRead.js";
import { made, scrolls, tableOf } from "./tables.js";

/** Most days and bundles of the page, which stays small by that. */
const PAGE = { limit: 90, byBlock: 60 };
const DAY_S = 86_400;
/** The stages and reasons in words. */
const WORDS = {
	ACCEPTED: "accepted",
	SENT: "sent",
	INCLUDED: "landed",
	LOST: "lost",
	NOT_PLACED: "not placed",
	TARGET_NOT_MINED: "target not mined",
	NOT_INCLUDED: "not included",
	REPLACED: "replaced",
	CANCELLED: "cancelled",
	DROPPED: "dropped",
	notChosen: "not chosen",
	reverted: "reverts",
	paysNothing: "pays nothing",
	invalid: "invalid",
	notSimulated: "not simulated",
	timestamp: "outside of its times",
	transactionMined: "its transaction was mined alone",
	reorganised: "its block left the chain",
};

async function show(provider) {
	try {
		const signed = await signedRead(provider, "bundles");
		if (signed === null) return;
		const headers = { "x-leeward-signature": signed.header };
		draw(signed.account.toLowerCase(), await call("service_searcherStats", [PAGE], "/", headers));
	} catch (fault) {
		say("told", `Not shown: ${fault.message}`);
	}
}

/** `days`: the last one first. */
function draw(key, days) {
	const sum = (name) => days.reduce((all, day) => all + day[name], 0);
	const rows = days.flatMap((day) => day.byBlock).sort((a, b) => b.blockNumber - a.blockNumber);
	say("key", key);
	say("bids", sum("bids").toLocaleString("en"));
	say("landed", landedOf(sum("landed"), sum("bids") + sum("bundles")));
	say("paid", ether(days.reduce((all, { paid }) => all + BigInt(paid), 0n)));
	say("time", timeOf(meanOf(days)));
	const count = days.length === 1 ? "One day" : `${days.length || "No"} days`;
	say("told", `${count} with bids of this key.`);
	element("found").hidden = false;
	element("days").hidden = days.length === 0;
	element("blocks").hidden = rows.length === 0;
	if (days.length > 0) drawDays([...days].reverse());
	element("by-block").replaceChildren(
		tableOf(["Block", "Target", "Bid", "Outcome", "Paid", "From feed to bid"], rows.map(blockRow)),
	);
}

function drawDays(days) {
	const known = new Map(days.map((day) => [Date.parse(day.day) / 1_000, day]));
	const [first, last] = [Math.min(...known.keys()), Math.max(...known.keys())];
	const times = Array.from({ length: (last - first) / DAY_S + 1 }, (_, i) => first + i * DAY_S);
	// On a day without a row there were no bids, but no time of one.
	const column = (of, none = 0) => times.map((time) => (known.has(time) ? of(known.get(time)) : none));
	element("charts").replaceChildren();
	const add = (options, ...columns) =>
		chart(element("charts"), options)(times, columns, { from: first - DAY_S / 2 });
	const counts = { title: "Bids and bundles", lines: ["sent", "landed"], byDay: "lines" };
	add(
		counts,
		column(({ bids, bundles }) => bids + bundles),
		column(({ landed }) => landed),
	);
	add(
		{ title: "Paid", lines: ["paid"], unit: "ETH", byDay: "bars" },
		column(({ paid }) => Number(paid) / 1e18),
	);
	add(
		{ title: "From feed to bid", lines: ["mean"], unit: "ms", byDay: "lines" },
		column(({ feedToBidMs }) => feedToBidMs, null),
	);
	const columns = ["Day (UTC)", "Bids", "Bundles", "Landed", "Withdrawn", "Paid", "Feed to bid", "Others"];
	element("by-day").replaceChildren(tableOf(columns, [...days].reverse().map(dayRow)));
}

function dayRow({ day, bids, bundles, landed, withdrawn, paid, feedToBidMs, lost }) {
	const others = Object.entries(lost).map(([why, count]) => `${count} ${WORDS[why] ?? why}`);
	const counts = [bids, bundles, landed, withdrawn].map((count) => count.toLocaleString("en"));
	return [day, ...counts, ether(paid), timeOf(feedToBidMs), others.join(", ") || "–"];
}

function blockRow({ blockNumber, target, bid, stage, reason, paid, feedToBidMs }) {
	const outcome = WORDS[reason ?? stage] ?? reason ?? stage;
	const payment = paid === null ? "–" : `${ether(paid)}${stage === "LOST" ? " by another" : ""}`;
	return [
		String(blockNumber),
		target === null ? "plain bundle" : linkTo(target),
		bid === null ? "–" : ether(bid),
		outcome,
		payment,
		timeOf(feedToBidMs),
	];
}

function linkTo(hash) {
	const link = document.createElement("a");
	link.href = `/tx/${hash}`;
	const code = made("code", `${hash.slice(0, 6)}…${hash.slice(-4)}`);
	code.title = hash;
	link.append(code);
	return link;
}

/** The mean over all bids of the days for which it is known; each day counts by its bids. */
function meanOf(days) {
	const timed = days.filter(({ feedToBidMs }) => feedToBidMs !== null);
	const bids = timed.reduce((all, day) => all + day.bids, 0);
	return bids === 0 ? null : timed.reduce((all, day) => all + day.bids * day.feedToBidMs, 0) / bids;
}

function landedOf(landed, all) {
	return all === 0 ? "0" : `${landed.toLocaleString("en")} (${percent((100 * landed) / all)})`;
}

function timeOf(ms) {
	return ms === null ? "–" : `${short(ms)} ms`;
}

scrolls(element("by-day"), "By day");
scrolls(element("by-block"), "By block");
walletButtons("wallets", (name) => `Show with ${name}`, show);
