// The attacker's process, separate so that its work does not count as the relay's. Each message to
// it names an attack, each reply has the result. It ends with its parent.

import { ATTACKS, type AttackParams } from "./attackKinds.ts";

/** A message from the parent. */
interface AttackOrder {
	readonly id: number;
	readonly name: string;
	readonly params: AttackParams;
}

process.on("message", ({ id, name, params }: AttackOrder) => {
	const attack = ATTACKS[name];
	const working = attack === undefined ? Promise.reject(new Error(`no attack ${name}`)) : attack(params);
	working.then(
		(tally) => process.send?.({ id, tally }),
		(thrown: unknown) => process.send?.({ id, fault: String(thrown) }),
	);
});
process.on("disconnect", () => process.exit(0));
