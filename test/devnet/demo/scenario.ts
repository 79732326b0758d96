// Prints what the demo does and claims, a line each, and stops it at a claim that does not hold. It checks nothing
// itself.

import { formatEther } from "ethers";

/** A text in a colour, where colours are used. */
export type Paint = (text: string, style: "cyan" | "green" | "red") => string;

/** A claim did not hold; its line has been told. */
export class ScenarioBroken extends Error {
	constructor(claim: string) {
		super(`it does not hold that ${claim}`);
		this.name = "ScenarioBroken";
	}
}

/** Tells the demo, line by line. */
export class Scenario {
	readonly #print: (line: string) => void;
	readonly #paint: Paint;
	#claims = 0;

	constructor(print: (line: string) => void, paint: Paint) {
		this.#print = print;
		this.#paint = paint;
	}

	/** How many claims have held so far. */
	get claims(): number {
		return this.#claims;
	}

	/** A heading. */
	chapter(text: string): void {
		this.#print(`\n${this.#paint(text, "cyan")}`);
	}

	/** Something that was done, or is so. */
	tell(text: string): void {
		this.#print(`       ${text}`);
	}

	/** A claim. Throws {@link ScenarioBroken} where it does not hold; `found` is told then, to say what is the case. */
	claim(text: string, holds: boolean, found = ""): void {
		this.#print(`  ${this.#mark(holds)} ${text}`);
		if (!holds && found !== "") this.#print(`       found: ${found}`);
		if (!holds) throw new ScenarioBroken(text);
		this.#claims += 1;
	}

	/** The scenario could not go on. */
	broken(thrown: unknown): void {
		const text = thrown instanceof Error ? thrown.message : "something that is no error was thrown";
		this.#print(`  ${this.#mark(false)} ${text}`);
	}

	#mark(holds: boolean): string {
		return holds ? this.#paint("ok  ", "green") : this.#paint("FAIL", "red");
	}

	/** That two amounts of wei are the same. */
	same(text: string, is: bigint, shouldBe: bigint): void {
		this.claim(`${text}: ${amount(shouldBe)}`, is === shouldBe, amount(is));
	}
}

/** Wei and ETH. */
export function amount(wei: bigint): string {
	return `${wei} wei (${formatEther(wei)} ETH)`;
}
