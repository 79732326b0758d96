// One sequence of steps on a running system, with accounts, a gate and a model of its own. Does
// what users, strangers and the chain do to the real relay and to the model, and throws on any
// difference.

import type { Wallet } from "ethers";
import { BiddingFixture, type CallOptions } from "../support/biddingFixture.ts";
import type { WireAnswer } from "../support/relayClient.ts";
import { type Actor, GWEI, type RelayFixture } from "../support/relayFixture.ts";
import type { TestSystem } from "../support/systems.ts";
import { until } from "../support/until.ts";
import { BuilderWatch, type Moment, SendRules } from "./builders.ts";
import { Blocks, ChainReader, OPEN } from "./chain.ts";
import { type Answer, ControlModel, type Path, type SignedTx, short } from "./model.ts";
import { Settling } from "./settling.ts";

/** Accounts of a sequence: few, so that what is done to them meets. */
export const ACCOUNTS = 2;

/** How late a slow builder answers. */
const SLOW_MS = 60;

/** The system that a sequence runs on, and its surroundings. */
export interface Stage {
	readonly system: TestSystem;
	/** Sends to builders beside the relay. */
	readonly stranger: Wallet;
	readonly rows: readonly {
		readonly name: string;
		readonly fullPrivacy?: boolean;
		readonly cancel: Cancel;
	}[];
	readonly lifeBlocks: number;
	/** How long the relay may take to be as the model has it, in ms. */
	readonly settleMs: number;
	/** The relay's complaints so far. */
	readonly complaints: readonly string[];
}
interface Parts {
	readonly actors: readonly Actor[];
	readonly gate: string;
	readonly chain: ChainReader;
	readonly model: ControlModel;
	readonly tally: Map<string, number>;
}
type Cancel = "endpoint" | "empty" | "both" | "none";

/** The transaction to sign. */
export interface TxWish {
	readonly account: number;
	readonly nonce: number;
	readonly maxFee?: bigint;
	readonly tip?: bigint;
	readonly gated?: boolean;
	readonly self?: boolean;
	/** As type 0, whose one price is both fees. */
	readonly legacy?: boolean;
}

export class Sequence {
	readonly stage: Stage;
	readonly model: ControlModel;
	readonly chain: ChainReader;
	readonly blocks: Blocks;
	/** The steps so far, for people. */
	readonly scenario: string[] = [];
	readonly #actors: readonly Actor[];
	readonly #gate: string;
	readonly #watches: readonly BuilderWatch[];
	readonly #sends: SendRules;
	readonly #settling: Settling;
	readonly #users: BiddingFixture;
	readonly #raws = new Map<string, string>();
	readonly #tally: Map<string, number>;
	#signed = 0;
	#before: Moment = new Map();

	private constructor(stage: Stage, parts: Parts) {
		const { actors, gate, chain, model, tally } = parts;
		this.#tally = tally;
		this.#users = new BiddingFixture(stage.system);
		this.stage = stage;
		this.model = model;
		this.chain = chain;
		this.#actors = actors;
		this.#gate = gate;
		this.#watches = stage.system.builders.map((builder, i) => {
			const cancel = stage.rows[i]?.cancel ?? "both";
			return new BuilderWatch(builder, { cancel, stranger: stage.stranger.address });
		});
		const hiding = new Set(stage.rows.filter(({ fullPrivacy }) => fullPrivacy).map(({ name }) => name));
		this.#sends = new SendRules(this.#watches, (name) => hiding.has(name));
		const { system, stranger } = stage;
		const rawOf = (hash: string) => this.#raws.get(hash);
		this.blocks = new Blocks({ system, stranger, model, chain, sends: this.#sends, gate, rawOf });
		const addresses = actors.map(({ address }) => address);
		this.#settling = new Settling(stage, { model, chain, sends: this.#sends, addresses });
	}

	/** Begins one behind a block of its own: no reorganisation takes its accounts' balances back. */
	static async begin(
		stage: Stage,
		fixture: RelayFixture,
		tally = new Map<string, number>(),
	): Promise<Sequence> {
		const actors: Actor[] = [];
		while (actors.length < ACCOUNTS) actors.push(await fixture.actor());
		const gate = await fixture.placeCode(OPEN);
		const base = await fixture.passBlock();
		const chain = new ChainReader(stage.system.chain, {
			addresses: actors.map(({ address }) => address),
			base,
		});
		const model = new ControlModel({ lifeBlocks: stage.lifeBlocks, chain: await chain.view() });
		return new Sequence(stage, { actors, gate, chain, model, tally });
	}

	/**
	 * Does one step, waits until the relay has come to what the model says, and compares. `inFlight`:
	 * the step ends what is being sent, so that only what is sent behind it was sent too late.
	 */
	async step(name: string, act: () => Promise<string>, inFlight = false): Promise<string> {
		this.#before = this.#sends.begin(this.model);
		this.scenario.push(name);
		const outcome = await act();
		const { text, changes } = this.#settling.describe();
		this.#count(name, outcome, changes);
		this.scenario.push(`  ${outcome}; ${text}`);
		await this.#settle(inFlight);
		this.#before = this.#sends.begin(this.model);
		return outcome;
	}

	async #settle(inFlight: boolean): Promise<void> {
		if (!inFlight) this.#sends.note(this.model, this.#before);
		await this.#settling.agree();
		if (inFlight) this.#sends.note(this.model, this.#sends.now());
		const wrong = [...this.#sends.violations(this.model, inFlight), ...this.stage.complaints];
		if (wrong.length > 0) throw new Error(wrong.join("\n"));
	}

	/** A new transaction, which everybody who reads it will recognise. */
	sign(wish: TxWish): SignedTx {
		const {
			account,
			nonce,
			maxFee = 20n * GWEI,
			tip = GWEI,
			gated = false,
			self = false,
			legacy = false,
		} = wish;
		const actor = this.#actor(account);
		this.#signed += 1;
		const to = self ? actor.address : gated ? this.#gate : undefined;
		const fees = legacy
			? { type: 0 as const, gasPrice: maxFee }
			: { maxFeePerGas: maxFee, maxPriorityFeePerGas: tip };
		// Its value makes it one of a kind.
		const value = gated ? 0n : BigInt(this.#signed);
		const gasLimit = 100_000 + this.#signed;
		const { raw, hash } = actor.sign({
			nonce,
			...fees,
			value,
			gasLimit,
			...(to === undefined ? {} : { to }),
		});
		for (const watch of this.#watches) watch.know(raw, hash);
		this.#raws.set(hash, raw);
		return { hash, raw, account, nonce, maxFee, tip: legacy ? maxFee : tip, gated, self };
	}

	/** How the owner of an account calls: from an address of his own. */
	owner(account: number): CallOptions {
		return { from: `10.1.0.${account + 1}` };
	}

	/** The key of an account. */
	keyOf(account: number): string {
		return this.#actor(account).account.keyHex;
	}

	/** Submits by its owner and holds the answer against the model's. */
	async submit(tx: SignedTx, path: Path, soft: boolean): Promise<string> {
		const answer = await this.send(tx, path, soft);
		return this.take(tx, path, soft, answer);
	}

	/** Sends it to the relay alone; see {@link take}. */
	send(tx: SignedTx, path: Path, soft: boolean): Promise<WireAnswer> {
		return this.#users.ask("eth_sendRawTransaction", [tx.raw], {
			...this.owner(tx.account),
			path: `/${path}${soft ? "?softcancel=1" : ""}`,
		});
	}

	/** Submits it to the model alone, and holds the relay's answer against that. */
	take(tx: SignedTx, path: Path, soft: boolean, { result, error }: WireAnswer): string {
		const before = this.model.get(tx.hash);
		const expected: Answer = this.model.submit(tx, path, soft);
		const text = error === undefined ? String(result) : `${error.code} ${error.message}`;
		const fits = "hash" in expected ? result === expected.hash : text.startsWith(`-32000 ${expected.error}`);
		if (!fits) throw new Error(`${short(tx)} was answered ${text}, expected ${JSON.stringify(expected)}`);
		if ("error" in expected) return `${short(tx)} ${text}`;
		const after = this.model.get(tx.hash);
		if (after === before) return `${short(tx)} known`;
		return `${short(tx)} ${after?.cancels === true ? "cancels" : before === undefined ? "taken" : "taken anew"}`;
	}

	/**
	 * Asks to cancel a hash, and holds the answer against the model's; `may`: whether the caller is
	 * allowed to.
	 */
	async cancel(hash: string, caller: CallOptions, may: boolean): Promise<string> {
		const { result, error } = await this.#users.ask("eth_cancelTransaction", [hash], caller);
		const expected = this.model.cancel(hash, may);
		const text = error === undefined ? String(result) : `${error.code} ${error.message}`;
		const wanted = expected
			? "true"
			: "-32000 transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key";
		if (text !== wanted) throw new Error(`cancelling ${hash} was answered ${text}, expected ${wanted}`);
		return `${hash.slice(0, 8)} ${expected ? "cancelled" : "refused"}`;
	}

	async restart(): Promise<string> {
		// If a transaction was ended right behind its submission, only the relay knows whether a
		// builder was to have it.
		for (const tx of this.model.all()) {
			if (tx.end === null) continue;
			const events = await this.stage.system.client.events(tx.hash);
			tx.wasSent = events.some(({ type }) => type === "broadcast" || type === "delivered");
		}
		const { relay } = this.stage.system;
		await relay.stop();
		this.#sends.restarted();
		await this.stage.system.restart();
		this.model.restarted();
		return "restarted";
	}

	/** All builders but the first are slow in answering while `act` runs: what is for them waits. */
	async slowly(act: () => Promise<string>): Promise<string> {
		const [, ...others] = this.stage.system.builders;
		for (const builder of others) builder.setFaults({ slow: SLOW_MS });
		try {
			return await act();
		} finally {
			for (const builder of others) builder.setFaults({});
		}
	}

	/** Waits until the first builder has been sent `tx`, where it is to be sent at all. */
	async arrives(tx: SignedTx): Promise<void> {
		const now = this.model.get(tx.hash)?.now;
		const [first] = this.#watches;
		if ((now !== "send" && now !== "sendPrivately") || first === undefined) return;
		await until(`${tx.hash} at ${first.name}`, () => {
			first.read();
			return first.sent(tx.hash).length > 0;
		});
	}

	/**
	 * Every account's owner takes back all that is pending, so that nothing is left for what comes
	 * behind.
	 */
	async end(): Promise<void> {
		await this.step("the end", async () => {
			const pending = this.model.all().filter((tx) => this.model.isPending(tx));
			for (const tx of pending) await this.cancel(tx.hash, this.owner(tx.account), true);
			return `${pending.length} cancelled`;
		});
		await this.#settling.acknowledged(this.#watches);
	}

	/**
	 * By the kind of the step and what came of it, names and numbers left out; and the stages that
	 * came of it.
	 */
	#count(name: string, outcome: string, news: readonly string[]): void {
		const kind = /^[a-z ]+/.exec(name)?.[0] ?? name;
		const parts = outcome.replace(
			/0x\w+(\(\w+ \w+\))? ?|:? next nonce [^,]*, tx nonce \d+|: expected[^,]*|-?\d+ ?/g,
			"",
		);
		for (const what of [...parts.split(", ").map((part) => `${kind}: ${part}`), ...news]) {
			this.#tally.set(what, (this.#tally.get(what) ?? 0) + 1);
		}
	}

	#actor(account: number): Actor {
		const actor = this.#actors[account];
		if (actor === undefined) throw new RangeError(`there is no account ${account}`);
		return actor;
	}
}
