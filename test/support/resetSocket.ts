// Ends a connection with a reset: a socket comes in, nothing of it is left. Where its end is under way already, node (20)
// would take a handle for closed that never is, and the process would never exit: then it is destroyed instead.

import type { Socket } from "node:net";

/** Resets the connection, or destroys it where it is ending anyway. */
export function resetSocket(socket: Socket): void {
	if (socket.writableEnded) socket.destroy();
	else socket.resetAndDestroy();
}
