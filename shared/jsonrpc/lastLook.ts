// A last look before a request is written: a dispatcher of undici's comes in, one that asks first goes out. Between the call
// and that moment a request may wait for its connection, and the process may have been stopped.

import type { Dispatcher } from "undici";

/** Asked when nothing of the request has been written yet; false: it never is. */
export type MayStart = () => boolean;

/** `dispatcher`, asking the {@link MayStart} that a request has as its `opaque`. What may not start fails. */
export function withLastLook(dispatcher: Dispatcher): Dispatcher {
	return dispatcher.compose((dispatch) => (options, handler) => {
		const mayStart = (options as { opaque?: unknown }).opaque;
		return dispatch(
			options,
			typeof mayStart === "function" ? looking(handler, mayStart as MayStart) : handler,
		);
	});
}

function looking(handler: Dispatcher.DispatchHandler, mayStart: MayStart): Dispatcher.DispatchHandler {
	return {
		onRequestStart(controller, context) {
			handler.onRequestStart?.(controller, context);
			if (!mayStart()) controller.abort(new Error("it may not start any more"));
		},
		onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
		onResponseStart: (...given) => handler.onResponseStart?.(...given),
		onResponseData: (...given) => handler.onResponseData?.(...given),
		onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
		onResponseError: (...given) => handler.onResponseError?.(...given),
	};
}
