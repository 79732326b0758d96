// A fake node that answers what a test scripts and records its calls in order. An answer is a result, an error, or a
// transport fault, which is thrown.

import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";

/** The result of a call, or throws; {@link NodeError} for an error of the node's. */
export type Answer = (params: readonly unknown[]) => unknown;

/** An error that the node answers. */
export class NodeError extends Error {
	readonly code: number;
	readonly data: unknown;
	constructor(code: number, message: string, data?: unknown) {
		super(message);
		this.code = code;
		this.data = data;
	}
}

/** Methods that have no answer are unknown to it. */
export class ScriptedNode {
	readonly answers: Record<string, Answer>;
	readonly calls: RpcCall[] = [];

	constructor(answers: Record<string, Answer>) {
		this.answers = answers;
	}

	/** The methods that it was asked, in order. */
	get asked(): string[] {
		return this.calls.map(({ method }) => method);
	}

	async call(call: RpcCall): Promise<RpcAnswer> {
		this.calls.push(call);
		const answer = this.answers[call.method];
		try {
			if (answer === undefined) throw new NodeError(-32601, "the method does not exist");
			return { ok: true, result: await answer(call.params) };
		} catch (thrown) {
			if (!(thrown instanceof NodeError)) throw thrown;
			const { code, message, data } = thrown;
			return { ok: false, error: { code, message, data } };
		}
	}

	batch(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
		return Promise.all(calls.map((call) => this.call(call)));
	}
}
