// Resets a connection. A socket that is already ending is destroyed instead: node (20) would take its handle for
// closed when it is not, and the process would never exit.

import type { Socket } from "node:net";

/** Resets the connection, or destroys it where it is ending anyway. */
export function resetSocket(socket: Socket): void {
	if (socket.writableEnded) socket.destroy();
	else socket.resetAndDestroy();
}
