// The home page: builds the RPC URL from the chosen options, adds it to a wallet, and shows the
// state of the service.

import { call, element, ether, get, now, repeat, say, walletButtons } from "./common.js";
import { copies, everySecond, explorerLink, heard, span, watchSilence } from "./live.js";

const CHAINS = { 1: "Ethereum", 17000: "Holesky", 31337: "Anvil", 560048: "Hoodi", 11155111: "Sepolia" };
const FIGURES_MS = 4_000;
const TOTALS_MS = 60_000;
const IS_BOOST = document.body.dataset.service === "boost";

function chosen() {
	return document.querySelector("input[name=endpoint]:checked");
}

/** The URL, or the problem with the options. */
function build() {
	const query = new URLSearchParams();
	const { value: path, dataset } = chosen();
	const isSoft = dataset.soft !== undefined;
	element("soft-label").hidden = !isSoft;
	if (isSoft && element("soft").checked) query.set("softCancellations", "true");
	const refund = element("refund").value.trim();
	if (refund !== "" && !/^0x[0-9a-fA-F]{40}$/.test(refund)) {
		return { problem: "Refunds: expected an address, 0x and 40 hex digits." };
	}
	if (refund !== "") query.set("refundRecipient", refund);
	const referrer = element("referrer").value.trim();
	if (referrer !== "") query.set("referrer", referrer);
	const search = query.toString();
	return { url: `${location.origin}${path}${search === "" ? "" : `?${search}`}` };
}

function show() {
	const { url = "", problem = "" } = build();
	say("url", url);
	say("url-problem", problem);
	element("copy").hidden = url === "";
}

async function add(provider) {
	const { url } = build();
	if (url === undefined) return;
	try {
		const chainId = await call("eth_chainId");
		const name = CHAINS[Number(chainId)] ?? `Chain ${Number(chainId)}`;
		const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
		await provider.request({
			method: "wallet_addEthereumChain",
			params: [{ chainId, chainName: `${name} (private)`, nativeCurrency, rpcUrls: [url] }],
		});
		say("added", "Added. Choose the network in your wallet, and send as always.");
	} catch (fault) {
		say("added", `Your wallet did not add it: ${fault.message}`);
	}
}

/** When the last block was made, in ms since the epoch; null until it is known. */
let blockAt = null;

function drawAge() {
	if (blockAt !== null) say("block-age", `${span(now() - blockAt)} ago`);
}

async function chainFigures() {
	const [chainId, block] = await Promise.all([
		call("eth_chainId"),
		call("eth_getBlockByNumber", ["latest", false]),
	]);
	const name = CHAINS[Number(chainId)];
	say("chain", name === undefined ? `${Number(chainId)}` : `${name} (${Number(chainId)})`);
	const number = String(Number(block.number));
	if (element("block").textContent !== number)
		element("block").replaceChildren(explorerLink("block", number));
	blockAt = Number(block.timestamp) * 1000;
	drawAge();
	say("fee", `${Number((Number(block.baseFeePerGas ?? 0) / 1e9).toPrecision(3))} gwei`);
}

/** Boost's own word, which it has also while nobody can say anything of the chain. */
async function serviceState() {
	if (!IS_BOOST) return "the relay answers";
	const { relay, fallback } = await get("/status");
	if (relay.state === "closed") {
		const isAlone = fallback !== null && fallback.state !== "closed";
		return isAlone
			? "the relay is healthy, but no relay could replace it now: the fallback is down"
			: "the relay is healthy";
	}
	return fallback?.state === "closed"
		? "the relay is down: another private relay replaces it, and nothing is lost"
		: "nothing can be sent now: the relay is down, and no other relay can replace it. Acknowledged transactions are kept";
}

async function figures() {
	const [state, chain] = await Promise.allSettled([serviceState(), chainFigures()]);
	if (state.status === "fulfilled" && (IS_BOOST || chain.status === "fulfilled")) say("service", state.value);
	else say("service", "it does not answer now");
	heard(chain.status === "fulfilled");
}

async function totals() {
	const { transactions, refundedWei, lastDay } = await get("/totals");
	say("total-transactions", transactions.toLocaleString("en"));
	say("total-refunded", ether(refundedWei));
	const count = lastDay.transactions;
	say("total-day", count.toLocaleString("en"));
	const refunded = ether(lastDay.refundedWei);
	say("total-day-refunded", `${count === 1 ? "transaction" : "transactions"}, ${refunded} refunded`);
	element("totals").hidden = false;
}

element("builder").addEventListener("input", show);
element("builder").addEventListener("submit", (event) => event.preventDefault());
copies("copy", "url");
element("follow").addEventListener("submit", (event) => {
	event.preventDefault();
	location.assign(`/tx/${element("hash").value.trim()}`);
});
walletButtons("wallets", (name) => `Add to ${name}`, add);
element("stand-in").hidden = !IS_BOOST;
show();
watchSilence();
everySecond(drawAge);
void repeat(FIGURES_MS, figures, () => {});
// A relay without totals has no such path, and a relay that is down does not answer. Then nothing
// is shown.
void repeat(TOTALS_MS, totals, () => {});
