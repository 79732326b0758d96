// Collects what the relay and boost log and serve, and searches it for secrets in all usual
// encodings.

import assert from "node:assert/strict";
import { Transaction } from "ethers";

/** A secret, with a name for the report. */
export interface Secret {
	readonly name: string;
	/** Plain text, or bytes as 0x hex. */
	readonly value: string;
}

/** Secrets of one kind: a column of a leak table. */
export type Columns<Column extends string> = Readonly<Record<Column, readonly Secret[]>>;

/** Collects texts, each with the place where it was seen. */
export class LeakWatch {
	readonly #texts = new Map<string, Set<string>>();

	/** Adds a text that was seen at `place`. */
	saw(place: string, text: string): void {
		const texts = this.#texts.get(place) ?? new Set();
		this.#texts.set(place, texts.add(text.toLowerCase()));
	}

	/** Fetches `url`, and adds the answer with its headers. */
	async fetched(place: string, url: string, init?: RequestInit): Promise<string> {
		const answer = await fetch(url, init);
		const text = await answer.text();
		this.saw(place, `${JSON.stringify([...answer.headers])} ${text}`);
		return text;
	}

	/** The secrets that were seen, each with its place. Ignores the places in `except`. */
	found(secrets: readonly Secret[], except: readonly string[] = []): string[] {
		const places = this.places.filter((place) => !except.includes(place));
		return secrets.flatMap((secret) =>
			places.flatMap((place) => (this.#has(place, secret) ? [`${secret.name} at ${place}`] : [])),
		);
	}

	/** The secrets that were seen at one place, by name. */
	foundAt(place: string, secrets: readonly Secret[]): string[] {
		return secrets.filter((secret) => this.#has(place, secret)).map(({ name }) => name);
	}

	/**
	 * Asserts that `place` showed a secret of each column in `shown`, and none of any other column.
	 */
	assertShows<Column extends string>(
		place: string,
		columns: Columns<Column>,
		shown: readonly NoInfer<Column>[],
	): void {
		assert.ok(this.#texts.has(place), `nothing was seen at ${place}`);
		for (const [column, secrets] of Object.entries<readonly Secret[]>(columns)) {
			const found = this.foundAt(place, secrets);
			if (!shown.some((one) => one === column)) assert.deepEqual(found, [], `${column} at ${place}`);
			else assert.ok(found.length > 0, `${place} is documented to show ${column}, and did not`);
		}
	}

	/** The places that texts were collected from. */
	get places(): readonly string[] {
		return [...this.#texts.keys()];
	}

	#has(place: string, { value }: Secret): boolean {
		const forms = formsOf(value);
		return [...(this.#texts.get(place) ?? [])].some((text) => forms.some((form) => text.includes(form)));
	}
}

/** Both halves of a raw transaction's signature. */
export function signatureOf(raw: string, name: string): readonly Secret[] {
	const { signature } = Transaction.from(raw);
	return [
		{ name: `r of ${name}`, value: signature?.r ?? "" },
		{ name: `s of ${name}`, value: signature?.s ?? "" },
	];
}

const formsByValue = new Map<string, readonly string[]>();

/**
 * The encodings of a secret. Bytes: hex, base64, and as Node prints and serialises a Buffer. Text:
 * plain, percent-encoded, base64.
 */
function formsOf(value: string): readonly string[] {
	const known = formsByValue.get(value);
	if (known !== undefined) return known;
	if (value === "") throw new Error("an empty text is no secret");
	const forms = encoded(value);
	formsByValue.set(value, forms);
	return forms;
}

function encoded(value: string): readonly string[] {
	if (!/^0x([0-9a-f]{2})+$/i.test(value)) {
		const base64 = Buffer.from(value).toString("base64").replace(/=+$/, "").slice(0, -1);
		return [value, encodeURIComponent(value), base64].map((form) => form.toLowerCase());
	}
	// A part of a secret is a leak too; 24 equal bytes are no coincidence.
	const bytes = Buffer.from(value.slice(2), "hex").subarray(-24);
	return [
		bytes.toString("hex"),
		BigInt(value).toString(),
		bytes.subarray(0, 21).toString("base64").toLowerCase(),
		[...bytes].join(","),
		[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" "),
	];
}
