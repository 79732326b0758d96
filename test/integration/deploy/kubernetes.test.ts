// Checks the manifests of docs/deploy/kubernetes: by Kubernetes' own types, by the settings of
// relay and boost, and against each other, the image and docs/deploy.md. No cluster runs them here.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { readBoostConfig } from "../../../boost-proxy/config.ts";
import { readRelayConfig } from "../../../relay/config.ts";
import { DEPLOY_SETTINGS, STOP_MS } from "../../support/deploySettings.ts";
import { imageStages, only, textOf } from "../../support/documents.ts";
import { type Container, faultsOf, KUBERNETES, type Manifest, manifests } from "../../support/kubernetes.ts";
import { lineOf } from "../../support/processes.ts";

const all = manifests();
const SERVERS = ["relay", "boost"] as const;
type Server = (typeof SERVERS)[number];

/** URLs that may hold a key or a password. */
const WITH_CREDENTIALS = ["DATABASE_URL", "ETH_RPC_URL"];

/** The only manifest of a kind with that name. */
function of(kind: string, name: string): Manifest {
	const [found, ...others] = all.filter((one) => one.kind === kind && one.metadata.name === name);
	assert.ok(found !== undefined && others.length === 0, `${kind} ${name}`);
	return found;
}

function podOf(name: Server) {
	const { template } = of("Deployment", name).spec ?? {};
	const [container, ...others] = template?.spec.containers ?? [];
	assert.ok(template !== undefined && container !== undefined && others.length === 0);
	return { labels: template.metadata.labels, ...template.spec, container };
}

/** Made-up mistakes in the manifests' text as JSON, and what must be said of each. */
const MISTAKES: readonly (readonly [kind: string, name: string, from: string, to: string, RegExp])[] = [
	["Deployment", "relay", '"replicas":2', '"replicas":"2"', /'string' is not assignable to type 'number'/],
	["Deployment", "relay", '"replicas":2', '"replica":2', /'replica' does not exist/],
	["Deployment", "relay", '"selector":', '"selectors":', /'selectors' does not exist/],
	["Deployment", "relay", '"containerPort":8080', '"port":8080', /'port' does not exist/],
	["Deployment", "relay", '"containerPort":8080', '"hostIP":"::"', /'containerPort' is missing/],
	["Deployment", "relay", '"fieldPath"', '"path"', /'path' does not exist/],
	["Deployment", "relay", '"httpGet"', '"httpget"', /'httpget' does not exist/],
	["Deployment", "relay", '"seconds":3', '"seconds":"3s"', /'string' is not assignable to type 'number'/],
	["Deployment", "relay", '"value":"8080"', '"value":8080', /'number' is not assignable to type 'string'/],
	["Deployment", "relay", '"kind":"Deployment"', '"kind":"Deploiment"', /no exported member 'Deploiment'/],
	["Deployment", "relay", '"apiVersion":"apps/v1"', '"apiVersion":"apps/v7"', /Cannot find module/],
	[
		"Deployment",
		"boost",
		'"runAsNonRoot":true',
		'"runAsNonRoot":"yes"',
		/'string' is not assignable to type 'boolean/,
	],
	["Service", "relay", '"port":8080', '"port":"http"', /'string' is not assignable to type 'number'/],
	["Service", "relay", '"selector":', '"matchLabels":', /'matchLabels' does not exist/],
	["PodDisruptionBudget", "boost", '"minAvailable":1', '"minAvailable":true', /'true' is not assignable/],
	["NetworkPolicy", "relay", '"podSelector"', '"podselector"', /'podselector' does not exist/],
	["Ingress", "leeward", '"pathType":"Prefix",', "", /'pathType' is missing/],
	["ConfigMap", "relay", '"data":', '"values":', /'values' does not exist/],
	["Secret", "leeward", '"stringData":', '"stringdata":', /'stringdata' does not exist/],
];

let faults: readonly (readonly string[])[];
before(async () => {
	const wrong = MISTAKES.map(([kind, name, from, to]): unknown => {
		const text = JSON.stringify(of(kind, name));
		assert.ok(text.includes(from), from);
		return JSON.parse(text.replace(from, to));
	});
	faults = await faultsOf([...all, ...wrong]);
});

for (const [i, { kind, metadata }] of all.entries()) {
	test(`${kind} ${metadata.name} is one by Kubernetes' types`, () => {
		assert.deepEqual(faults[i], []);
	});
}

for (const [i, [kind, name, from, to, expected]] of MISTAKES.entries()) {
	test(`it is seen: ${kind} ${name} with ${to === "" ? `no ${from}` : to}`, () => {
		assert.match((faults[all.length + i] ?? []).join("\n"), expected);
	});
}

/** A container's environment: literals, its ConfigMap, and `secret NAME` for the Secret's. */
function environmentOf(container: Container): Record<string, string> {
	const env: Record<string, string> = {};
	for (const { configMapRef } of container.envFrom)
		Object.assign(env, of("ConfigMap", configMapRef.name).data);
	for (const { name, value, valueFrom } of container.env) {
		assert.ok(!(name in env), `${name} is set twice`);
		const { secretKeyRef, fieldRef } = valueFrom ?? {};
		if (secretKeyRef !== undefined) {
			const { name: secret, key = "" } = secretKeyRef;
			const found = of("Secret", secret).stringData?.[key];
			assert.ok(found !== undefined && key === name, `${secret} ${key}`);
			env[name] = `secret ${key}`;
		} else if (fieldRef !== undefined) env[name] = { "status.podIP": "10.1.2.3" }[fieldRef.fieldPath] ?? "";
		else env[name] = (value ?? "").replaceAll(/\$\((\w+)\)/g, (_whole, one: string) => env[one] ?? "?");
	}
	return env;
}

for (const name of SERVERS) {
	const { container, ...pod } = podOf(name);
	const env = environmentOf(container);

	test(`${name}: its environment consists of settings`, () => {
		const { POD_IP, ...settings } = env;
		for (const [setting, value] of Object.entries(settings)) {
			const row = DEPLOY_SETTINGS[name][setting];
			assert.ok(row !== undefined, `${setting} is no setting of ${name}`);
			const isSecret = row.secret === true || WITH_CREDENTIALS.includes(setting);
			assert.equal(value.startsWith("secret "), isSecret, setting);
			if (!value.startsWith("secret ")) assert.notEqual(row.parse(value), undefined, setting);
		}
		// Others reach it at its pod's own address.
		assert.equal(env.INTERNAL_URL, name === "relay" ? `http://${POD_IP}:${env.PORT}` : undefined);
	});

	test(`${name}: its port is asked by the probes, and by the Service's name`, () => {
		assert.deepEqual(container.ports, [{ name: "http", containerPort: Number(env.PORT) }]);
		assert.equal(env.PORT, DEPLOY_SETTINGS[name].PORT?.default);
		const { startupProbe, livenessProbe, readinessProbe } = container;
		const probes = [startupProbe, livenessProbe, readinessProbe];
		assert.deepEqual(
			probes.map(({ httpGet }) => httpGet),
			["/livez", "/livez", "/readyz"].map((path) => ({ path, port: "http" })),
		);
		const [port] = of("Service", name).spec?.ports ?? [];
		assert.deepEqual([port?.name, port?.targetPort], ["http", "http"]);
	});

	test(`${name}: every selector is for its pods`, () => {
		const { spec } = of("Deployment", name);
		const selectors = [
			spec?.selector?.matchLabels,
			of("Service", name).spec?.selector,
			of("PodDisruptionBudget", name).spec?.selector?.matchLabels,
			...pod.topologySpreadConstraints.map(({ labelSelector }) => labelSelector.matchLabels),
		];
		for (const selector of selectors) assert.deepEqual(selector, { "app.kubernetes.io/name": name });
		assert.equal(pod.labels["app.kubernetes.io/name"], name);
	});

	test(`${name}: it is of the image, runs as its user, and has time to drain`, () => {
		const image = imageStages().at(-1);
		assert.ok(image !== undefined);
		assert.equal(`exec ${container.command.join(" ")}`, lineOf(name));
		const { runAsUser, runAsGroup } = pod.securityContext;
		assert.equal(only(image, "USER"), `${runAsUser}:${runAsGroup}`);
		assert.equal(container.securityContext.readOnlyRootFilesystem, true);
		const before = container.lifecycle.preStop.sleep.seconds * 1_000;
		assert.ok(pod.terminationGracePeriodSeconds * 1_000 >= before + STOP_MS);
	});

	test(`${name}: one at least is there while others are replaced or moved`, () => {
		const { replicas = 0, strategy } = of("Deployment", name).spec ?? {};
		const { minAvailable = 0 } = of("PodDisruptionBudget", name).spec ?? {};
		assert.equal(strategy?.rollingUpdate.maxUnavailable, 0);
		assert.ok(replicas > minAvailable && minAvailable >= 1, `${minAvailable} of ${replicas}`);
	});
}

test("relay and boost accept their environment, the secrets filled in", () => {
	const values: Readonly<Record<string, string>> = {
		DATABASE_URL: "postgres://leeward:secret@db.example/leeward",
		BOOST_SECRET: "shared by both",
		SIGNING_KEY: `0x${"a1".repeat(32)}`,
		ETH_RPC_URL: "https://node.example",
	};
	assert.deepEqual(Object.keys(of("Secret", "leeward").stringData ?? {}).sort(), Object.keys(values).sort());
	const [relay, boost] = SERVERS.map((name) => {
		const told = Object.entries(environmentOf(podOf(name).container));
		return Object.fromEntries(
			told.map(([key, value]) => [key, value.startsWith("secret ") ? (values[key] ?? "") : value]),
		);
	});
	assert.equal(readRelayConfig(relay ?? {}).SIGNING_KEY, values.SIGNING_KEY);
	assert.equal(readBoostConfig(boost ?? {}).BOOST_SECRET, values.BOOST_SECRET);
	// Each has only its own.
	assert.deepEqual([boost?.SIGNING_KEY, boost?.ETH_RPC_URL], [undefined, undefined]);
});

test("boost reaches the relays by their Service, the ingress the boosts by theirs", () => {
	const port = of("Service", "relay").spec?.ports?.[0]?.port;
	assert.equal(of("ConfigMap", "boost").data?.RELAY_URL, `http://relay:${port}`);
	const paths = of("Ingress", "leeward").spec?.rules?.flatMap(({ http }) => http.paths) ?? [];
	assert.deepEqual(
		paths.map(({ path, backend }) => [path, backend.service.name]),
		[
			["/", "boost"],
			["/internal", "nowhere"],
		],
	);
	assert.equal(paths[0]?.backend.service.port.name, of("Service", "boost").spec?.ports?.[0]?.name);
	assert.equal(of("Service", "nowhere").spec?.selector, undefined);
	// It appends the client's address.
	assert.equal(of("ConfigMap", "boost").data?.TRUST_PROXY, "1");
});

test("only relays and boosts reach a relay", () => {
	const { podSelector, ingress = [] } = of("NetworkPolicy", "relay").spec ?? {};
	assert.deepEqual(podSelector?.matchLabels, { "app.kubernetes.io/name": "relay" });
	const from = ingress.flatMap((one) => one.from.map((peer) => peer.podSelector.matchLabels));
	assert.deepEqual(from, [{ "app.kubernetes.io/part-of": "leeward" }]);
	for (const name of SERVERS) assert.equal(podOf(name).labels["app.kubernetes.io/part-of"], "leeward");
	assert.deepEqual(ingress[0]?.ports, [{ port: "http" }]);
});

test("docs/deploy.md lists what is to be filled in, and nothing else", () => {
	const placeholders = (text: string) => [...new Set(text.match(/<[a-z-]+>/g) ?? [])].sort();
	const [, section = ""] = textOf("docs/deploy.md").split(/^## Kubernetes$/m);
	const [listed = ""] = section.split(/^## /m);
	const used = placeholders(all.map((one) => JSON.stringify(one)).join());
	assert.ok(used.length > 5, used.join());
	assert.deepEqual(placeholders(listed), used);
	assert.ok(listed.includes(KUBERNETES));
});
