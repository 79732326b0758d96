// An upstream's transport for the tests of probes: it answers boost's own questions as is set.

import type { Transport } from "../../../../boost-proxy/domain/ports.ts";
import type { TransportResult } from "../../../../boost-proxy/domain/request.ts";
import type { ManualClock } from "../../../support/manualClock.ts";

export const answered = (status: number, body: unknown): TransportResult => ({
	kind: "answered",
	status,
	retryAfterS: undefined,
	body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
});
export const result = (value: unknown, status = 200) =>
	answered(status, { jsonrpc: "2.0", id: 1, result: value });
export const error = (code: number, status = 200) =>
	answered(status, { jsonrpc: "2.0", id: 1, error: { code, message: "no" } });
export const CUT: TransportResult = { kind: "aborted", sent: false };

/**
 * A transport that answers each method, and /readyz, with what is set for it, each after `tookMs`.
 */
export class FakeTransport implements Transport {
	readonly asked: string[] = [];
	readonly deadlines: number[] = [];
	readonly answers: Record<string, TransportResult> = {
		readyz: answered(200, { ready: true }),
		eth_blockNumber: result("0x64"),
		eth_chainId: result("0x1"),
		eth_sendRawTransaction: error(-32000),
	};
	tookMs = 0;
	readonly #clock: ManualClock;

	constructor(clock: ManualClock) {
		this.#clock = clock;
	}

	post({ target, body, deadlineMs }: Parameters<Transport["post"]>[0]): Promise<TransportResult> {
		const { method } = JSON.parse(body.toString()) as { method: string };
		return this.#answer(method, `${method}${target}`, deadlineMs);
	}

	get(target: string, deadlineMs: number): Promise<TransportResult> {
		return this.#answer("readyz", target, deadlineMs);
	}

	async close(): Promise<void> {}

	async #answer(key: string, asked: string, deadlineMs: number): Promise<TransportResult> {
		this.asked.push(asked);
		this.deadlines.push(deadlineMs);
		if (this.tookMs > 0) await new Promise<void>((resolve) => this.#clock.after(this.tookMs, resolve));
		return this.answers[key] ?? CUT;
	}
}
