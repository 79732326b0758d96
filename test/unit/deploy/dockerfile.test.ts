// Tests the Dockerfile and .dockerignore: only known instructions, an image of what runs and nothing else, no root,
// no shell before node. Running the image is tested by image.test.ts.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { validate } from "dockerfile-utils";
import { BOOST_SETTINGS } from "../../../boost-proxy/config.ts";
import { copied, imageStages, only, ROOT, textOf } from "../../support/deployFiles.ts";
import { lineOf } from "../../support/procfileRunner.ts";

const stages = imageStages();
const image = stages.at(-1);
assert.ok(image !== undefined);
/** The names behind the ! of .dockerignore. */
const LET_THROUGH = textOf(".dockerignore")
	.split("\n")
	.filter((line) => line.startsWith("!"))
	.map((line) => line.slice(1));

test("every instruction is one of Docker's, and one that is not is noticed", () => {
	const found = (text: string) => validate(text).map(({ message }) => message);
	assert.deepEqual(found(textOf("Dockerfile")), []);
	for (const [from, to, message] of [
		["WORKDIR", "WORKDIRS", /Unknown instruction/],
		["--interval", "--every", /Unknown flag/],
		["EXPOSE 8080", "EXPOSE http", /Invalid containerPort/],
	] as const) {
		assert.match(found(textOf("Dockerfile").replace(from, to)).join(), message);
	}
});

test("nothing goes to a build but what is named, which is all that is copied, and is there", () => {
	const [first] = textOf(".dockerignore")
		.split("\n")
		.filter((line) => line !== "" && !line.startsWith("#"));
	assert.equal(first, "*");
	const wanted = new Set(stages.flatMap(copied));
	assert.deepEqual([...wanted].sort(), LET_THROUGH.toSorted());
	for (const name of wanted) assert.ok(existsSync(join(ROOT, name)), name);
});

test("the image has the product and its packages, no tests, no dev packages", () => {
	assert.deepEqual(copied(image), [
		...["LICENSE", "package.json", "tsconfig.json", "relay", "boost-proxy", "shared"],
	]);
	const from = /^--from=(\w+) (\S+)/m.exec(
		image.instructions.find(({ rest }) => rest.startsWith("--from="))?.rest ?? "",
	);
	const packages = stages.find(({ name }) => name === from?.[1]);
	assert.ok(packages !== undefined);
	assert.equal(from?.[2], "/app/node_modules");
	assert.equal(only(packages, "RUN"), "npm ci --omit=dev");
	// Native packages that are made for one system must run on the other.
	assert.equal(packages.from, image.from);
});

test("node is the first process, nobody's superuser, told that it is in production", () => {
	const command = JSON.parse(only(image, "CMD")) as string[];
	assert.ok(lineOf("web").includes(` pair) exec ${command.join(" ")} ;;`));
	assert.equal(only(image, "ENTRYPOINT"), "");
	for (const stage of stages.slice(1)) assert.equal(only(stage, "USER"), "1000:1000");
	assert.match(only(image, "ENV"), /\bNODE_ENV=production\b/);
});

test("it listens where it says, and is asked there whether it is up", () => {
	const port = /\bPORT=(\d+)/.exec(only(image, "ENV"))?.[1];
	assert.equal(only(image, "EXPOSE"), port);
	assert.equal(BOOST_SETTINGS.PORT.parse(port ?? ""), 8080);
	assert.match(only(image, "HEALTHCHECK"), /CMD \["node", "-e", ".*process\.env\.PORT \+ '\/livez'/);
});

test("the image for development runs the dev chain", () => {
	const dev = stages.find(({ name }) => name === "dev");
	assert.ok(dev !== undefined);
	assert.equal(only(dev, "RUN"), "npm ci");
	const entry = (JSON.parse(only(dev, "CMD")) as string[]).at(-1) ?? "";
	assert.ok(existsSync(join(ROOT, entry)));
	assert.ok(copied(dev).some((name) => entry.startsWith(`${name}/`)));
});
