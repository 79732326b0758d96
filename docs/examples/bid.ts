// Watches the relay's feed and bids on each transaction. The backrun only pays the block's builder, by the contract of Payer.sol.
// Yours would earn something first. Prints the outcomes of its bids, and ends when one is in a block.
//
//     RELAY_WS_URL=ws://127.0.0.1:8080 PRIVATE_KEY=0x… PAYER=0x… node --import tsx docs/examples/bid.ts

import { once } from "node:events";
import { Wallet } from "ethers";
import { WebSocket } from "ws";

const { RELAY_WS_URL = "ws://127.0.0.1:8080", PRIVATE_KEY = "", PAYER = "" } = process.env;
const BID_WEI = 1_000_000_000_000n;
const GWEI = 1_000_000_000n;

type Fields = Readonly<Record<string, unknown>>;

if (PRIVATE_KEY === "" || PAYER === "")
	throw new Error("set PRIVATE_KEY, and PAYER to the contract's address");
const wallet = new Wallet(PRIVATE_KEY);
const socket = new WebSocket(RELAY_WS_URL);
const waiting = new Map<number, (answer: Fields) => void>();
let lastId = 0;

/** Calls a method of the relay over the websocket. */
function call(method: string, ...params: unknown[]): Promise<unknown> {
	lastId += 1;
	const id = lastId;
	socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
	return new Promise((resolve, reject) => {
		waiting.set(id, ({ result, error }) => {
			if (error === undefined) resolve(result);
			else reject(new Error((error as { message: string }).message));
		});
	});
}

function tell(line: string): void {
	process.stdout.write(`${line}\n`);
}

/** Bids for the next block, and subscribes to the bid's status. */
async function bidOn(target: string): Promise<void> {
	const [nonce, head] = await Promise.all([
		call("eth_getTransactionCount", wallet.address, "latest"),
		call("eth_getBlockByNumber", "latest", false),
	]);
	const { number, baseFeePerGas } = head as { number: string; baseFeePerGas: string };
	const backrun = await wallet.signTransaction({
		...{
			type: 2,
			chainId: await chainId,
			nonce: Number(nonce),
			to: PAYER,
			value: BID_WEI,
			gasLimit: 60_000n,
		},
		...{ maxPriorityFeePerGas: GWEI, maxFeePerGas: 2n * BigInt(baseFeePerGas) + GWEI },
	});
	const blockNumber = `0x${(Number(number) + 1).toString(16)}`;
	const bundle = await call("eth_sendBundle", { txs: [target, backrun], blockNumber });
	tell(`bid ${BID_WEI} wei on ${target}: bundle ${bundle}`);
	await call("eth_subscribe", "service_bundleStatus", bundle);
}

socket.on("message", (data) => {
	const { id, params, ...answer } = JSON.parse(String(data)) as Fields;
	const { result } = (params ?? {}) as { result?: Fields };
	if (result === undefined) waiting.get(Number(id))?.(answer);
	else if (result.bundleHash === undefined) {
		bidOn(String(result.hash)).catch((refused: Error) => tell(`refused: ${refused.message}`));
	} else {
		const { bundleHash, blockNumber, stage, reason } = result;
		tell(`bundle ${bundleHash} in block ${blockNumber}: ${stage} ${reason ?? ""}`.trimEnd());
		if (stage === "INCLUDED") socket.close();
	}
});

await once(socket, "open");
const chainId = call("eth_chainId").then(Number);
await call("eth_subscribe", "service_partialPendingTransactions");
tell(`${wallet.address} watches ${RELAY_WS_URL}`);
await once(socket, "close");
