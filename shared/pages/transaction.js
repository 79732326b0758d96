// The page of one transaction: reads its record, its events as they happen and the head of the
// chain, and has them drawn.

import { cancel } from "./cancel.js";
import { ask, call, element, get, repeat, say, walletButtons } from "./common.js";
import { drawFacts, drawTimes, isLive } from "./facts.js";
import { builderAnswers, builderLines, lifeLines } from "./life.js";
import { copies, everySecond, explorerLink, hasExplorer, heard, watchSilence } from "./live.js";

const hash = (location.pathname.split("/")[2] ?? "").toLowerCase();
const POLL_MS = 3_000;
const IS_BOOST = document.body.dataset.service === "boost";

/**
 * The known facts: `record` and `by` of the status, the relay's events (`life`), boost's report
 * (`journal`), the node's `receipt`.
 */
const known = {
	...{ record: null, by: null, life: null, journal: null, receipt: null },
	...{ earlier: null, head: null, info: null },
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
	known.receipt = null;
	if (block === null) return;
	known.receipt = await call("eth_getTransactionReceipt", [hash]).catch(() => null);
}

function draw() {
	const { record, life, journal, by, earlier, receipt } = known;
	const shown = JSON.stringify({ record, life, journal, by, earlier, receipt });
	if (shown === drawn) return;
	drawn = shown;
	element("unknown").hidden = true;
	drawFacts(known);
	tick();
	const lines = lifeLines(life, journal, record.blockNumber ?? null);
	element("history").hidden = lines.length === 0;
	element("life").replaceChildren(...lines);
	const answers = builderAnswers(life);
	element("delivered").hidden = answers.size === 0;
	element("builders").replaceChildren(...builderLines(answers));
}

function tick() {
	if (known.record?.stage !== undefined) drawTimes(known);
}

/** `block`: the block of the chain that has it all the same, or null. */
function drawUnknown(block) {
	say("state", block === null ? "Not known here" : "Not sent through here");
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
	if (known.info?.txTtlBlocks === undefined && (!IS_BOOST || known.by === "relay")) {
		known.info = await get("/info").catch(() => known.info);
	}
	// While the relay is down, boost itself reports the length of a slot.
	if (known.info === null && IS_BOOST) known.info = await get("/status").catch(() => null);
	tick();
	const chain = await call("eth_chainId");
	say("check-chain", `Is it on the right network? This is chain ${Number(chain)}.`);
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
