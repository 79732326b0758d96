// The submission paths on the home page: the choice of one, and the table of the data that each
// discloses, and to whom. Both are made from the paths' policies. Pure.

/** The properties of a submission path that the pages use. */
export interface Endpoint {
	/** "/fast" */
	readonly path: string;
	/** Purpose of the path, in a few words. */
	readonly about: string;
	/** The builders that receive it. */
	readonly builders: "all" | "fullPrivacy";
	/**
	 * When it is disclosed to searchers: never; once its simulation emits events; or always, at
	 * once.
	 */
	readonly sharing: "never" | "likely" | "always";
	/** Whether builders may include it reverted. */
	readonly mayRevert: boolean;
	/** Whether the query parameter `softCancellations` has an effect. */
	readonly softCancellations: boolean;
}

const BUILDERS: Readonly<Record<Endpoint["builders"], string>> = {
	all: "everything",
	fullPrivacy: "everything, but only chosen builders get it",
};
const SEARCHERS: Readonly<Record<Endpoint["sharing"], string>> = {
	never: "nothing",
	likely: "all but the signature, once its simulation emits an event: a swap does, a plain transfer does not",
	always: "all but the signature, at once",
};

/** The radio buttons, the first one checked. */
export function choices(endpoints: readonly Endpoint[]): string {
	return endpoints
		.map(({ path, about, softCancellations }, i) => {
			const more = `${softCancellations ? " data-soft" : ""}${i === 0 ? " checked" : ""}`;
			const input = `<input type="radio" name="endpoint" value="${path}"${more}>`;
			return `<label class="choice">${input} <span><code>${path}</code> ${about}</span></label>`;
		})
		.join("\n");
}

/** The rows of the table of the data that each path discloses. */
export function visibilityRows(endpoints: readonly Endpoint[]): string {
	return endpoints
		.map(({ path, builders, sharing, mayRevert }) => {
			const cells = [
				["Builders see", BUILDERS[builders]],
				["Searchers see", SEARCHERS[sharing]],
				["If it fails", mayRevert ? "may be mined and cost gas" : "is not mined"],
			].map(([name, text]) => `<td data-name="${name}">${text}</td>`);
			return `<tr><th scope="row"><code>${path}</code></th>${cells.join("")}</tr>`;
		})
		.join("\n");
}
