// `holdfast local enable` and `disable`, over a systemctl of the test.

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

const CANARY = "sk-ant-canary-5d0e7c1b9a3f8e21";

let project: Project;
let env: Record<string, string>;
beforeEach(() => {
  project = new Project();
  writeFileSync(project.path("agents.ts"), "export default [];\n");
  mkdirSync(project.path("bin"));
  env = {
    PATH: `${project.path("bin")}:${process.env["PATH"]}`,
    XDG_CONFIG_HOME: project.path("config 100%"),
    ANTHROPIC_API_KEY: CANARY,
  };
  systemctl("exit 0");
});
afterEach(() => project.dispose());

function systemctl(code: string): void {
  const program = project.path("bin/systemctl");
  writeFileSync(program, `#!/bin/sh\necho "$@" >> ${project.path("calls")}\n${code}\n`);
  chmodSync(program, 0o755);
}

const unit = (): string => project.path("config 100%/systemd/user/holdfast-local.service");
const calls = (): readonly string[] => readFileSync(project.path("calls"), "utf8").trim().split("\n");

// Its units are systemd's.
test.skipIf(process.platform !== "linux")(
  "a service has the options of the start and no key, which is named before",
  async () => {
    const { code, stderr } = await project.finish(
      ["local", "enable", "--agents", "agents.ts", "--grace", "5s"],
      { env },
    );
    expect(code, stderr).toBe(0);
    const named = stderr.indexOf("ANTHROPIC_API_KEY is only a variable of this terminal");
    expect(named).toBeGreaterThanOrEqual(0);
    expect(stderr.indexOf("runs as a service")).toBeGreaterThan(named);
    const text = readFileSync(unit(), "utf8");
    expect(text).toMatch(
      /^ExecStart=.*"local" "start" "--foreground" "--agents" "agents\.ts" "--grace" "5s"$/m,
    );
    expect(text).toMatch(/^TimeoutStopSec=20$/m);
    expect(text).toContain(`"XDG_CONFIG_HOME=${project.path("config 100%%")}"`);
    expect(text + stderr).not.toContain(CANARY);
    expect(calls().map((line) => line.split(" ")[1])).toEqual(["daemon-reload", "enable", "restart"]);
    const verified = spawnSync("systemd-analyze", ["--user", "verify", unit()], { encoding: "utf8" });
    if (verified.error === undefined) expect(verified.stderr).not.toContain("holdfast-local.service:");

    expect((await project.finish(["local", "disable"], { env })).code).toBe(0);
    expect(existsSync(unit())).toBe(false);
    expect(calls().at(-1)).toBe("--user disable --now holdfast-local.service");
    expect((await project.finish(["local", "disable"], { env })).stderr).toContain(
      "the local stack is no service",
    );
  },
);

// Its units are systemd's.
test.skipIf(process.platform !== "linux")(
  "a service that the system does not take leaves no file",
  async () => {
    systemctl('echo "Failed to connect to bus" >&2; exit 1');
    const refused = await project.finish(["local", "enable", "--agents", "agents.ts"], { env });
    expectError(refused, 7, "E_UNAVAILABLE", ["systemctl --user daemon-reload", "Failed to connect to bus"]);
    expect(existsSync(unit())).toBe(false);
    const missing = await project.finish(["local", "enable", "--agents", "none.ts"], { env });
    expect(missing.code).not.toBe(0);
    expect(calls()).toHaveLength(1);
  },
);
