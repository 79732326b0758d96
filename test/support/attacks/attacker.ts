// Starts the attacker's process, sends it orders and returns its results.

import { type ChildProcess, fork } from "node:child_process";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import type { AttackParams } from "./attackKinds.ts";
import type { Tally } from "./flood.ts";
import { attackerAddress } from "./wire.ts";

/** An attack without a result after this many ms has failed. */
const DEADLINE_MS = 120_000;

type AttackAnswer = {
	readonly id: number;
	readonly tally?: Tally;
	readonly fault?: string;
};

/** The attacker of one URL. */
export class Attacker {
	readonly #child: ChildProcess;
	readonly #url: string;
	readonly #waiting = new Map<number, (answer: AttackAnswer) => void>();
	#orders = 0;

	constructor(url: string) {
		this.#url = url;
		this.#child = fork(fileURLToPath(new URL("./attackerMain.ts", import.meta.url)), {
			execArgv: process.execArgv,
		});
		// A real attacker has his own machine, so this one must not take processor time from what is measured.
		if (this.#child.pid !== undefined) setPriority(this.#child.pid, constants.priority.PRIORITY_LOW);
		this.#child.on("message", (answer: AttackAnswer) => this.#waiting.get(answer.id)?.(answer));
		this.#child.once("exit", () => {
			for (const [id, answered] of this.#waiting) answered({ id, fault: "the attacker has ended" });
		});
	}

	/** Runs an attack, and returns its result. Throws if it could not run. */
	attack(
		name: string,
		params: Omit<AttackParams, "url" | "from"> & { readonly from?: string },
	): Promise<Tally> {
		this.#orders += 1;
		const id = this.#orders;
		return new Promise((resolve, reject) => {
			const timer = setTimeout(() => reject(new Error(`${name} is not over`)), DEADLINE_MS);
			this.#waiting.set(id, ({ tally, fault }) => {
				clearTimeout(timer);
				this.#waiting.delete(id);
				if (tally === undefined) reject(new Error(`${name}: ${fault}`));
				else resolve(tally);
			});
			this.#child.send({ id, name, params: { url: this.#url, from: attackerAddress(), ...params } });
		});
	}

	/** Ends the process with all its connections. */
	async stop(): Promise<void> {
		if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
		await new Promise<void>((resolve) => {
			this.#child.once("exit", () => resolve());
			this.#child.kill("SIGKILL");
		});
	}
}
