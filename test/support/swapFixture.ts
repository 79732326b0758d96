// The set-up of an approve-and-swap, what wallets do most in two steps: a pool of WETH and a token
// on the system's chain, and users who hold WETH. The second step works only behind the first one.

import { AbiCoder, getCreateAddress } from "ethers";
import { type Contracts, compileContracts } from "../devnet/compileContracts.ts";
import { type Actor, ETHER, type RelayFixture, type Signed } from "./relayFixture.ts";

/** One who holds WETH and has approved nothing. */
export interface Swapper extends Actor {
	/**
	 * Approves the pool to take his WETH: nonce 1 unless said, since the deposit had 0; all of it
	 * unless said.
	 */
	approve(nonce?: number, wei?: bigint): Signed;
	/** The swap as a call object, as wallets ask about it before they sign. */
	readonly swap: Readonly<Record<string, string>>;
}

const GAS_LIMIT = 3_000_000;
/** Reserves of both tokens, and what each user holds. */
const RESERVES = 1_000n * ETHER;
const HOLDS = 5n * ETHER;
const SELLS = ETHER;
/** Users that a block makes: a test that needs one waits for none. */
const DEPOSITORS = 5;

/** A pool on the chain of `fixture`. */
export class SwapFixture {
	readonly weth: string;
	readonly pair: string;
	readonly #fixture: RelayFixture;
	readonly #contracts: Contracts;
	/** Actors that hold WETH and are nobody's yet. */
	#spare: Actor[] = [];

	private constructor(fixture: RelayFixture, contracts: Contracts, weth: string, pair: string) {
		this.#fixture = fixture;
		this.#contracts = contracts;
		this.weth = weth;
		this.pair = pair;
	}

	/** Puts the contracts into one public block. */
	static async open(fixture: RelayFixture): Promise<SwapFixture> {
		const contracts = compileContracts();
		const { WrappedEther, Token, Pair } = contracts;
		const deployer = await fixture.actor(10_000n * ETHER);
		const [weth, token, pair] = [0, 1, 2].map((nonce) =>
			getCreateAddress({ from: deployer.address, nonce }),
		) as [string, string, string];
		const made = (code: string, types: readonly string[], values: readonly unknown[]) =>
			`${code}${AbiCoder.defaultAbiCoder().encode(types, values).slice(2)}`;
		const steps = [
			{ to: null, data: WrappedEther.code },
			{ to: null, data: made(Token.code, ["string", "uint256"], ["TOKEN", RESERVES]) },
			{ to: null, data: made(Pair.code, ["address", "address"], [weth, token]) },
			{ to: weth, data: WrappedEther.abi.encodeFunctionData("deposit"), value: RESERVES },
			{ to: weth, data: Token.abi.encodeFunctionData("approve", [pair, RESERVES]) },
			{ to: token, data: Token.abi.encodeFunctionData("approve", [pair, RESERVES]) },
			{ to: pair, data: Pair.abi.encodeFunctionData("add", [RESERVES, RESERVES]) },
		];
		for (const [nonce, step] of steps.entries()) {
			await fixture.publish(deployer.sign({ ...step, nonce, gasLimit: GAS_LIMIT }));
		}
		await fixture.passBlock();
		return new SwapFixture(fixture, contracts, weth.toLowerCase(), pair.toLowerCase());
	}

	/** A new user. */
	async swapper(): Promise<Swapper> {
		const { Token, Pair } = this.#contracts;
		const actor = this.#spare.pop() ?? (await this.#depositors());
		const from = actor.address;
		const approval = (wei: bigint) => Token.abi.encodeFunctionData("approve", [this.pair, wei]);
		const data = Pair.abi.encodeFunctionData("swap", [this.weth, SELLS, 1n]);
		return {
			...actor,
			approve: (nonce = 1, wei = HOLDS) => actor.sign({ to: this.weth, data: approval(wei), nonce }),
			swap: { from, to: this.pair, data },
		};
	}

	/** One of several whose deposits are in the next block; the others are kept. */
	async #depositors(): Promise<Actor> {
		const data = this.#contracts.WrappedEther.abi.encodeFunctionData("deposit");
		const first = await this.#fixture.actor();
		const all = [first];
		while (all.length < DEPOSITORS) all.push(await this.#fixture.actor());
		for (const one of all) await this.#fixture.publish(one.sign({ to: this.weth, data, value: HOLDS }));
		await this.#fixture.passBlock();
		this.#spare = all.slice(1);
		return first;
	}
}
