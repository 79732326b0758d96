// The home page: builds the RPC URL from the chosen options, adds it to a wallet, and shows the state of the service.

import { call, element, get, repeat, say, walletButtons } from "./common.js";

const CHAINS = { 1: "Ethereum", 17000: "Holesky", 31337: "Anvil", 560048: "Hoodi", 11155111: "Sepolia" };
/** Paths with soft cancellations. */
const SOFT = ["/noreverts", "/fullprivacy"];
const FIGURES_MS = 4_000;

function chosen() {
	return document.querySelector("input[name=endpoint]:checked").value;
}

/** The URL, or the problem with the options. */
function build() {
	const query = new URLSearchParams();
	const path = chosen();
	const isSoft = SOFT.includes(path);
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
	say("copied", "");
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

async function figures() {
	const [chainId, block] = await Promise.all([
		call("eth_chainId"),
		call("eth_getBlockByNumber", ["latest", false]),
	]);
	const name = CHAINS[Number(chainId)];
	say("chain", name === undefined ? `${Number(chainId)}` : `${name} (${Number(chainId)})`);
	const age = Math.max(0, Math.round(Date.now() / 1000 - Number(block.timestamp)));
	say("block", `${Number(block.number)}, ${age} seconds ago`);
	say("fee", `${Number((Number(block.baseFeePerGas ?? 0) / 1e9).toPrecision(3))} gwei`);
	if (document.body.dataset.service === "relay") {
		say("service", "the relay takes transactions");
		return;
	}
	const status = await get("/status");
	if (status.relay.state === "closed") say("service", "the relay is well");
	else say("service", "the relay is out: another private relay stands in, and nothing is lost");
}

element("builder").addEventListener("input", show);
element("copy").addEventListener("click", async () => {
	await navigator.clipboard.writeText(element("url").textContent);
	say("copied", "Copied.");
});
element("follow").addEventListener("submit", (event) => {
	event.preventDefault();
	location.assign(`/tx/${element("hash").value.trim()}`);
});
walletButtons("wallets", (name) => `Add to ${name}`, add);
show();
void repeat(FIGURES_MS, figures, () => say("service", "it does not answer now"));
