// Properties of all orders of events with one unusual event, and of random orders: some thousands
// of runs. Orders with many unusual events that are easily broken have tests of
// their own.

import { describeOrder, describeOrders, describeRandomOrders } from "./orders.ts";

describeOrders(1);
describeRandomOrders(200);

describeOrder(
	"boost sends a replacement to the relay while the fallback cancels it",
	{ way: "by hash, of its replacement", relayOut: false, takesOver: false },
	[
		...["leaves", "arrives", "is answered"].map((step) => `A's transaction to the relay ${step}`),
		"A is asked to replace it",
		"A's replacement to the relay is given up",
		...["leaves", "arrives", "is answered"].map((step) => `A's replacement to the fallback ${step}`),
		"a second passes",
		...["leaves", "arrives", "is answered"].map((step) => `A's cancel to the relay ${step}`),
		"A's replacement to the relay leaves",
		"A is asked to cancel",
		// It also goes to the relay, before what has left for it.
		"A's cancel to the relay leaves",
		"A's cancel to the relay arrives",
		"A's replacement to the relay arrives",
	],
);

describeOrder(
	"an instance learns that the relay has replaced it, loses the database, and another one cancels",
	{ way: "by hash, of its replacement", relayOut: false, takesOver: true, isThorough: true },
	[
		...["leaves", "arrives", "is answered"].map((step) => `A's transaction to the relay ${step}`),
		"A is asked to replace it",
		"A's replacement to the relay leaves",
		"A's database is cut off",
		"A's replacement to the relay arrives",
		"B takes over, A is suspended",
		"B is asked to cancel",
		"B's cancel to the relay leaves",
		"B's cancel to the relay arrives",
		"A resumes",
		"A's replacement to the relay is answered",
		"B's cancel to the relay is answered",
		"the relay goes out",
		"a second passes",
	],
);

describeOrder(
	"another instance sends it again while a cancel is under way, whose database was cut off",
	{ way: "by hash", relayOut: true, takesOver: true, isThorough: true },
	[
		"A's transaction to the fallback leaves",
		"a second passes",
		"A is asked to cancel",
		"a second passes",
		"A's transaction to the fallback arrives",
		"A's database is cut off",
		"A's transaction to the fallback is answered",
		"A's cancel to the fallback is given up",
		"A's cancel to the fallback leaves",
		"A's database is back",
		"the fallback goes out",
		"B takes over, A is suspended",
		"A's cancel to the fallback arrives",
		"a second passes",
		"the fallback is back",
		"B's transaction to the fallback leaves",
		"the relay is back",
		"B's transaction to the fallback is given up",
		"B's transaction to the fallback arrives",
		"A resumes",
		"B's transaction to the relay leaves",
		"A's cancel to the fallback is answered",
		"B's transaction to the relay arrives",
		"B's transaction to the relay is answered",
		"B is asked to cancel",
	],
);
