// The header with which a key's owner reads live data. Anybody who has the header can use it, but
// only on this relay and chain and for a day at most:
//
//     X-Leeward-Signature: address=0x…, relay=relay.example, until=1769904000, signature=0x…

import type { Clock } from "../../shared/clock.ts";
import { parseAddress } from "../../shared/ethereum/hex.ts";
import { type ReadScope, readSigner } from "../../shared/ethereum/typedData.ts";

/** Checks the header. `signer`: lower-case address; `error`: what was expected. */
export type VerifyRead = (
	header: string,
	scope: ReadScope,
) => { readonly signer: string } | { readonly error: string };

interface ReadSignatureDependencies {
	readonly chainId: bigint;
	/**
	 * The relay's name, the host of PUBLIC_URL; null if it has none. Then only names of this
	 * machine are accepted.
	 */
	readonly name: string | null;
	readonly clock: Clock;
}

const HEADER =
	/^address=(0x[0-9a-f]{40}), *relay=([^\s,]{1,260}), *until=(\d{1,12}), *signature=(0x[0-9a-f]{130})$/i;
const FORM = "expected address=0x…, relay=<name>, until=<seconds since 1970>, signature=0x…";
const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;
/**
 * Maximum validity of a signature, in seconds. Anybody who obtains the signature can read until it
 * expires.
 */
const MOST_S = 24 * 3_600;

export function readVerifier({ chainId, name, clock }: ReadSignatureDependencies): VerifyRead {
	return (header, scope) => {
		const [, given = "", relay = "", until = "", signature = ""] = HEADER.exec(header) ?? [];
		const address = parseAddress(given);
		if (address === null) return refused(FORM);
		if (name === null && !LOOPBACK.test(relay)) {
			const names = "localhost, 127.0.0.1 or [::1]";
			return refused(
				`relay: expected ${names}, since this relay has no name: its operator has to set PUBLIC_URL`,
			);
		}
		if (name !== null && relay !== name) return refused(`relay: expected ${name}`);
		const now = Math.floor(clock.now() / 1_000);
		if (Number(until) < now) return refused(`until: expired, it is ${now} here`);
		if (Number(until) > now + MOST_S)
			return refused(`until: expected at most ${MOST_S} seconds from now, it is ${now} here`);
		const signer = readSigner(chainId, { relay, scope, until }, signature);
		if (signer === address) return { signer };
		const expected = `Read(relay "${relay}", scope "${scope}", until ${until}) on chain ${chainId}`;
		return refused(`expected a signature by ${address} over ${expected}`);
	};
}

function refused(why: string) {
	return { error: `X-Leeward-Signature: ${why}` };
}
