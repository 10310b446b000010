// `Machine`: a container whose first process is systemd, with a user whose services start with the machine.

import { execFileSync } from "node:child_process";

/** How long a machine has to stop in order, in seconds. */
const STOP_S = 90;

export interface Person {
  readonly name: string;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A unit of systemd as `systemctl show` describes it. */
export interface UnitState {
  /** `inactive`, and not `activating`, for a unit that does not start again. */
  readonly ActiveState: string;
  readonly Result: string;
  readonly NRestarts: string;
}

export class Machine {
  readonly #env: NodeJS.ProcessEnv;
  readonly #id: string;

  /** @param env for `podman` itself. */
  constructor(image: string, env: NodeJS.ProcessEnv) {
    this.#env = env;
    const how = ["--systemd", "always", "--privileged", "--network", "none"];
    this.#id = this.#podman("run", "--detach", ...how, image).trim();
  }

  /** @returns what it wrote. @throws Error of the command that failed. */
  run(person: Person, ...command: readonly string[]): string {
    return this.#podman("exec", ...this.#asPerson(person), this.#id, ...command);
  }

  /** Begins a command that ends with the machine at the latest. */
  begin(person: Person, ...command: readonly string[]): void {
    this.#podman("exec", "--detach", ...this.#asPerson(person), this.#id, ...command);
  }

  /** A file of this person, which nobody else reads. */
  write(person: Person, path: string, text: string): void {
    const args = ["exec", "--interactive", ...this.#asPerson(person), this.#id];
    execFileSync("podman", [...args, "sh", "-c", 'umask 077; cat > "$0"', path], {
      env: this.#env,
      input: text,
      stdio: "pipe",
    });
  }

  unit(person: Person, name: string): UnitState {
    const whose = person.name === "root" ? [] : ["--user"];
    const properties = "--property=ActiveState,Result,NRestarts";
    const lines = this.run(person, "systemctl", ...whose, "show", name, properties)
      .trim()
      .split("\n");
    return Object.fromEntries(lines.map((line) => line.split("="))) as UnitState;
  }

  /** Stops it in order, and starts it. */
  reboot(): void {
    this.#podman("restart", "--time", String(STOP_S), this.#id);
  }

  /** Ends it in the middle of everything, and starts it. */
  cutPower(): void {
    this.#podman("kill", this.#id);
    this.#podman("wait", this.#id);
    this.#podman("start", this.#id);
  }

  remove(): void {
    this.#podman("rm", "--force", "--time", "0", this.#id);
  }

  #asPerson({ name, folder, env }: Person): readonly string[] {
    const variables = Object.entries(env).flatMap((pair) => ["--env", pair.join("=")]);
    return ["--user", name, "--workdir", folder, ...variables];
  }

  #podman(...args: readonly string[]): string {
    return execFileSync("podman", args, {
      env: this.#env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  }
}
