// Users who submit, cancel and replace transactions by whatever relay or boost a host's router
// gives them, and ask again with the same bytes where they got no verdict. They take down what they
// were answered, and judge nothing.

import { Agent, request } from "undici";
import { pause, systemClock } from "../../shared/clock.ts";
import { EMITTER } from "../support/biddingFixture.ts";
import type { SeededRandom } from "../support/seededRandom.ts";
import { signedTransaction, type TestAccount, type TxOptions, testAccount } from "../support/txFactory.ts";

/** A user's request that ends a transaction. */
export interface Ending {
	readonly kind: "cancel" | "replace";
	/** Unix ms. */
	readonly askedAt: number;
	/** When it was acknowledged; null: it never was. */
	ackedAt: number | null;
}

/** One answer to a user, or none. */
export interface Answer {
	/** Unix ms. */
	readonly askedAt: number;
	readonly at: number;
	/** The name of the entry that was asked. */
	readonly by: string;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
	/** Why nothing that can be read came. */
	readonly fault?: string;
}

/** Boost's answer for what only the relay may know, while that is unavailable. */
const ASK_AGAIN = /cancel it again when the relay is back/;

/** A transaction that a user signed. */
export interface Submitted {
	readonly hash: string;
	readonly raw: string;
	readonly from: string;
	readonly nonce: number;
	readonly path: string;
	/** The user's address on the network. */
	readonly client: string;
	/** The recipient of the refund; null: the sender. */
	readonly refundRecipient: string | null;
	readonly answers: Answer[];
	/** When it was acknowledged, in Unix ms. */
	ackedAt: number | null;
	ending: Ending | null;
	/** The verdict on a cancel: it is over already, or nobody knows it; Unix ms. */
	notFoundAt: number | null;
}

/** An endpoint for users' requests. */
export interface Entry {
	readonly name: string;
	readonly url: string;
}

export interface WalletsOptions {
	readonly random: SeededRandom;
	/** Users who begin in a second. */
	readonly rate: number;
	/** Whom a router would send a request to now. */
	readonly entry: () => Entry | null;
	/** One with money whom nobody else has. */
	readonly account: () => TestAccount | null;
}

const GWEI = 1_000_000_000n;
/** Twenty percent more than the usual fees of txFactory.ts. */
const DEARER = { maxFeePerGas: 24n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const PATHS = { "/fast": 5, "/noreverts": 3, "/maxbackruns": 1, "/fullprivacy": 1 };
/** The stories of users, and how often each occurs. */
const STORIES = { plain: 10, chain: 3, cancelsQueued: 3, cancelsAtOnce: 3, replaces: 3 };
/** One in so many asks once, and goes away if the answer is to try again. */
const IMPATIENT = 8;
const ANSWER_MS = 4_000;
const RETRY_MS = 150;
/** How long a user asks again, in ms. */
const PATIENCE_MS = 60_000;
const FIRST_RECIPIENT = 0xfee0_0000;

type Story = keyof typeof STORIES;
type Path = keyof typeof PATHS;

/** A user with an account of its own. */
interface User {
	readonly account: TestAccount;
	readonly client: string;
	readonly path: Path;
	readonly isImpatient: boolean;
}

/** All users; begun and ended once. */
export class Wallets {
	/** The transactions that were signed so far. */
	readonly submitted: Submitted[] = [];
	readonly #options: WalletsOptions;
	readonly #dispatcher = new Agent({ connections: 64, headersTimeout: 0, bodyTimeout: 0 });
	readonly #underWay = new Set<Promise<void>>();
	#isOver = false;
	#running: Promise<void> | null = null;
	#users = 0;

	constructor(options: WalletsOptions) {
		this.#options = options;
	}

	start(): void {
		this.#running = this.#run();
	}

	/** No more users begin; those that have begun are waited for. */
	async stop(): Promise<void> {
		this.#isOver = true;
		await this.#running;
		await Promise.all(this.#underWay);
		await this.#dispatcher.destroy();
	}

	async #run(): Promise<void> {
		const everyMs = 1000 / this.#options.rate;
		let due = systemClock.monotonic();
		while (!this.#isOver) {
			// Sends that a busy machine has missed are not made up for: that would be a burst.
			due = Math.max(due + everyMs, systemClock.monotonic() - everyMs);
			const early = due - systemClock.monotonic();
			if (early > 0) await pause(systemClock, early);
			const account = this.#options.account();
			if (account === null) return;
			const { random } = this.#options;
			this.#users += 1;
			const client = `10.${this.#users >> 16}.${(this.#users >> 8) & 0xff}.${this.#users & 0xff}`;
			const user = { account, client, path: random.weighted(PATHS), isImpatient: random.oneIn(IMPATIENT) };
			const story = random.weighted(STORIES);
			const living = this.#live(story, user).finally(() => this.#underWay.delete(living));
			this.#underWay.add(living);
		}
	}

	async #live(story: Story, user: User): Promise<void> {
		switch (story) {
			case "plain":
				return void (await this.#send(this.#sign(user, { nonce: 0 }), user.isImpatient));
			case "chain":
				// In any order: the later ones wait for the first.
				await Promise.all([2, 0, 1].map((nonce) => this.#send(this.#sign(user, { nonce }))));
				return;
			case "cancelsQueued": {
				const ended = this.#sign(user, { nonce: 1 });
				if (!(await this.#send(ended))) return;
				await this.#cancel(ended);
				await this.#send(this.#sign(user, { nonce: 0 }));
				return;
			}
			case "cancelsAtOnce": {
				const ended = this.#sign(user, { nonce: 0 });
				if (await this.#send(ended)) await this.#cancel(ended);
				return;
			}
			case "replaces": {
				const old = this.#sign(user, { nonce: 1 });
				if (!(await this.#send(old))) return;
				const next = this.#sign(user, { nonce: 1, ...DEARER });
				old.ending = { kind: "replace", askedAt: systemClock.now(), ackedAt: null };
				if (await this.#send(next)) old.ending.ackedAt = next.ackedAt;
				await this.#send(this.#sign(user, { nonce: 0 }));
			}
		}
	}

	#sign(user: User, options: TxOptions & { readonly nonce: number }): Submitted {
		const { account: by, client, path } = user;
		const { raw, hash } = signedTransaction({ by, to: EMITTER, ...options });
		const takesRefund = this.#options.random.oneIn(2);
		const recipient = `0x${(FIRST_RECIPIENT + this.submitted.length).toString(16).padStart(40, "0")}`;
		const one: Submitted = {
			...{ hash, raw: `0x${Buffer.from(raw).toString("hex")}`, from: by.address, nonce: options.nonce },
			...{ path, client, refundRecipient: takesRefund ? recipient : null, answers: [] },
			...{ ackedAt: null, ending: null, notFoundAt: null },
		};
		this.submitted.push(one);
		return one;
	}

	/** Whether it was acknowledged. */
	async #send(one: Submitted, asksOnce = false): Promise<boolean> {
		const path =
			one.refundRecipient === null ? one.path : `${one.path}?refundRecipient=${one.refundRecipient}`;
		const answer = await this.#insist(
			one,
			{ method: "eth_sendRawTransaction", params: [one.raw], path },
			asksOnce,
		);
		if (answer?.result === one.hash) one.ackedAt = answer.at;
		return one.ackedAt !== null;
	}

	async #cancel(one: Submitted): Promise<void> {
		one.ending = { kind: "cancel", askedAt: systemClock.now(), ackedAt: null };
		const call = { method: "eth_cancelTransaction", params: [one.hash], path: one.path };
		const answer = await this.#insist(one, call, false);
		if (answer?.result === true) one.ending.ackedAt = answer.at;
		const { error } = answer ?? {};
		if (error?.code === -32_000 && !ASK_AGAIN.test(error.message)) one.notFoundAt = answer?.at ?? null;
	}

	/** Asks until there is a verdict; null where there never was one. */
	async #insist(one: Submitted, call: Call, asksOnce: boolean): Promise<Answer | null> {
		const end = systemClock.monotonic() + PATIENCE_MS;
		while (systemClock.monotonic() < end) {
			const entry = this.#options.entry();
			if (entry !== null) {
				const answer = await this.#ask(entry, one.client, call);
				one.answers.push(answer);
				const isVerdict = answer.fault === undefined && answer.error?.code !== -32_603;
				if (isVerdict) return answer;
				if (asksOnce && answer.fault === undefined) return null;
			}
			await pause(systemClock, RETRY_MS);
		}
		return null;
	}

	async #ask({ name, url }: Entry, client: string, { method, params, path }: Call): Promise<Answer> {
		const askedAt = systemClock.now();
		try {
			const { body } = await request(url + path, {
				method: "POST",
				headers: { "content-type": "application/json", "x-forwarded-for": client },
				body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
				signal: AbortSignal.timeout(ANSWER_MS),
				dispatcher: this.#dispatcher,
			});
			const { result, error } = JSON.parse(await body.text()) as Pick<Answer, "result" | "error">;
			const base = { askedAt, at: systemClock.now(), by: name };
			return error === undefined ? { ...base, result } : { ...base, error };
		} catch (thrown) {
			const { code, name: kind } = thrown as { code?: unknown; name: string };
			const fault = typeof code === "string" ? code : kind;
			return { askedAt, at: systemClock.now(), by: name, fault };
		}
	}
}

interface Call {
	readonly method: string;
	readonly params: readonly unknown[];
	readonly path: string;
}

/** Accounts of users, each given once. */
export function accountsOf(first: number, count: number): readonly TestAccount[] {
	return Array.from({ length: count }, (_, i) => testAccount(first + i));
}
