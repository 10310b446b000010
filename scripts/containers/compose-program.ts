// `ComposeProgram`: the services of a compose file, by a program of others. It is `podman-compose`, or
// `docker-compose`, which asks Podman by a socket.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";

export class ComposeProgram {
  readonly #program: string;
  readonly #folder: string;
  readonly #project: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #socket: ChildProcess;
  #variables: Readonly<Record<string, string>> = {};

  /** @param env for `podman` itself. */
  constructor(program: string, folder: string, project: string, env: NodeJS.ProcessEnv) {
    const address = `unix://${join(folder, "podman.sock")}`;
    this.#socket = spawn("podman", ["system", "service", "--time", "0", address], { env, stdio: "ignore" });
    this.#program = program;
    this.#folder = folder;
    this.#project = project;
    this.#env = { ...env, DOCKER_HOST: address };
  }

  up(variables: Readonly<Record<string, string>>): void {
    this.#variables = variables;
    this.#compose("up", "--detach");
  }

  nameOf(service: string): string {
    const labels = { project: this.#project, service };
    const filters = Object.entries(labels).flatMap(([name, value]) => [
      "--filter",
      `label=com.docker.compose.${name}=${value}`,
    ]);
    return this.podman("ps", "--all", "--quiet", ...filters).trim();
  }

  /** @returns what it wrote. @throws Error of the command that failed. */
  podman(...args: readonly string[]): string {
    return execFileSync("podman", args, {
      env: this.#env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  down(): void {
    this.#compose("down");
  }

  remove(): void {
    this.#compose("down", "--volumes");
    this.#socket.kill();
  }

  #compose(...args: readonly string[]): void {
    const env = { ...this.#env, ...this.#variables };
    execFileSync(this.#program, ["--project-name", this.#project, ...args], {
      cwd: this.#folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
  }
}
