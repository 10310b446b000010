// Plays the services of a compose file with `podman`, where no compose that knows the file can be had. It knows the
// settings that our file uses, and refuses another one.

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly restart?: string;
  readonly stop_grace_period?: string;
  readonly security_opt?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: readonly string[];
}

interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
}

const KNOWN = new Set(
  "image command restart stop_grace_period security_opt cap_drop environment volumes ports depends_on".split(
    " ",
  ),
);

export class ComposePlayer {
  readonly #folder: string;
  readonly #project: string;
  readonly #env: NodeJS.ProcessEnv;
  /** The settings of each service that was started. */
  readonly #running = new Map<string, string>();

  /** @param env for `podman` itself. */
  constructor(folder: string, project: string, env: NodeJS.ProcessEnv) {
    this.#folder = folder;
    this.#project = project;
    this.#env = env;
  }

  /** Makes what is not there, and replaces each service whose settings differ, in the order of its file. */
  up(variables: Readonly<Record<string, string>>): void {
    const { services } = this.#read(variables);
    if (!this.#succeeds("network", "exists", this.#project)) this.podman("network", "create", this.#project);
    for (const [name, service] of Object.entries(services)) {
      const args = this.#argsOf(name, service);
      const settings = JSON.stringify(args);
      if (this.#running.get(name) === settings) continue;
      if (this.#running.has(name)) this.podman("stop", this.nameOf(name));
      if (this.#running.has(name)) this.podman("rm", this.nameOf(name));
      this.podman(...args);
      this.#running.set(name, settings);
    }
  }

  nameOf(service: string): string {
    return `${this.#project}-${service}`;
  }

  /** @returns what it wrote. @throws Error of the command that failed. */
  podman(...args: readonly string[]): string {
    return execFileSync("podman", args, {
      env: this.#env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  /** Stops what is there in order, and keeps the volumes. */
  down(): void {
    const names = [...this.#running.keys()].map((name) => this.nameOf(name)).toReversed();
    if (names.length > 0) this.podman("stop", ...names);
    if (names.length > 0) this.podman("rm", ...names);
    this.#running.clear();
    this.podman("network", "rm", this.#project);
  }

  /** Ends all at once, and removes the volumes as well. */
  remove(): void {
    const names = [...this.#running.keys()].map((name) => this.nameOf(name));
    this.#succeeds("rm", "--force", "--time", "0", "--volumes", ...names);
    const volumes = ["volume", "ls", "--quiet", "--filter", `name=^${this.#project}-`];
    this.#succeeds(
      "volume",
      "rm",
      ...this.podman(...volumes)
        .split("\n")
        .filter(Boolean),
    );
    this.#succeeds("network", "rm", this.#project);
  }

  #succeeds(...args: readonly string[]): boolean {
    return spawnSync("podman", args, { env: this.#env }).status === 0;
  }

  #read(variables: Readonly<Record<string, string>>): ComposeFile {
    const text = readFileSync(join(this.#folder, "compose.yaml"), "utf8").replaceAll(
      /\$\{(\w+)(?::-([^}]*))?\}/g,
      (_, name: string, otherwise?: string) => variables[name] ?? otherwise ?? "",
    );
    return parse(text, { merge: true }) as ComposeFile;
  }

  #argsOf(name: string, service: Service): readonly string[] {
    const unknown = Object.keys(service).filter((key) => !KNOWN.has(key));
    if (unknown.length > 0) throw new Error(`service ${name}: ${unknown.join(", ")} cannot be played`);
    const each = (option: string, values: readonly string[] = []) =>
      values.flatMap((value) => [option, value]);
    const { restart, stop_grace_period: grace } = service;
    return [
      "run",
      "--detach",
      ...each("--name", [this.nameOf(name)]),
      ...each("--network", [this.#project]),
      ...each("--network-alias", [name]),
      ...each("--restart", restart === undefined ? [] : [restart]),
      ...each("--stop-timeout", grace === undefined ? [] : [String(Number.parseInt(grace, 10))]),
      ...each("--security-opt", service.security_opt),
      ...each("--cap-drop", service.cap_drop),
      ...each(
        "--env",
        Object.entries(service.environment ?? {}).map((pair) => pair.join("=")),
      ),
      ...each(
        "--volume",
        service.volumes?.map((volume) => this.#volumeOf(volume)),
      ),
      ...each("--publish", service.ports),
      service.image,
      ...(service.command ?? []),
    ];
  }

  #volumeOf(text: string): string {
    return text.startsWith("./") ? join(this.#folder, text) : `${this.#project}-${text}`;
  }
}
