// Collects what the relay logs and serves, and searches it for secrets in all usual encodings.

/** A secret, with a name for the report. */
export interface Secret {
	readonly name: string;
	/** Plain text, or bytes as 0x hex. */
	readonly value: string;
}

/** Collects texts, each with the place where it was seen. */
export class LeakWatch {
	readonly #texts: { readonly place: string; readonly text: string }[] = [];

	/** Adds a text that was seen at `place`. */
	saw(place: string, text: string): void {
		this.#texts.push({ place, text: text.toLowerCase() });
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

/** The encodings of a secret. Bytes: hex, base64, and as Node prints and serialises a Buffer. Text: plain, percent-encoded, base64. */
function formsOf(value: string): string[] {
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
