// What the demo's parts share: lines for what it does and claims, of which the first that does not hold stops it; waiting
// until there is an answer; and stopping all that was started, the last one first.

import { formatEther } from "ethers";
import { pause, systemClock } from "../../../shared/clock.ts";
import { painted, usesColour } from "../narrator.ts";

/** A claim did not hold; its line has been told. */
export class ScenarioBroken extends Error {}

const COLOUR = usesColour(process.stdout);

/** Tells the demo, line by line. */
export class Scenario {
	/** How many claims have held so far. */
	claims = 0;

	/** A heading. */
	chapter(text: string): void {
		print(`\n${painted(text, "cyan", COLOUR)}`);
	}

	/** Something that was done, or is so. */
	tell(text: string): void {
		print(`       ${text}`);
	}

	/** A claim. Throws {@link ScenarioBroken} where it does not hold; `found` is told then, to say what is the case. */
	claim(text: string, holds: boolean, found = ""): void {
		print(`  ${painted(holds ? "ok  " : "FAIL", holds ? "green" : "red", COLOUR)} ${text}`);
		if (!holds && found !== "") this.tell(`found: ${found}`);
		if (!holds) throw new ScenarioBroken(`it does not hold that ${text}`);
		this.claims += 1;
	}

	/** That two amounts of wei are the same. */
	same(text: string, is: bigint, shouldBe: bigint): void {
		this.claim(`${text}: ${amount(shouldBe)}`, is === shouldBe, amount(is));
	}

	/** The scenario could not go on. */
	broken(thrown: unknown): void {
		const text = thrown instanceof Error ? thrown.message : "something that is no error was thrown";
		print(`  ${painted("FAIL", "red", COLOUR)} ${text}`);
	}
}

function print(line: string): void {
	process.stdout.write(`${line}\n`);
}

/** Wei and ETH. */
export function amount(wei: bigint): string {
	return `${wei} wei (${formatEther(wei)} ETH)`;
}

/** Beyond this nothing is waited for. */
const STEP_MS = 15_000;

/** Asks until there is an answer. */
export async function until<T>(
	what: string,
	question: () => Promise<T | null | undefined | false> | T | null | undefined | false,
): Promise<T> {
	const end = systemClock.monotonic() + STEP_MS;
	for (;;) {
		const answer = await question();
		if (answer !== null && answer !== undefined && answer !== false) return answer;
		if (systemClock.monotonic() > end) throw new Error(`waited ${STEP_MS} ms in vain for ${what}`);
		await pause(systemClock, 20);
	}
}

/** Everything that has to be stopped. */
export class Stops {
	readonly #stops: (() => Promise<void>)[] = [];
	#stopping: Promise<void> | undefined;

	/** True from the first call of {@link all} on. */
	get begun(): boolean {
		return this.#stopping !== undefined;
	}

	/** To be called as soon as something runs. Where the end has begun, it is stopped at once, and this throws. */
	add(stop: () => Promise<void>): void {
		this.#stops.push(stop);
		if (!this.begun) return;
		stop().catch(() => {});
		throw new Error("it is being stopped");
	}

	/** Stops all of it. What fails to stop keeps nothing else from it. */
	all(): Promise<void> {
		this.#stopping ??= (async () => {
			for (const stop of [...this.#stops].reverse()) await stop().catch(() => {});
		})();
		return this.#stopping;
	}
}
