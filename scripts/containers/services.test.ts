// The campaign `services`: the local stack and a fleet as services of systemd, which is the first process of a
// container. The machine restarts and loses its power, services are killed, stopped and drained, and each effect
// of a session happens once.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import * as images from "./local-images.ts";
import { Machine, type Person } from "./machine.ts";
import { RELEASE_AGENT, until } from "./release-agent.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SERVICES_IMAGE = "holdfast-test-services";
/** An image that is there may be named, instead of one that is built of this checkout. */
const IMAGE = process.env["HOLDFAST_TEST_SERVICES_IMAGE"] ?? SERVICES_IMAGE;
const TIMEOUT_MS = 60 * 60_000;
const options = { ...ofCampaign, timeout: TIMEOUT_MS };
/** A step that outlasts the way to what disturbs it, and not the grace. */
const SLOW_MS = 15_000;
const URL_INSIDE = "http://127.0.0.1:8765";

/** The command is where the units of docs/deploy.md have it. `ada` needs no login. */
const SERVICES = `FROM ${images.SYSTEMD_IMAGE}
WORKDIR /opt/holdfast
COPY packages ./packages
RUN npm install --omit=dev --no-audit --no-fund --cache /tmp/npm ./packages/*.tgz && rm -rf packages /tmp/npm && \\
  ln -s /opt/holdfast/node_modules/.bin/holdfast /usr/local/bin/holdfast
RUN useradd --uid 10003 --create-home ada && install -D /dev/null /var/lib/systemd/linger/ada
CMD ["/sbin/init"]
`;

const ROOT_USER: Person = { name: "root", folder: "/", env: {} };
const ADA: Person = {
  name: "ada",
  folder: "/home/ada",
  env: { HOME: "/home/ada", XDG_RUNTIME_DIR: "/run/user/10003" },
};
/** The user of the coordinator, as the page says it. */
const OPERATOR: Person = {
  name: "holdfast",
  folder: "/",
  env: { XDG_DATA_HOME: "/var/lib", HOLDFAST_URL: URL_INSIDE },
};

let folder: string;
let env: NodeJS.ProcessEnv;
/** Why nothing runs here; `undefined` where it does. */
let missing: string | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-services-"));
  try {
    images.baseImage(folder);
    env = images.withSettings(images.podmanSettings(folder));
    images.systemdImage(folder);
    checkMachine();
  } catch (error) {
    missing = `podman runs no privileged container with systemd here: ${String(error)}`;
    return;
  }
  if (IMAGE !== SERVICES_IMAGE) return;
  const packages = join(ROOT, "dist", "packages");
  execFileSync(process.execPath, [join(ROOT, "scripts", "pack.ts")], { stdio: "pipe" });
  mkdirSync(join(folder, "services"));
  cpSync(packages, join(folder, "services", "packages"), { recursive: true });
  images.build(IMAGE, join(folder, "services"), SERVICES);
}, TIMEOUT_MS);
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
}, TIMEOUT_MS);

/** @throws Error where systemd does not start. */
function checkMachine(): void {
  const machine = new Machine(images.SYSTEMD_IMAGE, env);
  try {
    const wait = "until systemctl is-active --quiet basic.target; do sleep 1; done";
    machine.run(ROOT_USER, "timeout", "120", "sh", "-c", wait);
  } finally {
    machine.remove();
  }
}

/** A machine that has started, with the agent in the home of `ada`. */
async function started(): Promise<Machine> {
  const machine = new Machine(IMAGE, env);
  onTestFinished(() => machine.remove());
  await isUp(machine);
  machine.write(ADA, "agents.ts", RELEASE_AGENT);
  return machine;
}

async function isUp(machine: Machine): Promise<void> {
  await until("the user's services can be asked", () =>
    machine.run(ADA, "systemctl", "--user", "is-active", "default.target"),
  );
}

/** Sessions that this person starts and answers, with the homes of those that run them. */
class Sessions {
  readonly #machine: Machine;
  readonly #person: Person;
  readonly #homes: readonly string[];
  readonly #ids: string[] = [];

  constructor(machine: Machine, person: Person, homes: readonly string[]) {
    this.#machine = machine;
    this.#person = person;
    this.#homes = homes;
  }

  /** A session, until its slow step runs. */
  async begin(id: string): Promise<void> {
    const input = JSON.stringify({ asks: true, slowMs: SLOW_MS });
    const words = ["holdfast", "run", "--agent", "release", "--input", input, "--session", id];
    this.#machine.begin(this.#person, ...words);
    this.#ids.push(id);
    await until(`session ${id} is at work`, () => expect(this.#linesOf("begun")).toContain(id));
  }

  /** How often the slow step of this session was tried. */
  attempts(id: string): number | undefined {
    const shown = this.#machine.run(this.#person, "holdfast", "show", id, "--json");
    const { tasks } = JSON.parse(shown) as {
      readonly tasks: readonly { readonly kind: string; readonly attempts: number }[];
    };
    return tasks.find(({ kind }) => kind === "slow")?.attempts;
  }

  /** Answers each, and compares what they have done. */
  async finish(): Promise<void> {
    for (const id of this.#ids)
      await until(`session ${id} has ended`, () => {
        const shown = this.#machine.run(this.#person, "holdfast", "show", id, "--json");
        const { status } = JSON.parse(shown) as { readonly status: string };
        if (status === "input_required") this.#machine.run(this.#person, "holdfast", "approve", id);
        expect([id, status]).toEqual([id, "completed"]);
      });
    const expected = this.#ids.flatMap((id) => [`${id} after`, `${id} before`]);
    expect(this.#linesOf("effects").toSorted()).toEqual(expected.toSorted());
  }

  #linesOf(file: string): readonly string[] {
    const paths = this.#homes.map((home) => `${home}/${file}`).join(" ");
    return this.#machine
      .run(ROOT_USER, "sh", "-c", `cat ${paths} 2>/dev/null || true`)
      .split("\n")
      .filter(Boolean);
  }
}

/** systemd starts this unit again after the death of its first process. */
async function killed(machine: Machine, person: Person, unit: string): Promise<void> {
  const whose = person.name === "root" ? [] : ["--user"];
  const before = Number(machine.unit(person, unit).NRestarts);
  machine.run(person, "systemctl", ...whose, "kill", "--signal=KILL", "--kill-whom=main", unit);
  await until(`${unit} was started again`, () => {
    const { ActiveState, NRestarts } = machine.unit(person, unit);
    expect([ActiveState, Number(NRestarts)]).toEqual(["active", before + 1]);
  });
}

const ENDED_WELL = { ActiveState: "inactive", Result: "success" };

test(
  "the local stack as a service goes on after whatever happens to it and its machine",
  options,
  async ({ skip }) => {
    skip(missing !== undefined, missing);
    const unit = "holdfast-local.service";
    const machine = await started();
    const sessions = new Sessions(machine, ADA, [ADA.folder]);
    const isRunning = () =>
      until("the stack is ready", () =>
        expect(machine.run(ADA, "holdfast", "local", "status", "--json")).toContain('"status":"running"'),
      );
    machine.run(ADA, "holdfast", "local", "enable", "--agents", "agents.ts");
    await isRunning();

    await sessions.begin("rebooted");
    machine.reboot();
    await isUp(machine);
    await isRunning();
    await sessions.begin("killed");
    await killed(machine, ADA, unit);
    await isRunning();
    await sessions.begin("cut");
    machine.cutPower();
    await isUp(machine);
    await isRunning();

    await sessions.begin("drained");
    machine.run(ADA, "systemctl", "--user", "stop", unit);
    expect(machine.unit(ADA, unit)).toMatchObject(ENDED_WELL);
    machine.run(ADA, "systemctl", "--user", "start", unit);
    await isRunning();
    expect(sessions.attempts("drained")).toBe(1);
    await sessions.begin("stopped");
    machine.run(ADA, "holdfast", "local", "stop");
    await until("systemd has seen the end", () => expect(machine.unit(ADA, unit)).toMatchObject(ENDED_WELL));
    machine.run(ADA, "systemctl", "--user", "start", unit);
    await isRunning();
    expect(sessions.attempts("stopped")).toBe(1);
    await sessions.finish();

    machine.run(ADA, "holdfast", "local", "disable");
    const left = ["list-units", "--all", "--no-legend", "holdfast*"];
    expect(machine.run(ADA, "systemctl", "--user", ...left)).toBe("");
  },
);

test(
  "a runner as a service, and the units of the page, go on after whatever happens to them",
  options,
  async ({ skip }) => {
    skip(missing !== undefined, missing);
    const unit = "holdfast-runner-box-1.service";
    const machine = await started();
    for (const line of USERS) machine.run(ROOT_USER, ...line.split(" "));
    machine.run(ROOT_USER, "install", "-d", "-o", "holdfast-runner", "/etc/holdfast", "/srv/project");
    machine.write(
      ROOT_USER,
      "/etc/holdfast/coordinator.json",
      JSON.stringify({ storage: "sqlite:/var/lib/holdfast/coordinator.db" }),
    );
    machine.write(ROOT_USER, "/srv/project/agents.ts", RELEASE_AGENT);
    machine.run(ROOT_USER, "chmod", "-R", "a+rX", "/etc/holdfast", "/srv/project");
    for (const [name, text] of UNITS) machine.write(ROOT_USER, `/etc/systemd/system/${name}`, text);
    machine.run(ROOT_USER, "systemctl", "enable", "--now", "holdfast-coordinator");
    const create = (name: string) =>
      machine.run(OPERATOR, "holdfast", "token", "create", name, "--kind", "registration");
    const runners = () => machine.run(OPERATOR, "holdfast", "runners", "list", "--json");
    const isOnline = (name: string) =>
      until(`runner ${name} is there`, () => expect(runners()).toMatch(new RegExp(`"${name}"`)));
    await until("the coordinator answers", runners);

    const sessions = new Sessions(machine, OPERATOR, [ADA.folder, "/var/lib/holdfast-runner"]);
    machine.write(ADA, "box-1.token", create("box-1"));
    const served = ["-c", URL_INSIDE, "--name", "box-1", "--agents", "agents.ts"];
    machine.run(ADA, "holdfast", "runner", "enable", ...served, "--token-file", "box-1.token");
    await isOnline("box-1");

    await sessions.begin("rebooted");
    machine.reboot();
    await isUp(machine);
    await sessions.begin("killed");
    await killed(machine, ADA, unit);
    await killed(machine, ROOT_USER, "holdfast-coordinator.service");
    await sessions.begin("cut");
    machine.cutPower();
    await isUp(machine);

    await sessions.begin("stopped");
    machine.run(ADA, "systemctl", "--user", "stop", unit);
    expect(machine.unit(ADA, unit)).toMatchObject(ENDED_WELL);
    expect(sessions.attempts("stopped")).toBe(1);
    machine.run(ADA, "systemctl", "--user", "start", unit);
    await sessions.begin("drained");
    machine.run(OPERATOR, "holdfast", "runners", "drain", "box-1");
    await until("the drained runner has left", () =>
      expect(machine.unit(ADA, unit)).toMatchObject(ENDED_WELL),
    );
    expect(sessions.attempts("drained")).toBe(1);
    machine.run(ADA, "holdfast", "runner", "disable", "--name", "box-1");
    const left = ["list-units", "--all", "--no-legend", "holdfast*"];
    expect(machine.run(ADA, "systemctl", "--user", ...left)).toBe("");

    machine.write(ROOT_USER, "/etc/holdfast/runner.env", `HOLDFAST_TOKEN=${create("box-2")}`);
    machine.run(ROOT_USER, "systemctl", "enable", "--now", "holdfast-runner@box-2");
    await isOnline("box-2");
    await sessions.begin("of-the-page");
    machine.run(ROOT_USER, "systemctl", "restart", "holdfast-runner@box-2");
    await sessions.finish();
    expect(sessions.attempts("of-the-page")).toBe(1);
    expect(machine.run(ROOT_USER, "systemctl", "list-units", "--failed", "--no-legend")).toBe("");
  },
);

/** The units of docs/deploy.md with their names, and the commands that make their users. */
const PAGE = readFileSync(join(ROOT, "docs", "deploy.md"), "utf8");
const USERS = PAGE.match(/^useradd --system .*$/gm) ?? [];
const UNITS = [
  ...PAGE.matchAll(/^`\/etc\/systemd\/system\/([^`]+)`(?:(?!^```).)*^```ini\n(.*?)^```$/gms),
].map(([, name, text]) => [name!, text!.replaceAll("https://fleet.example", URL_INSIDE)] as const);
