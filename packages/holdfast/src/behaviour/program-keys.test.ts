// The key of a coding agent. The gateway of its turn adds the key to the requests, and no command of its
// model finds it.

import { CanaryScan, startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Finished } from "../testing/holdfast-process.ts";
import { ExternalProject } from "../testing/external-project.ts";

/**
 * Writes the variables of all processes that know the home folder of the test, which is the project: those of
 * the agent, and ours.
 */
const LOOK = `env > seen
for p in /proc/[0-9]*; do
  grep -qa "HOME=$HOME" $p/environ 2>/dev/null && { tr '\\0' ' ' <$p/cmdline; tr '\\0' '\\n' <$p/environ; } >> seen
done
echo looked >> seen
`;

let project: ExternalProject;
let server: ScriptedModelServer;
let scan: CanaryScan;
let env: Record<string, string>;
beforeEach(async () => {
  project = new ExternalProject();
  server = await startScriptedModelServer({ script: () => ({ text: "The model answers." }) });
  scan = new CanaryScan(`sk-canary-${Math.random().toString(36).slice(2)}0123456789`);
  project.write("look.sh", LOOK);
  writeFileSync(project.path("key"), "0123456789abcdef".repeat(4), { mode: 0o600 });
  env = {
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: "",
    HOLDFAST_SECRET_KEY_FILE: project.path("key"),
  };
});
afterEach(async () => {
  await project.dispose();
  await server.close();
});

const RUN = ["run", "claude-code", "script:look.sh ask-model", "--session", "s"];

/** The key reached the model, and is nowhere else. */
async function expectHidden({ code, stderr }: Finished): Promise<void> {
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("The model answers.");
  expect(server.requests.map(({ headers }) => headers["x-api-key"])).toEqual([scan.secret]);
  const seen = readFileSync(project.path("seen"), "utf8");
  expect(seen).toContain("looked");
  expect(seen).toContain("ANTHROPIC_API_KEY=hf_job_");
  scan.search("what a command of the agent sees", seen);
  scan.searchFolder(project.folder);
  expect(scan.found).toEqual([]);
  const { stdout } = await project.finishHere(["show", "s"], env);
  expect(stdout).toContain("its shell cannot read ANTHROPIC_API_KEY");
}

// Other systems have no /proc.
describe.runIf(process.platform === "linux")(
  "no command of a coding agent finds the key of its model",
  () => {
    test("which is in the environment", async () => {
      await expectHidden(await project.finishHere(RUN, { ...env, ANTHROPIC_API_KEY: scan.secret }));
    });

    test("which is stored", async () => {
      const set = project.start(["secret", "set", "ANTHROPIC_API_KEY", "--to", "file"], {
        stdin: scan.secret,
        env: { ...project.environment(), ...env },
      });
      expect((await set.finished).code, set.stderr).toBe(0);
      await expectHidden(await project.finishHere(RUN, env));
    });

    test("which is piped to standard input", async () => {
      const run = project.start([...RUN, "--secret-stdin", "ANTHROPIC_API_KEY"], {
        stdin: scan.secret,
        env: { ...project.environment(), ...env },
      });
      await expectHidden(await run.finished);
    });
  },
);

test("the token of a turn is good for nothing after the turn", async () => {
  project.write("keep.sh", "echo $ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY > kept\n");
  const run = ["run", "claude-code", "script:keep.sh ask-model", "--session", "s"];
  const { code, stderr } = await project.finishHere(run, { ...env, ANTHROPIC_API_KEY: scan.secret });
  expect(code, stderr).toBe(0);
  const [url = "", token = ""] = readFileSync(project.path("kept"), "utf8").trim().split(" ");
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/providers\/anthropic$/);
  await expect(
    fetch(`${url}/v1/models`, { headers: { "x-api-key": token } }).then(({ status }) => status),
  ).rejects.toThrow();
});

test("a program whose settings name another server gets its key, and show and doctor say so", async () => {
  mkdirSync(project.path(".claude"));
  writeFileSync(
    project.path(".claude/settings.json"),
    JSON.stringify({ env: { ANTHROPIC_BASE_URL: server.url } }),
  );
  const given = { ...env, ANTHROPIC_API_KEY: scan.secret };
  const { code, stderr } = await project.finishHere(
    ["run", "claude-code", "ask-model", "--session", "s"],
    given,
  );
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("The model answers.");
  expect((await project.finishHere(["show", "s"], given)).stdout).toContain(
    "its shell can read ANTHROPIC_API_KEY",
  );
  const doctor = await project.finishHere(["doctor"], given);
  expect(doctor.stdout).toContain("its shell can read ANTHROPIC_API_KEY");
  expect(doctor.stdout).toContain("its shell can read the program's own sign-in, if it has one");
});
