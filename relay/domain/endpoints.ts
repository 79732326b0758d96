// What clients name: the paths of submissions, each with its policy, and the topics that websockets subscribe to. Pure.

/** How a transaction that was submitted on one path is treated. */
export interface EndpointPolicy {
	/** Whether it must pass a simulation in the next block before it goes out. */
	readonly simulated: boolean;
	/** Whether it is simulated again in each block, and stops going out while it fails. */
	readonly resimulated: boolean;
	/** Who of the searchers may see it: nobody, all if it is likely to be backrun, all at once. */
	readonly shared: "never" | "likely" | "always";
	/** Whether builders may include it reverted. */
	readonly mayRevert: boolean;
	/** Which builders get it. */
	readonly builders: "all" | "fullPrivacy";
	/** In which form: as a bundle for one block, or as a private transaction. */
	readonly form: "bundle" | "private";
	/** What the REST record calls `fastMode`. */
	readonly fastMode: boolean;
	/** Whether the query parameter `softCancellations` has an effect. */
	readonly softCancellations: boolean;
}

const BASE = {
	simulated: true,
	resimulated: false,
	shared: "likely",
	mayRevert: true,
	builders: "all",
	form: "bundle",
	fastMode: false,
	softCancellations: false,
} as const satisfies EndpointPolicy;

/** The paths and their treatment, as the interface lists them. */
export const ENDPOINTS = {
	fast: { ...BASE, fastMode: true },
	noreverts: { ...BASE, resimulated: true, mayRevert: false, softCancellations: true },
	fullprivacy: {
		...BASE,
		resimulated: true,
		mayRevert: false,
		shared: "never",
		builders: "fullPrivacy",
		softCancellations: true,
	},
	maxbackruns: { ...BASE, shared: "always" },
	nochecks: { ...BASE, simulated: false, shared: "never", form: "private" },
} as const satisfies Record<string, EndpointPolicy>;

export type SubmissionPath = keyof typeof ENDPOINTS;

/** The path that `/` stands for. */
export const DEFAULT_PATH: SubmissionPath = "fast";

/** The treatment of `path`. */
export function policyOf(path: SubmissionPath): EndpointPolicy {
	return ENDPOINTS[path];
}

/** Whether `name` is one of the submission paths. */
export function isSubmissionPath(name: string): name is SubmissionPath {
	return Object.hasOwn(ENDPOINTS, name);
}

/** Unsigned transactions as they are shared with searchers. */
export const PENDING_TRANSACTIONS = "pendingTransactions";

/** Headers of new blocks. */
export const NEW_HEADS = "newHeads";

/** Logs of new blocks; the filter follows as JSON. */
export const LOGS = "logs ";

/** What becomes of one transaction. */
export function transactionTopic(hash: string): string {
	return `transaction ${hash}`;
}

/** What becomes of one bundle of one owner. */
export function bundleTopic(owner: string, hash: string): string {
	return `bundle ${owner} ${hash}`;
}

/** Unsigned pending transactions as they are shared (interface section 6); aliases mean this one. */
export const PARTIAL_PENDING_TRANSACTIONS = "service_partialPendingTransactions";

/** Every name that has a meaning of its own. */
export const SUBSCRIPTION_NAMES = [
	PARTIAL_PENDING_TRANSACTIONS,
	"newHeads",
	"logs",
	"service_transactionStatus",
	"service_bundleStatus",
] as const;
