// Decides the owners of a transaction, and the rules that follow from their requests. Anyone who
// has the signed bytes can submit them, first or again. So a later submitter is an owner beside the
// first, and each promise holds by itself. Pure.

import { clientOf } from "./client.ts";

/**
 * The error of a cancel by anybody but an owner. It is the same whether the hash is known, pending
 * or neither, so it reveals nothing.
 */
export const NOT_CANCELLABLE =
	"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key";

/** The error of a cancel by an owner's address while another owner wants the transaction. */
export const STILL_WANTED =
	"taken back for your address; another address that submitted it still wants it: sign the cancel with the sender's key, or replace it";
/** Its `data.reason`. */
export const STILL_WANTED_REASON = "STILL_WANTED";

/**
 * The error of a submission of a transaction that other owners have ended by their addresses.
 * `address`: that of the submission, if it has one.
 */
export function cancelledByOther(hash: string, address: string | null): string {
	const message = `transaction was cancelled by another owner; add again=${hash} to submit it anew`;
	return address === null ? `${message}, not from a web page` : message;
}
/** Its `data.reason`. */
export const CANCELLED_BY_OTHER = "CANCELLED_BY_OTHER";

/** The submission paths by strictness, the strictest first. */
export const STRICTEST_FIRST = ["fullprivacy", "noreverts", "fast", "maxbackruns", "nochecks"] as const;
export type OwnedPath = (typeof STRICTEST_FIRST)[number];

/** The requests of a submission besides its path. */
export interface OwnerOptions {
	/** Whether a self-transfer with the same nonce cancels it without a fee. */
	readonly softCancellations: boolean;
	/** Lower-case address that gets the refund; null: the sender. */
	readonly refundRecipient: string | null;
	readonly referrer: string | null;
	/** Whether searchers may see nothing of it, whatever the path. */
	readonly isHidden: boolean;
	/** Names of the allowed builders; null: all that the path allows. */
	readonly builders: readonly string[] | null;
}

/** A submitter of a transaction, with all its requests. */
export interface Owner<P extends OwnedPath = OwnedPath> extends OwnerOptions {
	/** The network address that may withdraw the request. Null if nobody may. */
	readonly address: string | null;
	/** The requested paths, each once. */
	readonly paths: readonly P[];
	/**
	 * Whether the owner has withdrawn its request. The restrictions that it requested stay in
	 * force.
	 */
	readonly cancelled: boolean;
}

/** The rules in force for a transaction. */
export interface Terms<P extends OwnedPath = OwnedPath> extends OwnerOptions {
	/** The strictest path. */
	readonly path: P;
	/** All paths whose promises hold. */
	readonly paths: readonly P[];
}

/**
 * Maximum owners that are kept by address. The requests of all others are kept as those of a single
 * owner.
 */
export const MAX_OWNERS = 8;

/**
 * The owners after one more submission: the same array if it changes nothing. The same address
 * counts once.
 */
export function withOwner<P extends OwnedPath>(
	owners: readonly Owner<P>[],
	owner: Owner<P>,
): readonly Owner<P>[] {
	let at = indexOf(owners, owner);
	let added = owner;
	if (at < 0 && owner.address !== null && owners.length >= MAX_OWNERS) {
		const extra = oneTooMany(owners, owner.address);
		if (extra !== undefined) {
			const others = owners.filter((one) => one !== extra);
			return withOwner([...others, owner], { ...extra, address: null });
		}
		added = { ...owner, address: null };
		at = indexOf(owners, added);
	}
	const before = owners[at];
	// A spread would make room for sixteen more.
	if (before === undefined) return owners.concat([added]);
	const now = merged(before, added);
	if (isSame(before, now)) return owners;
	// After a withdrawal it is the last owner: only the first one may change path and builders.
	if (before.cancelled && !now.cancelled) return owners.filter((one) => one !== before).concat([now]);
	return owners.with(at, now);
}

/**
 * The owner to record for a submission that comes after builders have the transaction. Only the
 * first owner that still wants it may change the path and the builders. Anybody else may have
 * received the bytes from a builder.
 */
export function lateOwner<P extends OwnedPath>(owners: readonly Owner<P>[], owner: Owner<P>): Owner<P> {
	const first = owners.find(({ cancelled }) => !cancelled);
	if (owner.address !== null && first?.address === owner.address) return owner;
	return { ...owner, paths: termsOf(owners).paths, builders: null };
}

/**
 * The owner that is dropped to make room for `address`, or undefined. It is the last owner of the
 * client with the most, if that client has at least two more than the client of `address`. One
 * subscriber has all addresses of a network, and must not crowd out others with them.
 */
function oneTooMany<P extends OwnedPath>(owners: readonly Owner<P>[], address: string): Owner<P> | undefined {
	const addresses = owners.flatMap((one) => (one.address === null ? [] : [one.address]));
	const countOf = (one: string) => addresses.filter((other) => clientOf(other) === clientOf(one)).length;
	const counts = addresses.map(countOf);
	const most = Math.max(0, ...counts);
	if (most < countOf(address) + 2) return undefined;
	const last = addresses[counts.lastIndexOf(most)];
	return owners.find((one) => one.address === last);
}

function indexOf(owners: readonly Owner[], { address }: Owner): number {
	return owners.findIndex((one) => one.address === address);
}

/**
 * The owners after `address` withdrew its request. Returns the same array if `address` has no open
 * request.
 */
export function withoutWish<P extends OwnedPath>(
	owners: readonly Owner<P>[],
	address: string,
): readonly Owner<P>[] {
	if (!owners.some((one) => one.address === address && !one.cancelled)) return owners;
	return owners.map((one) => (one.address === address ? { ...one, cancelled: true } : one));
}

/** The owners once no address wants it any more. */
export function allTakenBack<P extends OwnedPath>(owners: readonly Owner<P>[]): readonly Owner<P>[] {
	return owners.map((one) => ({ ...one, cancelled: true }));
}

/**
 * The owners of an ended transaction, for the case that it is submitted again. Their requests are
 * over and their addresses are forgotten, but their restrictions still count. `endedBy`: addresses
 * that ended it. They no longer want it, even if their wallets send it again.
 */
export function pastOwners<P extends OwnedPath>(
	owners: readonly Owner<P>[],
	endedBy: readonly string[] = [],
): readonly Owner<P>[] {
	const past = owners
		.map((one) => ({ ...one, address: null, cancelled: true }))
		.reduce<readonly Owner<P>[]>((all, one) => withOwner(all, one), []);
	return past.flatMap((one) => [one, ...endedBy.map((address) => ({ ...one, address }))]);
}

/** Whether `address` belongs to an owner, including one that has withdrawn its request. */
export function isOwnedBy(owners: readonly Owner[], address: string | null): boolean {
	return address !== null && owners.some((one) => one.address === address);
}

/**
 * Whether a self-transfer from `address` cancels the transaction without being mined. If `address`
 * is an owner, that owner must have requested it. Otherwise all owners must have. If not, the
 * self-transfer is a replacement, which ends the transaction for good even if others have its
 * bytes.
 */
export function cancelsSoftly(owners: readonly Owner[], address: string | null): boolean {
	const own = owners.find((one) => isOwnedBy([one], address));
	return own === undefined
		? owners.length > 0 && owners.every((one) => one.softCancellations)
		: own.softCancellations;
}

/** Whether a self-transfer by any sender may cancel it without being mined. */
export function mayCancelSoftly(owners: readonly Owner[]): boolean {
	return owners.some(({ softCancellations }) => softCancellations);
}

/** How many owners still want it. */
export function standingCount(owners: readonly Owner[]): number {
	let count = 0;
	for (const { cancelled } of owners) if (!cancelled) count += 1;
	return count;
}

/** The rules in force: the strictest path, and the options that all owners agree on. */
export function termsOf<P extends OwnedPath>(owners: readonly Owner<P>[]): Terms<P> {
	const [first] = owners;
	if (first === undefined) throw new RangeError("transaction without an owner");
	const { paths, refundRecipient, referrer, isHidden, builders } =
		owners.length === 1 ? first : owners.reduce(merged);
	const path = paths.length === 1 ? (paths[0] as P) : strictest(paths);
	// As for a client that is not an owner.
	const softCancellations = cancelsSoftly(owners, null);
	return { path, paths, softCancellations, refundRecipient, referrer, isHidden, builders };
}

function strictest<P extends OwnedPath>(paths: readonly P[]): P {
	return STRICTEST_FIRST.find((path) => paths.includes(path as P)) as P;
}

/**
 * Merges the requests of two owners, and keeps the first one's address. An option on which they
 * disagree becomes null and stays null.
 */
function merged<P extends OwnedPath>(one: Owner<P>, other: Owner<P>): Owner<P> {
	const more = other.paths.filter((path) => !one.paths.includes(path));
	return {
		address: one.address,
		paths: more.length === 0 ? one.paths : [...one.paths, ...more],
		softCancellations: one.softCancellations || other.softCancellations,
		refundRecipient: one.refundRecipient === other.refundRecipient ? one.refundRecipient : null,
		referrer: one.referrer === other.referrer ? one.referrer : null,
		isHidden: one.isHidden || other.isHidden,
		builders: inBoth(one.builders, other.builders),
		// Its owner has ended it. Wallets resend the bytes of every transaction that they think is
		// pending.
		cancelled: one.address === null ? one.cancelled && other.cancelled : one.cancelled,
	};
}

/**
 * The builders that both allow. If there are none, those of the first owner, who wants it mined.
 */
function inBoth(one: Owner["builders"], other: Owner["builders"]): Owner["builders"] {
	if (one === null || other === null) return one ?? other;
	const both = one.filter((name) => other.includes(name));
	return both.length > 0 ? both : one;
}

/** Whether the same builders are allowed. */
export function areSameBuilders(one: Owner["builders"], other: Owner["builders"]): boolean {
	return (
		one === other || (one?.length === other?.length && one?.every((name) => other?.includes(name)) === true)
	);
}

function isSame(one: Owner, other: Owner): boolean {
	return (
		one.address === other.address &&
		one.softCancellations === other.softCancellations &&
		one.refundRecipient === other.refundRecipient &&
		one.referrer === other.referrer &&
		one.isHidden === other.isHidden &&
		areSameBuilders(one.builders, other.builders) &&
		one.cancelled === other.cancelled &&
		one.paths.length === other.paths.length &&
		one.paths.every((path) => other.paths.includes(path))
	);
}

/** An owner as JSON values, without fields that have their default. */
export function storedOwner(owner: Owner): object {
	const { address, paths, softCancellations: soft, refundRecipient, referrer, cancelled } = owner;
	const { isHidden: hidden, builders } = owner;
	return {
		paths,
		...(address === null ? {} : { address }),
		...(soft ? { soft } : {}),
		...(refundRecipient === null ? {} : { refundRecipient }),
		...(referrer === null ? {} : { referrer }),
		...(hidden ? { hidden } : {}),
		...(builders === null ? {} : { builders }),
		...(cancelled ? { cancelled } : {}),
	};
}

/** The reverse of {@link storedOwner}; null if it is not what that wrote. */
export function readOwner(stored: unknown): Owner | null {
	const { paths, address = null, ...rest } = (stored ?? {}) as Record<string, unknown>;
	const { soft = false, cancelled = false, refundRecipient = null, referrer = null } = rest;
	const { hidden = false, builders = null } = rest;
	const known: readonly unknown[] = STRICTEST_FIRST;
	const isRead =
		Array.isArray(paths) &&
		paths.length > 0 &&
		paths.every((path) => known.includes(path)) &&
		(builders === null || (Array.isArray(builders) && builders.every((name) => typeof name === "string"))) &&
		[address, refundRecipient, referrer].every((one) => one === null || typeof one === "string");
	if (!isRead) return null;
	return {
		address: address as string | null,
		paths: paths as OwnedPath[],
		softCancellations: soft === true,
		refundRecipient: refundRecipient as string | null,
		referrer: referrer as string | null,
		isHidden: hidden === true,
		builders: builders as readonly string[] | null,
		cancelled: cancelled === true,
	};
}
