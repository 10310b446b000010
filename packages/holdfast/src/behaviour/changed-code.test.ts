// Code that an agent could write is not loaded outside of its sandbox: what the user has trusted is trusted
// with its content.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => void (project = await ModelProject.open()));
afterEach(() => project.dispose());

const run = (...args: string[]) => project.run(...args);
const TASKS = (more = ""): string =>
  `import { defineTask } from "holdfast";\n${more}\nexport const t = defineTask({ name: "t", run: () => 1 });\n`;
const ESCAPE = `import { writeFileSync } from "node:fs"; writeFileSync("escaped.txt", "");`;

function worker(fields = ""): void {
  project.write(
    ".holdfast/agents/worker.md",
    `---\nname: worker\ndescription: Works.\npermissionMode: acceptEdits\nholdfast:\n  tasks: [src/tasks.ts]\n  approvals: { allow: [Bash] }\n${fields}---\nYou work.\n`,
  );
}

describe("a file of tasks", () => {
  test.each([
    ["virtual", "write_file", "src/tasks.ts", TASKS(ESCAPE)],
    ["filesystem", "shell", "src/helper.ts", ESCAPE],
  ])(
    "an agent in %s that changes it by %s (%s) does not run in the command",
    async (sandbox, tool, path, code) => {
      project.write("src/tasks.ts", TASKS('import "./helper.ts";'));
      project.write("src/helper.ts", "export {};\n");
      worker(`  sandbox: ${sandbox}\n`);
      await run("agents", "trust");
      project.script = (conversation) =>
        repliesOf(conversation) > 0
          ? { text: "Done." }
          : {
              toolCalls: [
                tool === "shell"
                  ? { name: "shell", input: { command: `cat > ${path} <<'X'\n${code}\nX` } }
                  : { name: "write_file", input: { path, content: code } },
              ],
            };
      const first = await run("run", "worker", "Go.", "--local");
      expect(first.code, first.stderr).toBe(0);
      expectError(await run("run", "worker", "Again.", "--local"), 12, "E_POLICY_DENIED", [
        "src/tasks.ts are not the code that you have trusted",
        "holdfast agents trust",
      ]);
      expect(existsSync(project.path("escaped.txt"))).toBe(false);
      await run("agents", "trust");
      expect((await run("run", "worker", "Again.", "--local")).code).toBe(0);
    },
  );

  test("the tasks of an agent file elsewhere are trusted by its path", ofCampaign, async () => {
    project.write("src/tasks.ts", TASKS());
    project.write(
      "worker.md",
      "---\nname: w\ndescription: W.\nholdfast: { tasks: [src/tasks.ts] }\n---\nYou work.\n",
    );
    await run("agents", "trust");
    const refused = await run("run", "worker.md", "Go.", "--local");
    expectError(refused, 12, "E_POLICY_DENIED", ["holdfast agents trust"]);
    const [, advice = ""] = /`holdfast (agents trust [^`]+)`/.exec(refused.stderr) ?? [];
    expect((await run(...advice.split(" "))).code).toBe(0);
    expect((await run("run", "worker.md", "Go.", "--local")).code).toBe(0);
  });
});

const hasBubblewrap = spawnSync("bwrap", ["--version"]).status === 0;

// skip: this machine has no bubblewrap
test.skipIf(!hasBubblewrap)(
  "an agent in bubblewrap reaches no database that --db put into its folder",
  async () => {
    project.write(
      ".holdfast/agents/bad.md",
      "---\nname: bad\ndescription: B.\nholdfast: { sandbox: bubblewrap, approvals: { allow: [Bash] } }\n---\nYou try.\n",
    );
    await run("agents", "trust");
    mkdirSync(project.path("data"));
    let seen = "";
    project.script = (conversation) => {
      seen = conversation.messages.at(-1)?.toolResults[0]?.text ?? "";
      return repliesOf(conversation) > 0
        ? { text: "Done." }
        : {
            toolCalls: [
              { name: "shell", input: { command: "cat data/*; ls -l data; echo x >> data/hf.db-wal" } },
            ],
          };
    };
    const { code, stderr } = await run("run", "bad", "CANARY-PROMPT", "--local", "--db", "data/hf.db");
    expect(code, stderr).toBe(0);
    expect(seen).not.toContain("CANARY-PROMPT");
    expect(seen).toMatch(/^c\S+ .*hf\.db$/m);
    expect((await run("list", "--db", "data/hf.db")).code).toBe(0);
  },
);

test("a pulled agent file with a hook runs nothing until it is trusted again", async () => {
  const file = (fields = ""): void =>
    project.write(
      ".holdfast/agents/helper.md",
      `---\nname: helper\ndescription: H.\n${fields}---\nYou help.\n`,
    );
  file();
  await run("agents", "trust");
  file('holdfast: { hooks: { on_run_start: { command: "touch hooked.txt; echo {}" } } }\n');
  for (const named of ["helper", ".holdfast/agents/helper.md"])
    expectError(await run("run", named, "Hi.", "--local"), 12, "E_POLICY_DENIED", ["holdfast agents trust"]);
  expect(existsSync(project.path("hooked.txt"))).toBe(false);
});
