// Starts the attacker's process, sends it orders and returns its results.

import { type ChildProcess, fork } from "node:child_process";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import type { AttackParams } from "./attackKinds.ts";
import type { Tally } from "./flood.ts";
import { attackerAddress } from "./wire.ts";

/** An attack without a result after this many ms has failed. */
const DEADLINE_MS = 120_000;

/** The parameters of an attack by an attacker of one URL. */
export type AttackOrder = Omit<AttackParams, "url" | "from"> & { readonly from?: string };

type AttackAnswer = {
	readonly id: number;
	readonly tally?: Tally;
	readonly fault?: string;
};

let orders = 0;

/** The attacker of one URL. */
export class Attacker {
	readonly #child: ChildProcess;
	readonly #url: string;
	readonly #waiting = new Map<number, (answer: AttackAnswer) => void>();

	constructor(url: string, child: ChildProcess) {
		this.#url = url;
		this.#child = child;
		this.#child.on("message", (answer: AttackAnswer) => this.#waiting.get(answer.id)?.(answer));
		this.#child.once("exit", () => {
			for (const [id, answered] of this.#waiting) answered({ id, fault: "the attacker has ended" });
		});
	}

	/** Starts the attacker's process. `yields`: whether it leaves processor time to all others. */
	static start(url: string, { yields }: { readonly yields: boolean }): Attacker {
		return new Attacker(url, startChild(yields));
	}

	/** The same process as the attacker of another URL. */
	at(url: string): Attacker {
		return new Attacker(url, this.#child);
	}

	/** Runs an attack, and returns its result. Throws if it could not run. */
	attack(name: string, params: AttackOrder): Promise<Tally> {
		orders += 1;
		const id = orders;
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

function startChild(yields: boolean): ChildProcess {
	const child = fork(fileURLToPath(new URL("./attackerMain.ts", import.meta.url)), {
		execArgv: process.execArgv,
	});
	// A real attacker has a machine of its own, so this one must not take processor time from the
	// processes under attack.
	if (yields && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
	return child;
}
