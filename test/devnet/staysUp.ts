// Keeps the process alive until a promise settles: neither the clock's timers nor idle connections do that.

/** `work`, for whose end the process waits. */
export async function staysUp<T>(work: Promise<T>): Promise<T> {
	const { port1, port2 } = new MessageChannel();
	port1.ref();
	try {
		return await work;
	} finally {
		port1.close();
		port2.close();
	}
}
