// All orders with up to three unusual events, and many random ones: a hundred and sixty thousand
// runs.

import { describeOrders, describeRandomOrders } from "./orders.ts";

describeOrders(3);
describeRandomOrders(4_000);
