// A key in the environment of the command: the shell of an agent looks for it everywhere, and finds it
// nowhere.

import { CanaryScan } from "@holdfast/testkit";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ModelProject } from "../testing/model-project.ts";

/** Each process that is no ancestor of the command belongs to others, such as the runner of these tests. */
const LOOK = `
env
tr '\\0' '\\n' </proc/self/environ
p=$$
while [ "$p" -gt 1 ]; do
  name=$(tr '\\0' ' ' </proc/$p/cmdline)
  case "$name" in *vitest*) break;; esac
  echo "$p $name"
  tr '\\0' '\\n' </proc/$p/environ | rev
  ls -l /proc/$p/fd
  p=$(sed 's/.*) . //' /proc/$p/stat | cut -d ' ' -f 1)
done
for p in $(ls /proc | grep -E '^[0-9]+$'); do
  tr '\\0' ' ' </proc/$p/cmdline | grep -q holdfast && tr '\\0' '\\n' </proc/$p/environ | rev
done
ps e | grep holdfast | rev
echo looked
`;

let project: ModelProject;
let scan: CanaryScan;
let env: Record<string, string | undefined>;
beforeEach(async () => {
  project = await ModelProject.open({
    HOLDFAST_SCRIPTED_MODEL_URL: undefined,
    HOLDFAST_TEST_SECRET: undefined,
  });
  scan = new CanaryScan();
  env = {
    ANTHROPIC_BASE_URL: project.server.url,
    ANTHROPIC_API_KEY: scan.secret,
    OTHER_SERVICE_TOKEN: scan.secret,
    DSN: scan.secret,
  };
  project.script = ({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? { text: "Done." }
      : { toolCalls: [{ name: "shell", input: { command: LOOK } }] };
});
afterEach(async () => {
  await project.dispose();
});

function write(sandbox: string): void {
  project.write(
    "look.md",
    `---\nname: look\ndescription: L.\nmodel: sonnet\ntools: Bash\nholdfast: { secrets: [DSN], sandbox: ${sandbox}, approvals: { allow: [Bash] } }\n---\nWork.\n`,
  );
}

/** The output of the shell. The texts are reversed, because redaction would hide a value that is shown as it is. */
async function seen(): Promise<string> {
  const { stdout } = await project.finish(["logs", "s", "--json"], { env });
  const { content } = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly role: string; readonly content: { readonly text: string } })
    .find(({ role }) => role === "tool")!;
  return content.text.split("").toReversed().join("");
}

async function expectNothingSeen(): Promise<void> {
  const found = await seen();
  scan.search("the output of the shell", found);
  expect([found.includes("looked".split("").toReversed().join("")), scan.found], found).toEqual([true, []]);
  const keys = project.server.requests.map(({ headers }) => headers["x-api-key"]);
  expect(new Set(keys)).toEqual(new Set([scan.secret]));
}

// Other systems have no /proc.
describe.runIf(process.platform === "linux")("the shell of an agent finds no key of the environment", () => {
  test.each(["filesystem", "bubblewrap", "virtual"])(
    "which a run has started in the sandbox %s",
    async (sandbox) => {
      write(sandbox);
      const run = project.start(["run", "look.md", "Look.", "--session", "s"], { stdin: "", env });
      const { code, stderr } = await run.finished;
      expect(code, stderr).toBe(0);
      await expectNothingSeen();
    },
  );

  test("which has no namespace of its own", async () => {
    write("filesystem");
    const off = { ...env, HOLDFAST_COMMAND_NAMESPACE: "off" };
    const run = project.start(["run", "look.md", "Look.", "--session", "s"], { stdin: "", env: off });
    const { code, stderr } = await run.finished;
    expect(code, stderr).toBe(0);
    await expectNothingSeen();
  });

  test("which a runner of the local stack has started", ofCampaign, async () => {
    write("filesystem");
    const off = { ...env, HOLDFAST_COMMAND_NAMESPACE: "off" };
    const started = await project.finish(["local", "start", "--agents", "look.md", "--port", "0"], {
      env: off,
    });
    expect(started.code, started.stderr).toBe(0);
    const { code, stderr } = await project.finish(["run", "look.md", "Look.", "--session", "s"], {
      env: off,
    });
    expect(code, stderr).toBe(0);
    await expectNothingSeen();
    await project.run("local", "stop");
  });
});
