// The attacker as a process of its own, so that its work is not taken for the relay's. Each message names an attack, each
// answer has its result. The process ends with its parent.

import { ATTACKS, type AttackParams } from "./attackKinds.ts";

/** What is asked for. */
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
