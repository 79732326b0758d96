// Checks a relay's promises about a transaction: the signatures of a receipt by `service_receipt`, and the chain. The receipt, or the
// whole JSON-RPC answer with it, is in a file.
//
//     npm run verify -- receipt.json --rpc https://node.example --signer 0x…

import { realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { verifyTypedData } from "ethers";

/** `by`: who broke the promise, as far as the receipt and the chain show. */
export interface Verdict {
	readonly verdict: "kept" | "broken" | "can't tell";
	readonly why: string;
	readonly by?: string;
}

export interface VerifyOptions {
	/** A node of the chain, by http. Without it the chain is not checked. */
	readonly rpc?: string | undefined;
	/** `receiptSigner` of the relay's GET /info. Without it the signature proves only that the signer has a key. */
	readonly signer?: string | undefined;
}

interface Statement {
	readonly chainId: number;
	readonly signer: string;
	readonly transaction: string;
	readonly refundRecipient: string;
}

export interface Accepted extends Statement {
	readonly acceptedAt: string;
	readonly path: string;
	readonly mayBeDisclosed: boolean;
	readonly refundPercent: number;
	readonly builders: readonly string[];
}

export interface Ended extends Statement {
	readonly stage: string;
	readonly block: number;
	readonly blockHash: string;
	readonly owed: string;
	readonly paid: string;
	readonly cancels: readonly {
		readonly at: string;
		readonly block: number;
		readonly by: string;
		readonly builders: readonly string[];
	}[];
}

interface Signed<S> {
	readonly statement: S;
	readonly signature: string;
}

export interface Receipt {
	readonly accepted: Signed<Accepted>;
	readonly ended: Signed<Ended> | null;
}

/** A transaction's receipt on the chain. */
interface Mined {
	readonly blockHash: string;
	readonly blockNumber: string;
	readonly transactionIndex: string;
	readonly status: string;
}

interface Block {
	readonly miner: string;
	readonly transactions: readonly {
		readonly from: string;
		readonly to: string | null;
		readonly value: string;
	}[];
}

const field = (type: string, ...names: readonly string[]) => names.map((name) => ({ name, type }));
const COMMON = [
	...field("uint256", "chainId"),
	...field("address", "signer"),
	...field("bytes32", "transaction"),
];
const ACCEPTED = {
	Accepted: [
		...COMMON,
		...field("string", "acceptedAt", "path"),
		...field("bool", "mayBeDisclosed"),
		...field("uint256", "refundPercent"),
		...field("address", "refundRecipient"),
		...field("string[]", "builders"),
	],
};
const ENDED = {
	Ended: [
		...COMMON,
		...field("string", "stage"),
		...field("uint256", "block"),
		...field("bytes32", "blockHash"),
		...field("address", "refundRecipient"),
		...field("uint256", "owed", "paid"),
		...field("AcknowledgedCancel[]", "cancels"),
	],
	AcknowledgedCancel: [
		...field("string", "at"),
		...field("uint256", "block"),
		...field("string", "by"),
		...field("string[]", "builders"),
	],
};
const MINED_STAGES = ["INCLUDED", "REVERTED"];

/** The verdict on a receipt: the result of `service_receipt`, or its whole JSON-RPC answer. */
export async function verify(given: unknown, { rpc, signer }: VerifyOptions = {}): Promise<Verdict> {
	const receipt = receiptIn(given);
	if (receipt === null) return cannotTell("the file has no receipt: expected the answer of service_receipt");
	const { accepted, ended } = receipt;
	const problem = signatureProblem(receipt, signer?.toLowerCase());
	if (problem !== null) return cannotTell(problem);
	if (rpc === undefined) return cannotTell("the chain was not asked: add --rpc with the URL of a node");
	try {
		return await judge(accepted.statement, ended?.statement ?? null, (method, ...params) =>
			call(rpc, method, params),
		);
	} catch (thrown) {
		return cannotTell(`the node at --rpc did not answer: ${(thrown as Error).message}`);
	}
}

function receiptIn(given: unknown): Receipt | null {
	const outer = Object(given) as { result?: unknown };
	const { accepted, ended } = Object(outer.result ?? given) as Partial<Receipt>;
	const isSigned = (one: unknown) => {
		const { statement, signature } = Object(one) as Partial<Signed<unknown>>;
		return typeof statement === "object" && statement !== null && typeof signature === "string";
	};
	if (!isSigned(accepted) || (ended !== null && !isSigned(ended))) return null;
	return { accepted, ended } as Receipt;
}

/** Why the statements do not count as the relay's; null: they do. */
function signatureProblem({ accepted, ended }: Receipt, expected: string | undefined): string | null {
	const { signer, chainId, transaction } = accepted.statement;
	const signed = [signerOf(ACCEPTED, accepted), ended === null ? signer : signerOf(ENDED, ended)];
	if (signed.some((one) => one !== signer))
		return "a statement was changed after it was signed, or its signature is not by its signer";
	const other = ended?.statement ?? accepted.statement;
	if (other.signer !== signer || other.chainId !== chainId || other.transaction !== transaction)
		return "the two statements are about different transactions";
	if (expected === undefined || expected === signer) return null;
	return `it is signed by ${signer}, not by ${expected}`;
}

function signerOf(types: typeof ACCEPTED | typeof ENDED, { statement, signature }: Signed<Statement>) {
	try {
		const domain = { name: "Leeward", version: "1", chainId: statement.chainId };
		return verifyTypedData(domain, { ...types }, statement, signature).toLowerCase();
	} catch {
		return null;
	}
}

async function judge(
	accepted: Statement,
	ended: Ended | null,
	ask: (method: string, ...params: unknown[]) => Promise<unknown>,
): Promise<Verdict> {
	const { transaction, chainId } = accepted;
	const chain = Number(await ask("eth_chainId"));
	if (chain !== chainId) return cannotTell(`the node is of chain ${chain}, the receipt of chain ${chainId}`);
	const mined = (await ask("eth_getTransactionReceipt", transaction)) as Mined | null;
	if (ended === null) {
		if (mined === null)
			return cannotTell("the transaction has not ended: get its receipt again after its end");
		return cannotTell(
			`it is in block ${Number(mined.blockNumber)}: get its receipt again, with how it ended`,
		);
	}
	if (mined === null && MINED_STAGES.includes(ended.stage))
		return cannotTell("the node does not have its block: ask another node, or get the receipt again");
	if (mined === null) return { verdict: "kept", why: `it ended as ${ended.stage}, and no block contains it` };
	const block = (await ask("eth_getBlockByHash", mined.blockHash, true)) as Block | null;
	if (block === null) return cannotTell("the node does not have its block: ask another node");
	const number = Number(mined.blockNumber);
	const builder = `the builder of block ${number} (${block.miner})`;
	const isOld = !MINED_STAGES.includes(ended.stage) || mined.blockHash !== ended.blockHash;
	const [cancel] = ended.cancels;
	// After a cancel by address, another address may have submitted it again. Nothing revives the others.
	if (cancel !== undefined && !(isOld && cancel.by === "address"))
		return judgeCancel(cancel, { builder, number });
	if (isOld) return cannotTell(`it is in block ${number} now: get its receipt again`);
	if ((mined.status === "0x1") !== (ended.stage === "INCLUDED"))
		return broken(`the receipt says ${ended.stage}, and the chain differs`, "the relay");
	return judgeRefund(accepted, ended, { block, builder, index: Number(mined.transactionIndex) });
}

function judgeCancel(
	{ by, at, block }: Ended["cancels"][number],
	{ builder, number }: { readonly builder: string; readonly number: number },
): Verdict {
	const what = by === "replacement" ? "replacement" : "cancel";
	const why = `it is in block ${number}, though its ${what} was acknowledged at block ${block} (${at})`;
	// Its block may have been there before the cancel, or have come by a reorganisation.
	return number > block ? broken(why, builder) : { verdict: "broken", why };
}

function judgeRefund(
	accepted: Statement,
	ended: Ended,
	{ block, builder, index }: { readonly block: Block; readonly builder: string; readonly index: number },
): Verdict {
	const [owed, paid] = [BigInt(ended.owed), BigInt(ended.paid)];
	if (owed === 0n && paid === 0n)
		return { verdict: "kept", why: "it is in its block, and no refund was owed" };
	// The block pays several refunds of one recipient in one transfer.
	const transferred = block.transactions
		.slice(index + 1)
		.filter(({ from, to }) => isSame(from, block.miner) && isSame(to, ended.refundRecipient))
		.reduce((sum, tx) => sum + BigInt(tx.value), 0n);
	if (paid > transferred)
		return broken(`the receipt says that ${paid} wei were paid, the block has ${transferred}`, "the relay");
	if (paid < owed) return broken(`${owed} wei of refund were owed, ${paid} were paid in the block`, builder);
	if (!isSame(ended.refundRecipient, accepted.refundRecipient))
		return cannotTell(
			`the refund went to ${ended.refundRecipient}: another owner joined after the bid was sent, or the relay chose another recipient`,
		);
	return {
		verdict: "kept",
		why: `${paid} wei of refund were paid to ${ended.refundRecipient}, ${owed} were owed`,
	};
}

function isSame(one: string | null, other: string): boolean {
	return one?.toLowerCase() === other.toLowerCase();
}

function cannotTell(why: string): Verdict {
	return { verdict: "can't tell", why };
}

function broken(why: string, by: string): Verdict {
	return { verdict: "broken", why, by };
}

/** Calls a method of the node. Throws if it returns no result. */
async function call(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
	const answer = await fetch(url, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
		signal: AbortSignal.timeout(30_000),
	});
	const { result, error } = (await answer.json()) as { result?: unknown; error?: { message?: string } };
	if (result === undefined) throw new Error(error?.message ?? `HTTP ${answer.status}`);
	return result;
}

const NAME = "npm run verify";
const USAGE = "FILE [--rpc URL] [--signer ADDRESS], or --help";
const HELP = `${NAME}: checks what a relay promised about a transaction, by its receipt and by the chain.

  ${NAME} -- FILE    (the answer of service_receipt, as JSON)

Options, behind \`${NAME} --\`:
  --rpc URL         a node of the chain; without it only the signatures are checked
  --signer ADDRESS  the relay's key, receiptSigner of its GET /info
  --help            this text; checks nothing

Exit codes: 0 kept, 1 broken, 2 can't tell, also for a bad argument or file.
`;
/** Characters of a file that could move a terminal's cursor. */
const UNPRINTABLE = /[^\x20-\x7e]/g;
const CODES = { kept: 0, broken: 1, "can't tell": 2 } as const;

async function main(args: readonly string[]): Promise<number> {
	if (args.includes("--help")) {
		process.stdout.write(HELP);
		return 0;
	}
	try {
		const options = { rpc: { type: "string" }, signer: { type: "string" } } as const;
		const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
		const [file, more] = positionals;
		if (file === undefined || more !== undefined) throw new Error("one FILE at a time");
		const { verdict, why, by } = await verify(JSON.parse(await readFile(file, "utf8")), values);
		const line = `${verdict}${by === undefined ? "" : ` by ${by}`}: ${why}`;
		process.stdout.write(`${line.replace(UNPRINTABLE, "?")}\n`);
		if (values.signer === undefined && verdict !== "can't tell")
			process.stdout.write(
				"the signer is not checked: add --signer with receiptSigner of the relay's /info\n",
			);
		return CODES[verdict];
	} catch (thrown) {
		const problem = (thrown as Error).message.split(/[.\n]/)[0];
		process.stderr.write(`${NAME}: ${problem}: expected ${USAGE}\n`);
		return CODES["can't tell"];
	}
}

const [, script = ""] = process.argv;
if (script !== "" && realpathSync(script) === fileURLToPath(import.meta.url))
	process.exitCode = await main(process.argv.slice(2));
