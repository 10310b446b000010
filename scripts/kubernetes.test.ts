// A platform engineer can apply `examples/31-fleet-in-kubernetes`. The compiler compares each manifest with the types of
// Kubernetes. These tests compare the manifests with each other, with the image and with the settings that Holdfast
// reads.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IHTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute";
import type { IDeployment } from "kubernetes-models/apps/v1/Deployment";
import type { IStatefulSet } from "kubernetes-models/apps/v1/StatefulSet";
import type { INetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import type { IPodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import type { IConfigMap } from "kubernetes-models/v1/ConfigMap";
import type { IService } from "kubernetes-models/v1/Service";
import type { IServiceAccount } from "kubernetes-models/v1/ServiceAccount";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { STOP_GRACE_MS } from "../packages/core/src/limits.ts";
import { readCoordinatorFile } from "../packages/place/src/settings/coordinator-config.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const EXAMPLE = join(ROOT, "examples", "31-fleet-in-kubernetes");
const IMAGE = join(ROOT, "examples", "30-fleet-in-containers");
/** It needs what a cluster may not have, so it is applied alone. */
const APART = "route.yaml";

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const read = (file: string): string => readFileSync(join(EXAMPLE, file), "utf8");
const kustomization = parse(read("kustomization.yaml")) as {
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[];
};
const files = readdirSync(EXAMPLE).filter((name) => /\.ya?ml$/.test(name) && name !== "kustomization.yaml");
const manifests = files.flatMap((file) =>
  parseAllDocuments(read(file)).map((document) => {
    expect([file, document.errors, document.warnings]).toEqual([file, [], []]);
    return document.toJS() as Manifest;
  }),
);
const all = <T>(kind: string): readonly T[] =>
  manifests.filter((manifest) => manifest.kind === kind) as readonly unknown[] as readonly T[];
const names = (kind: string): readonly string[] => all<Manifest>(kind).map(({ metadata }) => metadata.name);

/** The errors of the compiler, one line each. An unknown field is unknown to the type of its place. */
function problemsOf(documents: readonly Manifest[]): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-kubernetes-"));
  try {
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const sources = documents.map((document, i) => {
      const { apiVersion, kind } = document;
      const models = apiVersion.startsWith("gateway.")
        ? "@kubernetes-models/gateway-api"
        : "kubernetes-models";
      const type = `import("${models}/${apiVersion}/${kind}").I${kind}`;
      const source = `${i}-${kind}.ts`;
      writeFileSync(join(folder, source), `export const manifest: ${type} = ${JSON.stringify(document)};\n`);
      return source;
    });
    const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const settings = "--noEmit --strict --skipLibCheck --module nodenext --types node --pretty false".split(
      " ",
    );
    execFileSync(process.execPath, [compiler, ...settings, ...sources], { cwd: folder, stdio: "pipe" });
    return [];
  } catch (error) {
    return String((error as { readonly stdout: Buffer }).stdout)
      .split("\n")
      .filter((line) => /^\d/.test(line));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("each manifest has the fields and the values that its kind has, and no others", () => {
  expect(manifests.length).toBeGreaterThan(10);
  const text = JSON.stringify(manifests.find(({ kind }) => kind === "StatefulSet"));
  const broken = [
    ['"replicas"', '"replica"'],
    ['"Parallel"', '"Concurrent"'],
    ['"periodSeconds":5', '"periodSeconds":"5"'],
    ['"terminationGracePeriodSeconds"', '"terminationGracePeriod"'],
    ['"mountPath":"/tmp"', '"path":"/tmp"'],
    ['"kind":"StatefulSet"', '"kind":"StatefulSets"'],
  ].map(([right, wrong]) => {
    expect(text).toContain(right);
    return JSON.parse(text.replace(right!, wrong!)) as Manifest;
  });
  const lines = problemsOf([...broken, ...manifests]);
  const wrong = new Set(lines.map((line) => Number.parseInt(line, 10)));
  expect(wrong, lines.join("\n")).toEqual(new Set(broken.keys()));
});

type Workload = IDeployment | IStatefulSet;
const workloads = [...all<IDeployment>("Deployment"), ...all<IStatefulSet>("StatefulSet")];
const podOf = ({ spec }: Workload) => spec!.template.spec!;
const containerOf = (workload: Workload) => {
  const [container, ...others] = podOf(workload).containers;
  expect(others).toEqual([]);
  return container!;
};
const workload = (name: string): Workload => workloads.find(({ metadata }) => metadata!.name === name)!;
/** The value that a container gives to an option of its command. */
const said = (name: string, option: string): string | undefined =>
  containerOf(workload(name))
    .args!.find((word) => word.startsWith(`--${option}=`))
    ?.slice(option.length + 3);
const config = JSON.parse(all<IConfigMap>("ConfigMap")[0]!.data!["coordinator.json"]!) as {
  readonly port: number;
  readonly storage: string;
  readonly hosts: readonly string[];
};

test("kustomize has each file but the one that is applied alone, and a tag for each image", () => {
  expect(kustomization.resources.toSorted()).toEqual(files.filter((file) => file !== APART).toSorted());
  const images = workloads.map((each) => containerOf(each).image);
  expect(kustomization.images.map(({ name }) => name)).toEqual(images);
  for (const { newName, newTag } of kustomization.images)
    expect(read("README.md")).toContain(`-t ${newName}:${newTag} `);
});

test("each selector finds the pods of one workload", () => {
  const spread = workloads.flatMap((each) => podOf(each).topologySpreadConstraints ?? []);
  const calls = all<INetworkPolicy>("NetworkPolicy").flatMap(({ spec }) => [
    spec!.podSelector,
    ...(spec!.ingress ?? []).flatMap(({ from = [] }) => from.map((peer) => peer.podSelector)),
    ...(spec!.egress ?? []).flatMap(({ to = [] }) => to.map((peer) => peer.podSelector)),
  ]);
  const selected = [
    ...workloads.map(({ spec }) => spec!.selector.matchLabels),
    ...all<IService>("Service").map(({ spec }) => spec!.selector),
    ...all<IPodDisruptionBudget>("PodDisruptionBudget").map(({ spec }) => spec!.selector!.matchLabels),
    ...spread.map(({ labelSelector }) => labelSelector!.matchLabels),
    ...calls.flatMap((selector) => (selector === undefined ? [] : [selector.matchLabels])),
  ];
  expect(selected.length).toBeGreaterThan(10);
  const labels = workloads.map(({ spec }) => JSON.stringify(spec!.template.metadata!.labels));
  for (const matched of selected) expect(labels).toContain(JSON.stringify(matched));
  // Each workload has its own: a budget, a policy and a spread, besides its selector.
  for (const own of labels)
    expect(selected.filter((matched) => JSON.stringify(matched) === own).length).toBeGreaterThanOrEqual(4);
});

test("each name of an account, a volume, a configuration and a secret leads somewhere", () => {
  expect(names("Secret")).toEqual([]);
  const created = [...read("README.md").matchAll(/create secret generic (\w+) --from-file=(\S+)/g)];
  const secrets = new Map(created.map(([, name, file]) => [name, file!]));
  for (const each of workloads) {
    const { serviceAccountName, volumes = [] } = podOf(each);
    expect(names("ServiceAccount")).toContain(serviceAccountName);
    for (const { configMap, secret } of volumes) {
      if (configMap !== undefined) expect(names("ConfigMap")).toContain(configMap.name);
      if (secret !== undefined) expect(secrets.keys()).toContain(secret.secretName);
    }
    for (const { valueFrom } of containerOf(each).env ?? []) {
      const { name, key } = valueFrom?.secretKeyRef ?? {};
      if (name !== undefined) expect(secrets.get(name)).toMatch(new RegExp(`^${key}=`));
    }
    const claims = "volumeClaimTemplates" in each.spec! ? each.spec.volumeClaimTemplates : [];
    const given = [...volumes.map(({ name }) => name), ...claims.map(({ metadata }) => metadata!.name)];
    const mounts = containerOf(each).volumeMounts!;
    expect(new Set(mounts.map(({ name }) => name))).toEqual(new Set(given));
    expect(mounts.map(({ mountPath }) => mountPath)).toEqual(expect.arrayContaining(["/data", "/tmp"]));
  }
  for (const account of all<IServiceAccount>("ServiceAccount"))
    expect(account.automountServiceAccountToken).toBe(false);
});

test("a coordinator reads its configuration, which has no password and the names that clients use", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-kubernetes-"));
  const path = join(folder, "coordinator.json");
  writeFileSync(path, JSON.stringify(config));
  expect(readCoordinatorFile(path)).toHaveProperty("storage");
  rmSync(folder, { recursive: true, force: true });
  const { password, protocol } = new URL(config.storage);
  expect([password, protocol]).toEqual(["", "postgres:"]);
  const mounts = containerOf(workload("coordinator")).volumeMounts!;
  const mounted = mounts.find(({ name }) => name === "config")!.mountPath;
  expect(said("coordinator", "config")).toBe(`${mounted}/coordinator.json`);

  const [route] = all<IHTTPRoute>("HTTPRoute");
  const { env = [] } = containerOf(workload("runner"));
  const url = env.find(({ name }) => name === "HOLDFAST_URL")!.value!;
  expect(config.hosts.toSorted()).toEqual([...route!.spec.hostnames!, new URL(url).host].toSorted());
});

test("each port of a service, a route, a probe and a policy is the one that is listened on", () => {
  const [service] = all<IService>("Service");
  const { port, targetPort } = service!.spec!.ports![0]!;
  const { ports } = containerOf(workload("coordinator"));
  expect(ports).toEqual([{ name: targetPort, containerPort: config.port }]);
  const { env = [] } = containerOf(workload("runner"));
  expect(env.map(({ value }) => value)).toContain(`http://${service!.metadata!.name}:${port}`);
  const [backend] = all<IHTTPRoute>("HTTPRoute")[0]!.spec.rules!.flatMap(({ backendRefs }) => backendRefs!);
  expect(backend).toEqual({ name: service!.metadata!.name, port });
  const policies = all<INetworkPolicy>("NetworkPolicy");
  const inward = policies.flatMap(({ spec }) => spec!.ingress!).flatMap((rule) => rule.ports);
  const toCoordinators = policies
    .flatMap(({ spec }) => spec!.egress!)
    .filter(({ to = [] }) => to.some(({ podSelector }) => podSelector !== undefined));
  expect([inward, toCoordinators.flatMap((rule) => rule.ports)]).toEqual([
    [{ port: config.port }],
    [{ port: config.port }],
  ]);

  const of = (name: string) => {
    const { startupProbe, livenessProbe, readinessProbe } = containerOf(workload(name));
    return [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet ?? probe?.exec);
  };
  const asked = (path: string) => ({
    path,
    port: targetPort,
    httpHeaders: [{ name: "Host", value: `localhost:${config.port}` }],
  });
  expect(of("coordinator")).toEqual([asked("/livez"), asked("/livez"), asked("/healthz")]);
  const command = ["holdfast-entry", "healthy"];
  expect(of("runner")).toEqual([{ command }, { command }, undefined]);
  const health = said("runner", "health-port");
  expect(readFileSync(join(IMAGE, "entry.sh"), "utf8")).toContain(`http://127.0.0.1:${health}/livez`);
});

test("a runner has the name, the token and the agents that are there", () => {
  const { env = [], volumeMounts = [] } = containerOf(workload("runner"));
  const pod = env.find(({ valueFrom }) => valueFrom?.fieldRef?.fieldPath === "metadata.name")!.name;
  const mounted = volumeMounts.find(({ name }) => name === "tokens")!.mountPath;
  expect([said("runner", "name"), said("runner", "token-file")]).toEqual([
    `$(${pod})`,
    `${mounted}/$(${pod})`,
  ]);
  const [, file, folder] = /^COPY (\S+) (\S+)\/$/m.exec(read("Containerfile"))!;
  expect([said("runner", "agents"), said("runner", "project")]).toEqual([`${folder}/${file}`, folder]);
  expect(readdirSync(IMAGE)).toContain(file);
});

test("each pod has the image's user, no right that it does not need, and a longer time than the grace", () => {
  const [, uid, gid] = /^USER (\d+):(\d+)$/m
    .exec(readFileSync(join(IMAGE, "Containerfile"), "utf8"))!
    .map(Number);
  for (const each of workloads) {
    const pod = podOf(each);
    expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: uid,
      runAsGroup: gid,
      fsGroup: gid,
      seccompProfile: { type: "RuntimeDefault" },
    });
    const { securityContext, resources, lifecycle } = containerOf(each);
    expect(securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(resources).toMatchObject({
      requests: { cpu: expect.any(String) },
      limits: { memory: expect.any(String) },
    });
    const [, beforeS = "0"] = lifecycle?.preStop?.exec?.command ?? [];
    const graceMs = (pod.terminationGracePeriodSeconds! - Number(beforeS)) * 1_000;
    expect(graceMs).toBeGreaterThan(STOP_GRACE_MS + 2_000);
  }
});
