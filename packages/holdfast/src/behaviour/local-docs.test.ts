// docs/local.md, with its files and commands in their order, in an empty home.

import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";
import { LocalStack } from "../testing/local-stack.ts";

const PAGE = readFileSync(new URL("../../../../docs/local.md", import.meta.url), "utf8");

let project: Project;
let stack: LocalStack;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  stack = new LocalStack(project);
});
afterEach(() => stack.dispose());

function blocks(language: string): string[] {
  return [...PAGE.matchAll(/^```(\w+)\n([^]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , text]) => text!);
}

test(
  "every command of docs/local.md does what the page says, in an empty home",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const [agents] = blocks("ts");
    writeFileSync(project.path("agents.ts"), agents!);
    // The service of the system is tried where there is one (`local-service.test.ts`).
    const lines = blocks("sh")
      .flatMap((block) => block.trim().split("\n"))
      .filter((line) => !/^holdfast local (enable|disable)/.test(line));
    const outputs = new Map<string, string>();
    for (const line of lines) {
      // The port of the page may be in use on this machine.
      const call = line.replace(/ +#.*$/, "").replace("local start", "local start --port 0");
      const { code, stdout, stderr } = await project.shell(call);
      expect({ line, code, stderr }).toMatchObject({ code: 0 });
      outputs.set(call, stdout);
    }
    expect(lines.length).toBeGreaterThan(8);
    expect(outputs.get("holdfast run --agent greet --input '\"Ada\"'")).toContain("hello Ada");
    expect(outputs.get("holdfast result first")).toContain("yes");
    expect(outputs.get("holdfast list")).toContain("first");
    expect(stack.processes()).toEqual([]);
  },
);
