// The hook by which node:test watches every promise of its process, to know the suite that a new
// test belongs to (Node 20 to 24, lib/internal/test_runner/harness.js). It takes a process 8 % of
// its time, and nothing needs it while tests run. node:test must be loaded after this module.

import hooks, { type AsyncHook } from "node:async_hooks";

const { createHook } = hooks;
let hook: AsyncHook | undefined;

hooks.createHook = (callbacks) => {
	// node:test is the first.
	hooks.createHook = createHook;
	hook = createHook(callbacks);
	return hook;
};

/** Enables it, to define tests. */
export function enableHook(): void {
	hook?.enable();
}

/** Disables it, when the tests are defined. */
export function disableHook(): void {
	hook?.disable();
}
