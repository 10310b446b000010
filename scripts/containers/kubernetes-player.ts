// `KubernetesPlayer` plays the pods of manifests with `podman kube play`, which knows no StatefulSet. Its volumes, probes and
// stops differ from those of a cluster, so they are made here as the kubelet makes them.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import type { IDeployment } from "kubernetes-models/apps/v1/Deployment";
import type { IStatefulSet } from "kubernetes-models/apps/v1/StatefulSet";
import type { IConfigMap } from "kubernetes-models/v1/ConfigMap";
import { parseAllDocuments, stringify } from "yaml";

type Workload = IDeployment | IStatefulSet;
type Texts = Readonly<Record<string, string>>;

/** The things that a manifest names and does not contain. */
export interface Surroundings {
  /** The image of each name. */
  readonly images: Texts;
  /** The files of each secret. */
  readonly secrets: Readonly<Record<string, Texts>>;
  /** The addresses of each name. */
  readonly hosts: Readonly<Record<string, readonly string[]>>;
  /** Files of configurations, instead of those of the manifest. */
  readonly files?: Texts;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export class KubernetesPlayer {
  readonly #folder: string;
  readonly #project: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #workloads: readonly Workload[];
  readonly #configMaps: readonly IConfigMap[];
  readonly #pods = new Map<string, Workload>();
  readonly #others: string[] = [];

  /**
   * @param folder for volumes.
   * @param env for `podman` itself.
   */
  constructor(example: string, folder: string, project: string, env: NodeJS.ProcessEnv) {
    this.#folder = folder;
    this.#project = project;
    this.#env = env;
    const files = readdirSync(example).filter((name) => name.endsWith(".yaml"));
    const manifests = files.flatMap((file) =>
      parseAllDocuments(readFileSync(join(example, file), "utf8")).map(
        (document) => document.toJS() as { readonly kind: string },
      ),
    );
    const of = <T>(...kinds: readonly string[]): readonly T[] =>
      manifests.filter(({ kind }) => kinds.includes(kind)) as readonly unknown[] as readonly T[];
    this.#workloads = of<Workload>("Deployment", "StatefulSet");
    this.#configMaps = of<IConfigMap>("ConfigMap");
    this.podman("network", "create", project);
  }

  /** Starts a container beside the pods. @returns its address. */
  run(name: string, ...args: readonly string[]): string {
    this.podman("run", "--detach", "--name", this.#nameOf(name), "--network", this.#project, ...args);
    this.#others.push(name);
    return this.#addressOf(this.#nameOf(name));
  }

  /** Starts a pod of a workload. It takes the claim again that a pod of its name had. */
  play(name: string, pod: string, around: Surroundings): void {
    const workload = this.#workloads.find(({ metadata }) => metadata!.name === name)!;
    this.#pods.set(pod, workload);
    const { volumes = [], securityContext, terminationGracePeriodSeconds } = specOf(workload);
    const group = securityContext!.fsGroup!;
    const at = join(this.#folder, "pods", pod);
    rmSync(at, { recursive: true, force: true });
    const mounted = volumes.map(({ name: volume, configMap, secret }) => {
      const given =
        configMap === undefined ? undefined : { ...this.configMap(configMap.name!), ...around.files };
      const files = secret === undefined ? given : around.secrets[secret.secretName!];
      return { name: volume, path: folderOf(join(at, volume), group, 0o2777, files) };
    });
    const claimed = claimsOf(workload).map((claim) => {
      return { name: claim, path: folderOf(this.claim(pod, claim), group, 0o2775) };
    });
    const {
      name: container,
      image,
      args,
      env = [],
      resources,
      securityContext: rights,
      volumeMounts,
    } = containerOf(workload);
    const variables = env.map(({ name: variable, value = "", valueFrom }) => {
      const { secretKeyRef, fieldRef } = valueFrom ?? {};
      if (secretKeyRef !== undefined)
        return { name: variable, value: around.secrets[secretKeyRef.name!]![secretKeyRef.key]! };
      return { name: variable, value: fieldRef?.fieldPath === "metadata.name" ? pod : value };
    });
    // Kubernetes puts variables into arguments, and this podman does not.
    const words = args!.map((word) =>
      word.replaceAll(
        /\$\((\w+)\)/g,
        (text, wanted) => variables.find((one) => one.name === wanted)?.value ?? text,
      ),
    );
    const manifest = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: pod },
      spec: {
        hostAliases: Object.entries(around.hosts).flatMap(([host, ips]) =>
          ips.map((ip) => ({ ip, hostnames: [host] })),
        ),
        securityContext,
        terminationGracePeriodSeconds,
        containers: [
          {
            name: container,
            image: around.images[image!],
            imagePullPolicy: "Never",
            args: words,
            env: variables,
            resources,
            securityContext: { ...securityContext, ...rights },
            volumeMounts,
          },
        ],
        volumes: [...mounted, ...claimed].map(({ name: volume, path }) => ({
          name: volume,
          hostPath: { path, type: "Directory" },
        })),
      },
    };
    writeFileSync(join(at, "pod.yaml"), stringify(manifest));
    this.podman("kube", "play", "--network", this.#project, join(at, "pod.yaml"));
  }

  addressOf(pod: string): string {
    return this.#addressOf(this.podman("pod", "inspect", "--format", "{{.InfraContainerID}}", pod).trim());
  }

  /** The folder of a claim. */
  claim(pod: string, claim: string): string {
    return join(this.#folder, "claims", `${claim}-${pod}`);
  }

  /** A command in the container of a pod. */
  exec(pod: string, ...words: readonly string[]): string {
    return this.podman("exec", this.#containerOf(pod), ...words);
  }

  /** Asks as a probe of the manifest does. @throws Error when the answer is bad. */
  async probe(pod: string, kind: "startupProbe" | "livenessProbe" | "readinessProbe"): Promise<void> {
    const { httpGet, exec } = containerOf(this.#pods.get(pod)!)[kind] ?? {};
    if (exec !== undefined) this.exec(pod, ...exec.command!);
    if (httpGet === undefined) return;
    const headers = Object.fromEntries((httpGet.httpHeaders ?? []).map(({ name, value }) => [name, value]));
    const { status } = await this.ask(pod, httpGet.path!, headers);
    if (status !== 200) throw new Error(`${httpGet.path} of ${pod} answers ${status}`);
  }

  /** Asks a pod by its address, as the kubelet and a gateway do. */
  async ask(pod: string, path: string, headers: Texts, body?: string): Promise<Answer> {
    const { containerPort: port } = containerOf(this.#pods.get(pod)!).ports![0]!;
    const method = body === undefined ? "GET" : "POST";
    return new Promise((resolve, reject) => {
      const asked = request({ host: this.addressOf(pod), port, path, method, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode!, text }));
      });
      asked.on("error", reject).end(body);
    });
  }

  /** Ends a pod as Kubernetes does, and waits for it. @returns its exit code. */
  stop(pod: string): number {
    const { terminationGracePeriodSeconds: seconds } = specOf(this.#pods.get(pod)!);
    // A pod keeps its network until its container has ended, other than in `podman pod stop`.
    this.podman("stop", "--time", String(seconds), this.#containerOf(pod));
    const code = this.podman("inspect", "--format", "{{.State.ExitCode}}", this.#containerOf(pod));
    this.podman("pod", "rm", "--force", "--time", "0", pod);
    this.#pods.delete(pod);
    return Number(code);
  }

  configMap(name: string): Texts {
    return this.#configMaps.find(({ metadata }) => metadata!.name === name)!.data!;
  }

  remove(): void {
    for (const pod of this.#pods.keys()) this.podman("pod", "rm", "--force", "--time", "0", pod);
    for (const name of this.#others)
      this.podman("rm", "--force", "--time", "0", "--volumes", this.#nameOf(name));
    this.podman("network", "rm", this.#project);
  }

  /** @returns what it wrote. @throws Error of the command that failed. */
  podman(...args: readonly string[]): string {
    return execFileSync("podman", args, {
      env: this.#env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  #nameOf(name: string): string {
    return `${this.#project}-${name}`;
  }

  #containerOf(pod: string): string {
    return `${pod}-${containerOf(this.#pods.get(pod)!).name}`;
  }

  #addressOf(container: string): string {
    const format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    return this.podman("inspect", "--format", format, container).trim();
  }
}

const specOf = ({ spec }: Workload) => spec!.template.spec!;
const containerOf = (workload: Workload) => specOf(workload).containers[0]!;

function claimsOf({ spec }: Workload): readonly string[] {
  const claims = "volumeClaimTemplates" in spec! ? spec.volumeClaimTemplates : [];
  return claims.map(({ metadata }) => metadata!.name!);
}

/** A folder as the kubelet makes it for a group. Its files are links, which a change replaces all at once. */
function folderOf(path: string, group: number, mode: number, files?: Texts): string {
  const data = join(path, "..2026_01_01");
  mkdirSync(files === undefined ? path : data, { recursive: true });
  chownSync(path, 0, group);
  chmodSync(path, mode);
  if (files === undefined) return path;
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(data, name), text);
    chownSync(join(data, name), 0, group);
    symlinkSync(join("..data", name), join(path, name));
  }
  symlinkSync("..2026_01_01", join(path, "..data"));
  return path;
}
