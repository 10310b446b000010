import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "story.ts";
const README = new URL("./README.md", import.meta.url);

describe("a story, told in two ways", () => {
  let project: Project;
  beforeEach(async () => {
    project = exampleProject(import.meta.url);
    const first = await project.run("run", FILE, "--session", "tale", "--input", '{"hero": "Ada"}');
    expect(JSON.parse(first.stdout)).toEqual(["Ada sets out.", "Ada gets lost.", "Ada comes home."]);
  });
  afterEach(() => project.dispose());

  test("a fork from a logged checkpoint with another input tells another story", ofCampaign, async () => {
    const { stdout } = await project.run("logs", "tale", "--json");
    const checkpoint = stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { type: string; seq: number })
      .find(({ type }) => type === "checkpoint")!.seq;
    // The README tells the reader to type that position.
    expect(readFileSync(README, "utf8")).toContain(`--at ${checkpoint} `);

    const at = String(checkpoint);
    const forked = await project.run("fork", "tale", "--at", at, "--input", '{"hero": "Grace"}', "--run");

    expect(JSON.parse(forked.stdout)).toEqual(["Ada sets out.", "Grace gets lost.", "Grace comes home."]);
    expect(JSON.parse((await project.run("result", "tale")).stdout)).toContain("Ada comes home.");
    const id = /ses_[\w-]+/.exec(forked.stderr)![0];
    const { entries } = await project.json<{ entries: { content: string }[] }>("show", id);
    expect(entries.map(({ content }) => content)).toEqual([
      "Ada sets out.",
      "Grace gets lost.",
      "Grace comes home.",
    ]);
  });

  test("carried to another database, it is the same story", async () => {
    await project.run("export", "tale");
    expect((await project.run("import", "tale.ndjson", "--db", "elsewhere.db")).code).toBe(0);
    const there = await project.run("result", "tale", "--db", "elsewhere.db");
    expect(there.stdout).toBe((await project.run("result", "tale")).stdout);
  });
});
