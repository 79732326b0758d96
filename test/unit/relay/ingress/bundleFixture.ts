// The bundle methods behind a real dispatcher, with a fake market that records calls and answers as the test says.

import type { BidRequest, BundleOutcome, PlainBundleRequest } from "../../../../relay/domain/bundle.ts";
import type { Market } from "../../../../relay/domain/ports.ts";
import type { MethodDependencies } from "../../../../relay/ingress/methodDependencies.ts";
import {
	eth_cancelBundle,
	eth_sendBundle,
	mev_sendBundle,
} from "../../../../relay/ingress/methods/bundles.ts";
import { type CallContext, type Client, callContext } from "../../../../shared/http/callContext.ts";
import { createDispatcher } from "../../../../shared/jsonrpc/dispatch.ts";
import { methodTable } from "../../../../shared/jsonrpc/method.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";

export const ADDRESS = "192.0.2.1";
export const SIGNER = `0x${"51".repeat(20)}`;
/** What the market answers unless told otherwise. */
export const HASH = `0x${"0a".repeat(32)}`;
export const BUILDERS = ["one", "two"];

const METHODS = [eth_sendBundle, eth_cancelBundle, mev_sendBundle];

/** A market that takes everything, or answers `outcome`. */
class FakeMarket implements Market {
	outcome: BundleOutcome = { outcome: "accepted", hash: HASH };
	readonly bids: BidRequest[] = [];
	readonly bundles: PlainBundleRequest[] = [];
	readonly cancels: [string, string][] = [];

	async bid(request: BidRequest): Promise<BundleOutcome> {
		this.bids.push(request);
		return this.outcome;
	}

	async submit(request: PlainBundleRequest): Promise<BundleOutcome> {
		this.bundles.push(request);
		return this.outcome;
	}

	cancel(owner: string, uuid: string): void {
		this.cancels.push([owner, uuid]);
	}

	/** How often it was asked anything. */
	get asked(): number {
		return this.bids.length + this.bundles.length + this.cancels.length;
	}
}

/** Who calls: over HTTP from {@link ADDRESS}, unsigned and without an `Origin`, unless said. */
export interface Caller {
	readonly address?: string;
	readonly signer?: string;
	readonly origin?: string;
	readonly websocket?: boolean;
}

function context({ address = ADDRESS, signer, origin, websocket = false }: Caller = {}): CallContext {
	const client = { address, signer: signer ?? null, vouched: false };
	const connection = websocket ? { send() {}, close() {}, onClose() {}, afterAnswer() {} } : null;
	return callContext({ path: "/", search: "" }, client, origin ?? null, connection);
}

/** The methods and what they did. */
export function startBundleMethods() {
	const market = new FakeMarket();
	const charges: [Client, number][] = [];
	const needs: Pick<MethodDependencies, "market" | "builderNames" | "refundPercent" | "charge"> = {
		market,
		builderNames: BUILDERS,
		refundPercent: 90,
		charge: (client, weight) => void charges.push([client, weight]),
	};
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch: 100 },
		// The other needs are other methods'.
		{
			methods: methodTable(METHODS, needs as MethodDependencies),
			log: silentLogger,
			clock: new ManualClock(),
		},
	);
	const send = async (body: unknown, caller?: Caller) => {
		const answer = await dispatcher.dispatch(JSON.stringify(body), context(caller));
		return JSON.parse(answer.text ?? "null");
	};
	const call = (method: string, params: readonly unknown[], caller?: Caller, id: unknown = 1) =>
		send({ jsonrpc: "2.0", id, method, params }, caller);
	/** The result alone; fails where there is none. */
	const result = async (method: string, params: readonly unknown[], caller?: Caller) => {
		const answer = await call(method, params, caller);
		if (!("result" in answer)) throw new Error(JSON.stringify(answer));
		return answer.result;
	};
	return { market, charges, send, call, result };
}
