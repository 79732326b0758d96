// A breaker that a test opens and closes, and the base of the fixtures' upstreams.

import type { Breaker, Dialect, Upstream } from "../../../boost-proxy/domain/ports.ts";
import type { Delivery, UpstreamName } from "../../../boost-proxy/domain/request.ts";
import type { RpcAnswer } from "../../../shared/jsonrpc/client.ts";

export class FakeBreaker implements Breaker {
	readonly upstream: UpstreamName;
	#isUnavailable = false;
	readonly #listeners: (() => void)[] = [];

	constructor(upstream: UpstreamName) {
		this.upstream = upstream;
	}

	get isUnavailable(): boolean {
		return this.#isUnavailable;
	}

	get state() {
		return this.#isUnavailable ? "open" : "closed";
	}

	get retryMs(): number {
		return this.#isUnavailable ? 1 : 0;
	}

	set(isUnavailable: boolean): void {
		this.#isUnavailable = isUnavailable;
		for (const listener of this.#listeners) listener();
	}

	onChange(listener: () => void): void {
		this.#listeners.push(listener);
	}

	run(): never {
		throw new Error("not used here");
	}

	note(): void {}
	force(): void {}

	status(): never {
		throw new Error("not used here");
	}
}

/** An upstream that answers nothing; fixtures override what their tests use. */
export class FakeUpstreamBase implements Upstream {
	readonly name: UpstreamName;
	readonly breaker: FakeBreaker;
	dialect: Dialect | null;

	constructor(name: UpstreamName, dialect: Dialect | null = null) {
		this.name = name;
		this.dialect = dialect;
		this.breaker = new FakeBreaker(name);
	}

	get isUnavailable(): boolean {
		return this.breaker.isUnavailable;
	}

	set isUnavailable(is: boolean) {
		this.breaker.set(is);
	}

	whyUnfit(_path: string): string | null {
		return null;
	}

	deliver(..._: Parameters<Upstream["deliver"]>): Promise<Delivery | null> {
		throw new Error("not used here");
	}

	read(): never {
		throw new Error("not used here");
	}

	async call(..._: Parameters<Upstream["call"]>): Promise<RpcAnswer | null> {
		return null;
	}

	async batch(..._: Parameters<Upstream["batch"]>): Promise<readonly RpcAnswer[] | null> {
		return null;
	}

	async statusPage(..._: Parameters<Upstream["statusPage"]>): Promise<unknown> {
		return null;
	}
}
