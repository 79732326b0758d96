// Sends a private transaction, and prints its events until it is in a block.
//
//     RELAY_URL=http://127.0.0.1:8080 PRIVATE_KEY=0x… node --import tsx docs/examples/send.ts

import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { JsonRpcProvider, Wallet } from "ethers";

const { RELAY_URL = "http://127.0.0.1:8080", PRIVATE_KEY = "" } = process.env;

if (PRIVATE_KEY === "") throw new Error("set PRIVATE_KEY");
const provider = new JsonRpcProvider(`${RELAY_URL}/fast`);
const wallet = new Wallet(PRIVATE_KEY, provider);
const { hash } = await wallet.sendTransaction({ to: wallet.address, value: 1n });
provider.destroy();
process.stdout.write(`sent ${hash}\n`);

// Each event is a line of JSON after "data: ". A broken stream can be requested again.
const { body } = await fetch(`${RELAY_URL}/tx/${hash}/events`, { headers: { accept: "text/event-stream" } });
if (body === null) throw new Error("the relay does not answer");
const life = Readable.fromWeb(body);
for await (const line of createInterface({ input: life })) {
	if (!line.startsWith("data: ")) continue;
	const { type, block } = JSON.parse(line.slice("data: ".length)) as { type: string; block?: number };
	process.stdout.write(`${type} ${block === undefined ? "" : `(block ${block})`}`.trimEnd().concat("\n"));
	if (type === "included") break;
}
life.destroy();
