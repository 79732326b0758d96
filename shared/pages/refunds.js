// The refunds of the wallet's account: asked for with its signature, shown by month and one by one,
// and saved as CSV.

import { amount } from "./amounts.js";
import { call, element, ether, say, walletButtons } from "./common.js";
import { groups } from "./groups.js";
import { signedRead } from "./signedRead.js";

/** The address in the page's path; without one it is the wallet's account. */
const [, , asked] = location.pathname.split("/");
/** The columns of a refund, which stand before its fields on a phone. */
const NAMES = ["Block", "Transaction", "Paid", "Owed", "From", "To"];
/** How the refunds on the page were asked for. */
let question = null;

/**
 * The answer to each part of the question, one after another. `nextOf` finds the path of the next
 * part.
 */
async function parts({ path, header }, accept, nextOf) {
	const answers = [];
	for (let next = path; next; ) {
		const headers = { accept, "x-leeward-signature": header };
		const answer = await fetch(next, { headers });
		const text = await answer.text();
		if (!answer.ok) throw new Error(JSON.parse(text).error);
		answers.push(text);
		next = nextOf(answer, text);
	}
	return answers;
}

async function show(provider) {
	try {
		const signed = await signedRead(provider, "refunds");
		if (signed === null) return;
		const address = (asked ?? signed.account).toLowerCase();
		question = { path: `/refunds/${address}`, header: signed.header };
		const answers = await parts(question, "application/json", (_, text) => JSON.parse(text).next);
		const pages = answers.map((text) => JSON.parse(text));
		draw(pages);
		await drawMonths(pages.flatMap(({ refunds }) => refunds));
	} catch (fault) {
		say("told", `Not shown: ${fault.message}`);
	}
}

function draw(pages) {
	const [{ address, since }] = pages;
	const refunds = pages.flatMap((page) => page.refunds);
	const sum = (name) => ether(pages.reduce((all, page) => all + BigInt(page[name]), 0n));
	say("address", address);
	say("paid", sum("paid"));
	say("owed", sum("owed"));
	const count = refunds.length === 1 ? "1 refund" : `${refunds.length || "No"} refunds`;
	say("told", `${count} since ${new Date(since).toLocaleDateString([], { dateStyle: "long" })}.`);
	element("rows").replaceChildren(...refunds.map(line));
	element("found").hidden = false;
	element("list").hidden = refunds.length === 0;
}

/** One line for each month, the latest first. Without the blocks' times there are none. */
async function drawMonths(refunds) {
	const months = await groups(refunds, ({ block }) => monthOf(block)).catch(() => []);
	element("months").hidden = months.length === 0;
	element("each").open = months.length === 0;
	const sums = months.map(([month, ofMonth]) => {
		const sum = (name) => ofMonth.reduce((all, refund) => all + BigInt(refund[name]), 0n);
		return { month, count: ofMonth.length, paid: sum("wei"), owed: sum("owed") };
	});
	const most = Math.max(1, ...sums.map(({ paid }) => Number(paid)));
	element("month-rows").replaceChildren(
		...sums.map(({ month, count, paid, owed }) => {
			const bar = document.createElement("span");
			bar.className = "bar";
			bar.style.width = `${(Number(paid) / most) * 100}%`;
			const name = document.createElement("th");
			name.scope = "row";
			name.append(month);
			return rowOf(name, ...cells([count, [amount(paid), bar], amount(owed)]));
		}),
	);
}

async function monthOf(block) {
	const { timestamp } = await call("eth_getBlockByNumber", [`0x${block.toString(16)}`, false]);
	return new Date(Number(timestamp) * 1000).toLocaleDateString([], { month: "short", year: "numeric" });
}

function line({ block, hash, wei, owed, recipient, payer }) {
	const link = document.createElement("a");
	link.href = `/tx/${hash}`;
	link.append(shortened(hash));
	const contents = [block, link, ether(wei), ether(owed), shortened(payer), shortened(recipient)];
	const row = rowOf(...cells(contents));
	NAMES.forEach((name, i) => {
		row.children[i].dataset.name = name;
	});
	return row;
}

function cells(contents) {
	return contents.map((content) => {
		const cell = document.createElement("td");
		cell.append(...[content].flat());
		return cell;
	});
}

function rowOf(...children) {
	const row = document.createElement("tr");
	row.append(...children);
	return row;
}

/** The ends of a hash or an address; the whole one is its title. */
function shortened(hex) {
	const code = document.createElement("code");
	code.title = hex;
	code.textContent = `${hex.slice(0, 6)}…${hex.slice(-4)}`;
	return code;
}

async function save() {
	try {
		const nextOf = (answer) => /^<([^>]+)>; rel="next"$/.exec(answer.headers.get("link") ?? "")?.[1];
		const texts = await parts(question, "text/csv", nextOf);
		// One header line for all.
		const whole = texts.map((text, i) => (i === 0 ? text : text.slice(text.indexOf("\n") + 1))).join("");
		const link = document.createElement("a");
		link.href = URL.createObjectURL(new Blob([whole], { type: "text/csv" }));
		link.download = `refunds-${element("address").textContent}.csv`;
		link.click();
		URL.revokeObjectURL(link.href);
	} catch (fault) {
		say("told", `Not saved: ${fault.message}`);
	}
}

element("save").addEventListener("click", save);
walletButtons("wallets", (name) => `Show with ${name}`, show);
