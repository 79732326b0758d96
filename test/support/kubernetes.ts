// The manifests of docs/deploy/kubernetes, and what Kubernetes' API would refuse in one: unknown
// keys, wrong types and what is missing, by the types that kubernetes-types has made from
// Kubernetes' own OpenAPI schema. Among npm's packages none has that schema in a form that refuses
// unknown keys.

import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { ROOT, textOf } from "./documents.ts";

/** The folder of the manifests. */
export const KUBERNETES = "docs/deploy/kubernetes";

interface Named {
	readonly name: string;
	readonly key?: string;
}

/** How Kubernetes asks a container. */
interface Probe {
	readonly httpGet: { readonly path: string; readonly port: string };
	readonly failureThreshold?: number;
}

/** A container of a Deployment. */
export interface Container {
	readonly name: string;
	readonly image: string;
	readonly command: readonly string[];
	readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
	readonly envFrom: readonly { readonly configMapRef: Named }[];
	readonly env: readonly {
		readonly name: string;
		readonly value?: string;
		readonly valueFrom?: {
			readonly secretKeyRef?: Named;
			readonly fieldRef?: { readonly fieldPath: string };
		};
	}[];
	readonly startupProbe: Probe;
	readonly livenessProbe: Probe;
	readonly readinessProbe: Probe;
	readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
	readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
}

type Labels = Readonly<Record<string, string>>;

/** The fields of a manifest that tests read, of whatever kind it is. */
export interface Manifest {
	readonly apiVersion: string;
	readonly kind: string;
	readonly metadata: { readonly name: string; readonly labels?: Labels };
	readonly data?: Labels;
	readonly stringData?: Labels;
	readonly spec?: {
		readonly replicas?: number;
		readonly minAvailable?: number;
		readonly strategy?: { readonly rollingUpdate: { readonly maxUnavailable: number } };
		/** In a Service these are the labels themselves. */
		readonly selector?: { readonly matchLabels?: Labels } & Labels;
		readonly podSelector?: { readonly matchLabels: Labels };
		readonly ports?: readonly {
			readonly name?: string;
			readonly port: number;
			readonly targetPort?: string;
		}[];
		readonly ingress?: readonly {
			readonly from: readonly { readonly podSelector: { readonly matchLabels: Labels } }[];
			readonly ports: readonly { readonly port: string }[];
		}[];
		readonly rules?: readonly {
			readonly http: {
				readonly paths: readonly {
					readonly path: string;
					readonly backend: { readonly service: Named & { readonly port: { readonly name?: string } } };
				}[];
			};
		}[];
		readonly template?: {
			readonly metadata: { readonly labels: Labels };
			readonly spec: {
				readonly terminationGracePeriodSeconds: number;
				readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number };
				readonly topologySpreadConstraints: readonly {
					readonly labelSelector: { readonly matchLabels: Labels };
				}[];
				readonly containers: readonly Container[];
			};
		};
	};
}

/** Every manifest, in the order of files. Throws if a file is no YAML. */
export function manifests(): readonly Manifest[] {
	return readdirSync(join(ROOT, KUBERNETES))
		.sort()
		.flatMap((name) => {
			const found = parseAllDocuments(textOf(join(KUBERNETES, name)));
			if (!Array.isArray(found)) throw new Error(`${name} is empty`);
			return found.map((one): Manifest => {
				if (one.errors[0] !== undefined) throw new Error(`${name}: ${one.errors[0].message}`);
				return one.toJS();
			});
		});
}

/** The faults of each of `these`, in order, in the compiler's words; none for one that is right. */
export async function faultsOf(these: readonly unknown[]): Promise<readonly (readonly string[])[]> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-kubernetes-"));
	try {
		symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
		const files = these.map((one, i) => {
			const file = `manifest${i}.ts`;
			writeFileSync(join(folder, file), programOf(one as Manifest));
			return file;
		});
		const said = await compiled(folder, files);
		return files.map((file) =>
			said.flatMap((line) =>
				line.startsWith(`${file}(`)
					? [line.replace(/^.*?: error /, "").replaceAll(/'"(\w+)"'/g, "'$1'")]
					: [],
			),
		);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

/** The manifest as a value of the type that its kind has in its version. */
function programOf(manifest: Manifest): string {
	const { apiVersion, kind } = manifest;
	const path = apiVersion.includes("/") ? apiVersion.replace(/\.k8s\.io\//, "/") : `core/${apiVersion}`;
	const type = `import("kubernetes-types/${path}").${kind}`;
	return `export const manifest: ${type} = ${JSON.stringify(manifest, null, "\t")};\n`;
}

/**
 * The lines that the compiler says. Throws if it says something that is about none of the files.
 */
function compiled(folder: string, files: readonly string[]): Promise<readonly string[]> {
	const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
	const options =
		"--noEmit --strict --module esnext --moduleResolution bundler --skipLibCheck --pretty false";
	const args = [compiler, ...options.split(" "), "--types", "", ...files];
	return new Promise((resolve, reject) => {
		execFile(process.execPath, args, { cwd: folder, maxBuffer: 16e6 }, (_error, stdout, stderr) => {
			const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith(" "));
			const other = lines.filter((line) => !/^manifest\d+\.ts\(/.test(line));
			if (other.length > 0 || stderr !== "") reject(new Error(other.join("\n") + stderr));
			else resolve(lines);
		});
	});
}
