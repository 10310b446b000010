// The command of a script in a shell beside its tool: both check one schema, and the script gets the same
// from both.

import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";

import { scriptProject } from "../testing/script-project.ts";
import { checkCall } from "./run-script.ts";
import { writeScript } from "./script-files.ts";

const project = scriptProject();
const { writeFolder, push, inSandbox, call } = project;

const parameters_schema = {
  $defs: {
    level: { type: "integer", minimum: 1 },
    options: {
      type: "object",
      properties: { format: { enum: ["pdf", "html"] }, level: { $ref: "#/$defs/level" } },
      required: ["format", "level"],
      additionalProperties: false,
    },
  },
  properties: {
    note: { type: "string" },
    level: { $ref: "#/$defs/level" },
    options: { $ref: "#/$defs/options" },
  },
  required: ["level", "options"],
};
const inShell = (line: string, sandbox = "filesystem") =>
  inSandbox(sandbox, async (workspace) => {
    const { content, manifest } = push("shape");
    await writeScript(workspace, manifest, content);
    return workspace.execute(line, { pathFolders: [".agent-orchestrator/bin"] });
  });
beforeEach(() => writeFolder({ parameters_schema }, "shape", 'printf "%s|" "$@"'));

test.each(["filesystem", "virtual"])(
  "a nested schema is checked as deep in the shell of %s",
  async (sandbox) => {
    const wrong = await inShell(`shape --level 0 --options '{"format":"nope","level":1}'; echo $?`, sandbox);
    expect(wrong.stdout).toBe("2\n");
    expect(wrong.stderr).toContain("--level is less than 1");
    expect(wrong.stderr).toContain('--options/format is "nope", and it is one of pdf, html');
    const right = `shape --level 1 --options '{"format":"pdf","level":1}'`;
    expect(wrong.stderr).toContain(`a right call: ${right}\n`);
    const called = await inShell(`${right}; shape --check ${right.slice(6)}; echo " $?"`, sandbox);
    expect(called.stdout).toBe('--level|1|--options|{"format":"pdf","level":1}| 0\n');
    const { manifest } = push("shape");
    expect(() => checkCall(manifest, {})).toThrow(
      `right arguments: {"level":1,"options":{"format":"pdf","level":1}}\na right call: ${right}`,
    );
  },
);

test("a value that begins with a dash stays a value for parsers of options", async () => {
  const parser = `import argparse, json
p = argparse.ArgumentParser(allow_abbrev=False)
for name in ("--note", "--options", "--output"): p.add_argument(name)
p.add_argument("--level", type=int)
print(json.dumps(vars(p.parse_args())))`;
  writeFolder({ parameters_schema, interpreter: ["python3"] }, "shape", parser);
  const options = { format: "pdf", level: 1 };
  for (const note of ["--output=/etc/x", "-x", "-", "-1", "a=-b", ""]) {
    const values = JSON.stringify({ note, options: JSON.stringify(options), output: null, level: 1 });
    const ofTool = await call("shape", { note, level: 1, options });
    const spelled = [`--note='${note}'`, ...(note.startsWith("--") ? [] : [`--note '${note}'`])];
    const inShells = await Promise.all(
      spelled.map((word) => inShell(`shape ${word} --level 1 --options '${JSON.stringify(options)}'`)),
    );
    for (const { stdout, stderr } of [ofTool, ...inShells])
      expect(JSON.parse(stdout), `${note}: ${stderr}`).toEqual(JSON.parse(values));
  }
});

test("each call in a command line has an IDEMPOTENCY_KEY of its own, and so has the command line", async () => {
  writeFolder({ parameters_schema: {} }, "shape", 'echo "$IDEMPOTENCY_KEY"');
  const keysOf = async (key: string, sandbox: string) => {
    const events = join(project.places.project, ".agent-orchestrator/calls", key);
    const { stdout } = await inShell(`export SCRIPT_EVENTS='${events}'; shape; shape; (shape)`, sandbox);
    return stdout.trim().split("\n");
  };
  for (const sandbox of ["filesystem", "virtual"]) {
    const keys = [...(await keysOf("a1", sandbox)), ...(await keysOf("b2", sandbox))];
    expect(new Set(keys).size, keys.join()).toBe(6);
    expect(keys.map((key) => key.slice(0, 3))).toEqual(["a1-", "a1-", "a1-", "b2-", "b2-", "b2-"]);
  }
});

test("a script that the shell cannot check runs by its tool alone, and both texts say so", async () => {
  const schema = { properties: { note: { type: "string", pattern: "^(?!-)" } } };
  writeFolder({ parameters_schema: schema }, "shape", 'printf "%s|" "$@"');
  expect((await call("shape", { note: "x" })).stdout).toBe("--note|x|");
  const { end, stderr } = await inShell("shape --note x");
  expect(end).toEqual({ type: "exit", exitCode: 2 });
  expect(stderr).toContain(
    "the shell cannot check the pattern ^(?!-), which the parameters have; call the tool script__shape",
  );
});
