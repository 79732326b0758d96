// The page of one transaction: reads its record, its events as they happen and the head of the
// chain, and has them drawn.

import { cancel } from "./cancel.js";
import { ask, call, element, get, repeat, say, walletButtons } from "./common.js";
import { drawFacts, drawTimes, drawVerdict, replacedBy } from "./facts.js";
import { lifeLines } from "./life.js";
import { copies, everySecond, explorerLink, hasExplorer, heard, watchSilence } from "./live.js";
import { isLive, isOwnCancel } from "./path.js";

const hash = (location.pathname.split("/")[2] ?? "").toLowerCase();
const POLL_MS = 3_000;
const IS_BOOST = document.body.dataset.service === "boost";

/**
 * The known facts: `record` and `by` of the status, the relay's events (`life`), boost's report
 * (`journal`), the node's `receipt`; `maker`, the coinbase of its block, and the `makers` that use
 * it; `ownCancel`: the hash, block and receipt of the wallet's own cancel.
 */
const known = {
	...{ record: null, by: null, life: null, journal: null, receipt: null, maker: null, makers: null },
	...{ ownCancel: null, earlier: null, head: null, info: null },
};
/** The journal does not have it: not asked again. */
let isOutsideJournal = !IS_BOOST;
let drawn = "";

let turn = Promise.resolve();

/** One at a time, so that no older answer is drawn over a newer one. */
function refresh() {
	turn = turn.catch(() => {}).then(readAndShow);
	return turn;
}

async function readAndShow() {
	if (known.record?.stage === undefined) {
		await readRecord();
		if (known.record.stage === undefined) {
			const receipt = await call("eth_getTransactionReceipt", [hash]).catch(() => null);
			drawUnknown(receipt === null ? null : Number(receipt.blockNumber));
			return;
		}
	}
	// The record is asked for last and drawn with the life, so that it knows of all that the life
	// tells.
	if (!IS_BOOST || known.by === "relay") {
		known.life = await get(`/tx/${hash}/events`).catch(() => known.life);
	}
	if (!isOutsideJournal) {
		known.journal = await get(`/tx/${hash}/journal`).catch((fault) => {
			isOutsideJournal = fault.status === 404;
			return known.journal;
		});
	}
	await readRecord();
	await readReceipt();
	known.ownCancel = await readOwnCancel().catch(() => known.ownCancel);
	draw();
}

async function readRecord() {
	const { json, by } = await ask(`/tx/${hash}`);
	known.record = json;
	known.by = by;
}

/**
 * The receipt in the block that contains the transaction now. Until the node returns it, the page
 * has no fee.
 */
async function readReceipt() {
	const block = known.record.blockNumber ?? null;
	if (block !== null && Number(known.receipt?.blockNumber) === block) return;
	Object.assign(known, { receipt: null, maker: null, makers: null });
	if (block === null) return;
	known.receipt = await call("eth_getTransactionReceipt", [hash]).catch(() => null);
	const made = await call("eth_getBlockByNumber", [`0x${block.toString(16)}`, false]).catch(() => null);
	known.maker = made?.miner ?? null;
	known.makers = [];
	if (known.maker === null) return;
	await readInfo();
	for (const [name, addresses] of Object.entries(known.info?.coinbases ?? {})) {
		if (addresses.includes(known.maker.toLowerCase())) known.makers.push(name);
	}
}

/**
 * The wallet's own cancel, once a block contains it: before, its fields would tell a visitor what
 * the user is doing. Null if there is none.
 */
async function readOwnCancel() {
	const { record, life, earlier } = known;
	const { from, to } = record.transaction;
	const isItself = record.stage === "INCLUDED" && from === to;
	const cancel = record.stage === "REPLACED" ? replacedBy(life) : isItself ? hash : null;
	if (cancel === null) return null;
	const receipt = await call("eth_getTransactionReceipt", [cancel]);
	if (receipt === null) return null;
	const transaction = await call("eth_getTransactionByHash", [cancel]);
	const isOne = isOwnCancel(transaction, !isItself || earlier !== null);
	return isOne ? { hash: cancel, blockNumber: Number(receipt.blockNumber), receipt } : null;
}

function draw() {
	const { record, life, journal } = known;
	const shown = JSON.stringify({ ...known, head: null, info: null });
	if (shown === drawn) return;
	drawn = shown;
	element("unknown").hidden = true;
	drawFacts(known);
	tick();
	const lines = lifeLines(life, journal, record.blockNumber ?? null, known.ownCancel !== null);
	element("history").hidden = lines.length === 0;
	element("life").replaceChildren(...lines);
}

function tick() {
	if (known.record?.stage !== undefined) drawTimes(known);
}

/** `block`: the block of the chain that has it all the same, or null. */
function drawUnknown(block) {
	drawVerdict(...(block === null ? ["act", "Not known here"] : ["done", "Not sent through here"]));
	const next = block === null ? "What you can do: see below what to check." : `It is in block ${block}.`;
	say("next", next);
	element("next").hidden = false;
	element("unknown").hidden = false;
	say("check-url", location.origin);
	const elsewhere = element("check-elsewhere");
	const text =
		block === null
			? "Was it sent elsewhere, by another RPC URL or in public? Then only others know of it"
			: `It was sent elsewhere, and mined in block ${block}`;
	elsewhere.replaceChildren(`${text}${hasExplorer ? ": " : "."}`);
	if (hasExplorer) elsewhere.append(explorerLink("tx", hash, "look in the explorer"), ".");
}

/**
 * The line about the transaction that this one replaced, if any. Only a visitor with that hash sees
 * it.
 */
async function readEarlier() {
	const from = new URLSearchParams(location.search).get("replaced") ?? "";
	if (!/^0x[0-9a-f]{64}$/.test(from)) return;
	const { events } = await get(`/tx/${from}/events`);
	if (events.some(({ type, by }) => type === "replaced" && by === hash)) known.earlier = from;
}

/** The head and the length of a slot, for what ticks. */
async function readHead() {
	if (known.record !== null && known.record.stage !== undefined && !isLive(known.record)) return;
	const block = await call("eth_getBlockByNumber", ["latest", false]);
	known.head = { number: Number(block.number), timestamp: Number(block.timestamp) };
	await readInfo();
	tick();
	const chain = await call("eth_chainId");
	say("check-chain", `Is it on the right network? This is chain ${Number(chain)}.`);
}

/** The relay's constants. While it is down, boost itself reports the length of a slot. */
async function readInfo() {
	if (known.info?.txTtlBlocks === undefined && (!IS_BOOST || known.by === "relay")) {
		known.info = await get("/info").catch(() => known.info);
	}
	if (known.info === null && IS_BOOST) known.info = await get("/status").catch(() => null);
}

/** Refreshes the page at each event. If the stream fails, the polls go on. */
function listen() {
	const source = new EventSource(`/tx/${hash}/events`);
	let due = false;
	source.onmessage = () => {
		if (due) return;
		due = true;
		setTimeout(async () => {
			due = false;
			await refresh().catch(() => {});
		}, 50);
	};
	source.onerror = () => source.close();
	return source;
}

say("hash", hash);
document.title = `${hash.slice(0, 10)}…: Leeward`;
for (const [id, of] of [
	["copy", "hash"],
	["copy-from", "from"],
	["copy-to", "to"],
]) {
	copies(id, of);
}
walletButtons(
	"wallets",
	(name) => `Cancel with ${name}`,
	(provider) =>
		cancel(hash, provider, {
			done: () => refresh().catch(() => {}),
			isLive: () => known.record !== null && isLive(known.record),
		}),
);
watchSilence();
everySecond(tick);
void readEarlier().catch(() => {});
void repeat(POLL_MS, readHead, () => {});
let source = null;
void repeat(
	POLL_MS,
	async () => {
		await refresh();
		heard(true);
		const pending = isLive(known.record);
		if (!pending && known.record.stage !== undefined) source?.close();
		else if (
			pending &&
			known.life !== null &&
			(source === null || source.readyState === EventSource.CLOSED)
		) {
			source = listen();
		}
	},
	() => heard(false),
);
