// `enable` and `disable` of `holdfast local` and `holdfast runner`, over a systemctl and a launchctl of the
// test. These start what the file of a service says (`user-services.ts`).

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { Project, type Finished } from "../testing/holdfast-process.ts";

const CANARY = "sk-ant-canary-5d0e7c1b9a3f8e21";

let project: Project;
let env: Record<string, string>;
beforeEach(() => {
  project = new Project();
  writeFileSync(project.path("agents.ts"), "export default async function hello() {\n  return 1;\n}\n");
  mkdirSync(project.path("bin"));
  env = {
    PATH: `${project.path("bin")}:${process.env["PATH"]}`,
    XDG_CONFIG_HOME: project.path("config 100%"),
    ANTHROPIC_API_KEY: CANARY,
  };
  managed("systemctl");
});
afterEach(async () => {
  const isService = ["holdfast-local.service", "dev.holdfast.local"].some((name) =>
    existsSync(project.path(`${name}.pid`)),
  );
  if (isService) await project.finish(["local", "stop"], { env });
  await project.dispose();
});

const SERVICES = fileURLToPath(new URL("../testing/user-services.ts", import.meta.url));

/** A program that manages services for real. */
function managed(program: "systemctl" | "launchctl"): void {
  const command = `"${process.execPath}" --no-warnings "${SERVICES}" "${project.folder}" ${program} "$@"`;
  writeFileSync(project.path(`bin/${program}`), `#!/bin/sh\nexec ${command}\n`, { mode: 0o755 });
}

/** A systemctl that does no more than these lines of a shell. */
function systemctl(lines: string): void {
  const call = `echo systemctl "$@" >> ${project.path("calls")}`;
  writeFileSync(project.path("bin/systemctl"), `#!/bin/sh\n${call}\n${lines}\n`, { mode: 0o755 });
}

const LOCAL = ["local", "enable", "--agents", "agents.ts", "--port", "0"];

const unit = (): string => project.path("config 100%/systemd/user/holdfast-local.service");
const calls = (): readonly string[] => readFileSync(project.path("calls"), "utf8").trim().split("\n");

// Its units are systemd's.
test.skipIf(process.platform !== "linux")(
  "a service has the options of the start and no key, which is named before",
  async () => {
    const { code, stderr } = await project.finish([...LOCAL, "--grace", "5s"], { env });
    expect(code, stderr).toBe(0);
    // As after `local start`, the next command finds a stack that works.
    expect(stderr).toMatch(/url +http:\/\/127\.0\.0\.1:\d+/);
    expect((await project.finish(["local", "status"], { env })).code).toBe(0);
    const named = stderr.indexOf("ANTHROPIC_API_KEY is only a variable of this terminal");
    expect(named).toBeGreaterThanOrEqual(0);
    expect(stderr.indexOf("runs as a service")).toBeGreaterThan(named);
    const text = readFileSync(unit(), "utf8");
    expect(text).toMatch(
      /^ExecStart=.*"local" "start" "--foreground" "--agents" "agents\.ts" "--port" "0" "--grace" "5s"$/m,
    );
    expect(text).toMatch(/^TimeoutStopSec=20$/m);
    expect(text).toContain(`"XDG_CONFIG_HOME=${project.path("config 100%%")}"`);
    expect(text + stderr).not.toContain(CANARY);
    expect(
      calls()
        .slice(0, 3)
        .map((line) => line.split(" ")[2]),
    ).toEqual(["daemon-reload", "enable", "restart"]);
    const verified = spawnSync("systemd-analyze", ["--user", "verify", unit()], { encoding: "utf8" });
    if (verified.error === undefined) expect(verified.stderr).not.toContain("holdfast-local.service:");

    expect((await project.finish(["local", "disable"], { env })).code).toBe(0);
    expect(existsSync(unit())).toBe(false);
    // The unit of a service that has failed stays listed, with its file or without.
    expect(calls().slice(-3)).toEqual([
      "systemctl --user disable --now holdfast-local.service",
      "systemctl --user daemon-reload",
      "systemctl --user reset-failed holdfast-local.service",
    ]);
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
    const refused = await project.finish(LOCAL, { env });
    expectError(refused, 7, "E_UNAVAILABLE", ["systemctl --user daemon-reload", "Failed to connect to bus"]);
    expect(existsSync(unit())).toBe(false);
    const missing = await project.finish(["local", "enable", "--agents", "none.ts"], { env });
    expect(missing.code).not.toBe(0);
    expect(calls()).toHaveLength(1);
    // A second one that is refused leaves the first one.
    managed("systemctl");
    const enable = (grace: string) => project.finish([...LOCAL, "--grace", grace], { env });
    expect((await enable("5s")).code).toBe(0);
    systemctl('echo "Failed to connect to bus" >&2; exit 1');
    expect((await enable("9s")).code).toBe(7);
    expect(readFileSync(unit(), "utf8")).toContain('"--grace" "5s"');
  },
);

// Its units are systemd's.
test.skipIf(process.platform !== "linux")(
  "a service that ends at once is no success, and the error names its log",
  async () => {
    const failed = "ActiveState=activating\\nResult=exit-code\\nExecMainStatus=3";
    systemctl(`[ "$2" = show ] && printf '${failed}\\n'; exit 0`);
    const ended = await project.finish(LOCAL, { env });
    expectError(ended, 7, "E_UNAVAILABLE", [
      "the local stack was started as a service, and ended at once",
      "ExecMainStatus=3",
      "journalctl --user -u holdfast-local.service",
    ]);
    expect(ended.stderr).not.toContain("runs as a service");
    expect(existsSync(unit())).toBe(true);
  },
);

// Its units are systemd's.
test.skipIf(process.platform !== "linux")(
  "a folder whose name is more than a line writes nothing into a unit",
  async () => {
    const folder = "x\nExecStartPre=touch planted";
    project.write(`${folder}/agents.ts`, "export default async function hello() {}\n");
    const refused = await project.finish(LOCAL, { env, folder });
    expectError(refused, 2, "E_USAGE", ["the file of a service cannot hold this text", "ExecStartPre"]);
    expect(existsSync(unit())).toBe(false);
  },
);

const TOKEN = "hf_reg_0123456789abcdef0123456789abcdef0123456789a";

// Its units are systemd's.
test.skipIf(process.platform !== "linux")(
  "a runner is a service of its own name, with its token in a file and not in the unit",
  async () => {
    const runnerUnit = project.path("config 100%/systemd/user/holdfast-runner-box-1.service");
    const tokenFile = project.path("box-1.token");
    writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
    const words = [
      "runner",
      "enable",
      "-c",
      "https://fleet.example",
      "-c",
      "https://other.example",
      "--name",
      "box-1",
      "--agents",
      "agents.ts",
    ];
    const enabled = await project.finish(
      [...words, "--label", "gpu=yes", "--verbose", "--grace", "5s", "--token-file", "box-1.token"],
      { env },
    );
    expect(enabled.code, enabled.stderr).toBe(0);
    const text = readFileSync(runnerUnit, "utf8");
    expect(text).toMatch(
      /^ExecStart=.*"runner" "--coordinator" "https:\/\/fleet\.example" "--coordinator" "https:\/\/other\.example" "--project" ".*" "--token-file" ".*box-1\.token" "--agents" "agents\.ts" /m,
    );
    for (const word of ['"--label" "gpu=yes"', '"--name" "box-1"', '"--verbose"'])
      expect(text).toContain(word);
    expect(text).toMatch(/^RestartPreventExitStatus=2 3 5 11 12$/m);
    expect(text).toMatch(/^Restart=on-failure$/m); // A runner that was drained stays away.
    expect(text).toMatch(/^TimeoutStopSec=20$/m);
    expect(text + enabled.stderr).not.toContain(TOKEN);
    expect(text + enabled.stderr).not.toContain(CANARY);
    const verified = spawnSync("systemd-analyze", ["--user", "verify", runnerUnit], { encoding: "utf8" });
    if (verified.error === undefined) expect(verified.stderr).not.toContain("holdfast-runner-box-1.service:");

    expect((await project.finish(["runner", "disable"], { env })).stderr).toContain(
      "the runner is no service",
    );
    expect((await project.finish(["runner", "disable", "--name", "box-1"], { env })).code).toBe(0);
    expect(existsSync(runnerUnit)).toBe(false);
    expect(calls()).toContain("systemctl --user disable --now holdfast-runner-box-1.service");
  },
);

// Its units are systemd's.
test.skipIf(process.platform !== "linux")(
  "a runner whose token others may read, or that only this terminal has, is no service",
  async () => {
    const words = ["runner", "enable", "-c", "https://fleet.example", "--agents", "agents.ts"];
    writeFileSync(project.path("open.token"), TOKEN, { mode: 0o644 });
    const open = await project.finish([...words, "--token-file", "open.token"], { env });
    expectError(open, 3, "E_CONFIG_INVALID", [
      "a file of mode 0600",
      `chmod 600 ${project.path("open.token")}`,
    ]);
    const variable = await project.finish(words, { env: { ...env, HOLDFAST_TOKEN: TOKEN } });
    expectError(variable, 2, "E_USAGE", [
      "HOLDFAST_TOKEN is a variable of this terminal",
      "--token-file FILE",
    ]);
    const missing = await project.finish([...words, "--token-file", "none"], { env });
    expectError(missing, 2, "E_FILE_NOT_FOUND", [project.path("none")]);
    expect((await project.finish([...words, "--name", "a b"], { env })).code).toBe(2);
    // It would fail in its log alone.
    for (const wrong of [
      ["--max-runs", "0"],
      ["--health-port", "x"],
      ["--label", "gpu"],
    ])
      expect((await project.finish([...words, ...wrong], { env })).code, wrong.join(" ")).toBe(2);
    writeFileSync(project.path("policy.json"), "{");
    const policy = await project.finish([...words, "--policy", "policy.json"], { env });
    expectError(policy, 3, "E_CONFIG_INVALID", ["the policy lies in the project"]);
    expect(existsSync(project.path("calls"))).toBe(false);
  },
);

// Windows has no SIGTERM.
test.skipIf(process.platform === "win32")(
  "a stack that is stopped while it starts ends by the signal, and has not failed",
  async () => {
    const stack = project.start(["local", "start", "--foreground", "--agents", "agents.ts", "--port", "0"], {
      env: { ...env, XDG_DATA_HOME: project.path("data") },
    });
    await vi.waitUntil(() => existsSync(project.path("data/holdfast/local/stack.json")), 60_000);
    stack.kill("SIGTERM");
    const { code, stderr } = await stack.finished;
    expect([code, stderr]).toEqual([143, expect.not.stringContaining("error[")]);
  },
);

/** The keys of launchd.plist(5) that we use, with the types that Apple documents. */
const LAUNCHD_KEYS = {
  Label: "str",
  WorkingDirectory: "str",
  EnvironmentVariables: "dict[str]",
  ProgramArguments: "list[str]",
  RunAtLoad: "bool",
  KeepAlive: "dict[bool]", // A boolean, or a dictionary of conditions.
  ThrottleInterval: "int",
  ExitTimeOut: "int",
  StandardOutPath: "str",
  StandardErrorPath: "str",
};
const TYPES_OF_PLIST = `
import json, plistlib, sys
def kind(value):
    if not isinstance(value, (dict, list)): return type(value).__name__
    inside = {kind(v) for v in (value.values() if isinstance(value, dict) else value)}
    return f"{type(value).__name__}[{'|'.join(sorted(inside))}]"
plist = plistlib.loads(sys.stdin.buffer.read())
print(json.dumps({"values": plist, "types": {key: kind(value) for key, value in plist.items()}}))
`;

/** The agent of launchd in this file, and the types of its values. */
function readPlist(file: string): Record<"values" | "types", Record<string, unknown>> {
  const read = spawnSync("python3", ["-c", TYPES_OF_PLIST], { input: readFileSync(file), encoding: "utf8" });
  expect(read.stderr).toBe("");
  return JSON.parse(read.stdout) as Record<"values" | "types", Record<string, unknown>>;
}

/** The command on a machine that says it is a Mac. */
function onMac(...words: readonly string[]): Promise<Finished> {
  managed("launchctl");
  project.write("mac.mjs", `Object.defineProperty(process, "platform", { value: "darwin" });`);
  const more = {
    HOME: project.path("home <&>"),
    HOLDFAST_MODEL: MODEL,
    NODE_OPTIONS: `--import=${project.path("mac.mjs")}`,
  };
  return project.start(words, { env: { ...env, ...more } }).finished;
}

const MODEL = `a "model" <&> 'of' a test`;
// Python has a parser of property lists.
const withPython = test.skipIf(spawnSync("python3", ["--version"]).status !== 0);

withPython("the agent of launchd is a property list of the keys that Apple documents", async () => {
  const enabled = await onMac(...LOCAL, "--grace", "5s");
  expect(enabled.code, enabled.stderr).toBe(0);
  const file = project.path("home <&>/Library/LaunchAgents/dev.holdfast.local.plist");
  const { values, types } = readPlist(file);
  expect(types).toEqual(LAUNCHD_KEYS);
  expect(values).toMatchObject({
    Label: "dev.holdfast.local",
    WorkingDirectory: project.folder,
    ExitTimeOut: 20,
    KeepAlive: { SuccessfulExit: false },
    EnvironmentVariables: { HOLDFAST_MODEL: MODEL },
  });
  expect(values["ProgramArguments"]).toEqual(
    expect.arrayContaining(["local", "start", "--foreground", "--agents", "agents.ts", "--port", "0"]),
  );
  expect(JSON.stringify(values) + enabled.stderr).not.toContain(CANARY);

  expect((await onMac("local", "disable")).code).toBe(0);
  expect(existsSync(file)).toBe(false);
  const domain = `gui/${process.getuid!()}`;
  expect(calls().filter((line) => !line.startsWith("launchctl print "))).toEqual([
    `launchctl bootstrap ${domain} ${file}`,
    `launchctl bootout ${domain}/dev.holdfast.local`,
  ]);
});

withPython("a runner's agent of launchd has a file for its lines, each with its time", async () => {
  writeFileSync(project.path("box-1.token"), TOKEN, { mode: 0o600 });
  const words = [
    "runner",
    "enable",
    "-c",
    "https://fleet.example",
    "--name",
    "box-1",
    "--agents",
    "agents.ts",
  ];
  const enabled = await onMac(...words, "--token-file", "box-1.token");
  expect(enabled.code, enabled.stderr).toBe(0);
  const { values, types } = readPlist(
    project.path("home <&>/Library/LaunchAgents/dev.holdfast.runner-box-1.plist"),
  );
  expect(types).toEqual(LAUNCHD_KEYS);
  const log = project.path("home <&>/Library/Logs/dev.holdfast.runner-box-1.log");
  expect(values).toMatchObject({ StandardOutPath: log, StandardErrorPath: log });
  expect(existsSync(dirname(log))).toBe(true); // launchd makes only the file.
  expect(values["ProgramArguments"]).toContain("--log-times");
  expect(enabled.stderr).toContain(`what it says is in ${log}`);
  expect((await onMac("runner", "disable", "--name", "box-1")).code).toBe(0);
});
