// The submission paths with their policies, and the topics and names of websocket subscriptions.
// Pure.

/** How transactions of a path are treated. */
export interface EndpointPolicy {
	/** Whether a transaction must pass a simulation before it is sent. */
	readonly simulated: boolean;
	/** Whether it is simulated again for each block, and not sent while it fails. */
	readonly resimulated: boolean;
	/**
	 * When it is disclosed to searchers: never; once its simulation emits events, so that a backrun
	 * is likely; or always, at once.
	 */
	readonly sharing: "never" | "likely" | "always";
	/** Whether builders may include it reverted. */
	readonly mayRevert: boolean;
	/** Which builders get it. */
	readonly builders: "all" | "fullPrivacy";
	/** Sent as a bundle for one block, or as a private transaction. */
	readonly form: "bundle" | "private";
	/** `fastMode` of the status record. */
	readonly fastMode: boolean;
	/** Whether the query parameter `softCancellations` has an effect. */
	readonly softCancellations: boolean;
}

const BASE = {
	simulated: true,
	resimulated: false,
	sharing: "likely",
	mayRevert: true,
	builders: "all",
	form: "bundle",
	fastMode: false,
	softCancellations: false,
} as const satisfies EndpointPolicy;

/** The submission paths. */
export const ENDPOINTS = {
	fast: { ...BASE, fastMode: true },
	noreverts: { ...BASE, resimulated: true, mayRevert: false, softCancellations: true },
	fullprivacy: {
		...BASE,
		resimulated: true,
		mayRevert: false,
		sharing: "never",
		builders: "fullPrivacy",
		softCancellations: true,
	},
	maxbackruns: { ...BASE, sharing: "always" },
	nochecks: { ...BASE, simulated: false, sharing: "never", form: "private" },
} as const satisfies Record<string, EndpointPolicy>;

export type SubmissionPath = keyof typeof ENDPOINTS;

/** The path of requests to `/`. */
export const DEFAULT_PATH: SubmissionPath = "fast";

/** The policy of `path`. */
export function policyOf(path: SubmissionPath): EndpointPolicy {
	return ENDPOINTS[path];
}

/** When a transaction that was submitted on all of `paths` is disclosed: by the strictest path. */
export function sharingOn(paths: readonly SubmissionPath[]): EndpointPolicy["sharing"] {
	if (paths.some((path) => policyOf(path).sharing === "never")) return "never";
	return paths.every((path) => policyOf(path).sharing === "always") ? "always" : "likely";
}

/**
 * Whether a transaction may be sent only if it passes a simulation for this block. `passed`:
 * whether it ever has.
 */
export function mustPass(one: { readonly policy: EndpointPolicy; readonly passed: boolean }): boolean {
	const { policy, passed } = one;
	return policy.simulated && (policy.resimulated || !passed);
}

/** Whether `name` is one of the submission paths. */
export function isSubmissionPath(name: string): name is SubmissionPath {
	return Object.hasOwn(ENDPOINTS, name);
}

/** Topic: unsigned transactions that are disclosed to searchers. */
export const PENDING_TRANSACTIONS = "pendingTransactions";

/** Topic: headers of new blocks. */
export const NEW_HEADS = "newHeads";

/** Topic prefix: logs of new blocks; the filter follows as JSON. */
export const LOGS = "logs ";

const TRANSACTION = "transaction ";
const BUNDLE = "bundle ";
/** Prefixes of the topics whose notifications come from the core. */
export const FROM_CORE: readonly string[] = [TRANSACTION, BUNDLE];

/** Topic: the status of a transaction. */
export function transactionTopic(hash: string): string {
	return `${TRANSACTION}${hash}`;
}

/** The hash in a {@link transactionTopic}; null for any other topic. */
export function transactionOfTopic(topic: string): string | null {
	return topic.startsWith(TRANSACTION) ? topic.slice(TRANSACTION.length) : null;
}

/** Topic: the status of an owner's bundle. */
export function bundleTopic(owner: string, hash: string): string {
	return `${BUNDLE}${owner} ${hash}`;
}

/** Owner and hash in a {@link bundleTopic}; null for any other topic. */
export function bundleOfTopic(topic: string): { readonly owner: string; readonly hash: string } | null {
	// The owner may contain a space.
	const at = topic.lastIndexOf(" ");
	if (!topic.startsWith(BUNDLE) || at < BUNDLE.length) return null;
	return { owner: topic.slice(BUNDLE.length, at), hash: topic.slice(at + 1) };
}

/** The path of the websocket through which other relays call the core. */
export const EDGE_PATH = "/internal";

/** The subscription to disclosed pending transactions. The configured aliases refer to this one. */
export const PARTIAL_PENDING_TRANSACTIONS = "service_partialPendingTransactions";

/** All built-in subscription names. */
export const SUBSCRIPTION_NAMES = [
	PARTIAL_PENDING_TRANSACTIONS,
	"newHeads",
	"logs",
	"service_transactionStatus",
	"service_bundleStatus",
] as const;
