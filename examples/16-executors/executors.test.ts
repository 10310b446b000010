import { execFileSync } from "node:child_process";
import { cpSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  for (const part of ["executors", "profiles"])
    cpSync(`${FOLDER}${part}`, project.path(part), { recursive: true });
});
afterEach(() => project.dispose());

/** Clauses that failed, with their reason. */
async function failures(
  executor: string,
): Promise<{ readonly failed: readonly string[]; readonly passed: number }> {
  const { clauses } = await project.json<{ clauses: { clause: string; status: string; detail?: string }[] }>(
    "runner",
    "--check-executor",
    executor,
  );
  const failed = clauses.filter(({ status }) => status === "failed");
  return {
    failed: failed.map(({ clause, detail }) => `${clause}: ${detail}`),
    passed: clauses.filter(({ status }) => status === "passed").length,
  };
}

// The executor in shell sends its reports by curl.
test.runIf(isThere("curl"))("the executor in shell keeps the protocol", ofCampaign, async () => {
  expect(await failures("shell")).toEqual({ failed: [], passed: 7 });
});

// The executor in Python needs python3.
test.runIf(isThere("python3"))(
  "the executor in Python keeps the protocol, also with several turns",
  ofCampaign,
  async () => {
    expect(await failures("python")).toEqual({ failed: [], passed: 9 });
  },
);

test("the list names all executors", ofCampaign, async () => {
  const { executors } = await project.json<{ executors: { name: string }[] }>("runner", "--executor-list");
  expect(executors.map(({ name }) => name)).toEqual(["lead", "python", "shell", "test-executor"]);
});

function isThere(command: string): boolean {
  try {
    execFileSync(command, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
