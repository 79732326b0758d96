// Collects what the relay prints and serves, and searches it for secrets in every form in which bytes are usually
// printed.

/** A secret with the name that a finding is told by. */
export interface Secret {
	readonly name: string;
	/** Text as it is, or bytes as 0x hex. */
	readonly value: string;
}

/** Collects texts, each with the place it was seen at. */
export class LeakWatch {
	readonly #texts: { readonly place: string; readonly text: string }[] = [];

	/** Takes down what was seen at `place`. */
	saw(place: string, text: string): void {
		this.#texts.push({ place, text: text.toLowerCase() });
	}

	/** Fetches `url` and takes down the answer with its headers. */
	async fetched(place: string, url: string, init?: RequestInit): Promise<string> {
		const answer = await fetch(url, init);
		const text = await answer.text();
		this.saw(place, `${JSON.stringify([...answer.headers])} ${text}`);
		return text;
	}

	/** Of `secrets` those that were seen, with the place: empty where all is well. Places that `except` names are left
	 * out. */
	found(secrets: readonly Secret[], except: readonly string[] = []): string[] {
		return secrets.flatMap(({ name, value }) => {
			const forms = formsOf(value);
			const places = this.#texts
				.filter(({ place, text }) => !except.includes(place) && forms.some((form) => text.includes(form)))
				.map(({ place }) => place);
			return [...new Set(places)].map((place) => `${name} at ${place}`);
		});
	}

	/** The places that texts were collected from. */
	get places(): readonly string[] {
		return [...new Set(this.#texts.map(({ place }) => place))];
	}
}

/** Bytes: as hex, as base64, as Node prints and serialises a Buffer. Text: as it is, percent-encoded and base64. */
function formsOf(value: string): string[] {
	if (!/^0x([0-9a-f]{2})+$/i.test(value)) {
		const base64 = Buffer.from(value).toString("base64").replace(/=+$/, "").slice(0, -1);
		return [value, encodeURIComponent(value), base64].map((form) => form.toLowerCase());
	}
	// A part of it is a leak too: 24 bytes are far more than chance.
	const bytes = Buffer.from(value.slice(2), "hex").subarray(-24);
	return [
		bytes.toString("hex"),
		BigInt(value).toString(),
		bytes.subarray(0, 21).toString("base64").toLowerCase(),
		[...bytes].join(","),
		[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" "),
	];
}
