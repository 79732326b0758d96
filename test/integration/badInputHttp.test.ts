// Bad HTTP against a running relay: each row gets its exact answer, and the relay is well behind them all.

import { after, before, test } from "node:test";
import { BROKEN_HTTP_ROWS } from "./badInput/brokenHttp.ts";
import { HTTP_ROWS } from "./badInput/httpRows.ts";
import { testBytesRows, testHttpRows } from "./badInput/rows.ts";
import { type BadInputScene, startScene } from "./badInput/scene.ts";

let scene: BadInputScene;
before(async () => {
	scene = await startScene();
});
after(() => scene.stop());

testHttpRows(HTTP_ROWS, () => scene);
testBytesRows(BROKEN_HTTP_ROWS, () => scene);

test("the relay is well after all of it", () => scene.stillWell());
