// Titles of sessions, as people give, see and change them.

import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectError } from "../testing/expect-error.ts";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeAll(() => {
  project = new Project();
  writeFileSync(
    project.path("echo.ts"),
    `import { defineAgent } from "holdfast";
export default defineAgent({ name: "echo", run: async (ctx, input) => input ?? null });`,
  );
});
afterAll(() => project.dispose());

async function works(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await project.run(...args);
  expect(code, `${args.join(" ")}: ${stderr}`).toBe(0);
  return stdout;
}

test("a title comes from the input or from the start, is shown, and is replaced", async () => {
  await works("run", "echo.ts", "--session", "plain", "--input", '{"prompt":"Fix the login\\nand more"}');
  await works("run", "echo.ts", "--session", "named", "--input", "1", "--title", "The numbers");
  expect(await works("title", "plain")).toBe("Fix the login\n");
  const listed = await works("list");
  expect(listed).toMatch(/plain +completed +echo +Fix the login +\d+ s ago/);
  expect(listed).toMatch(/named +completed +echo +The numbers +\d+ s ago/);
  expect(await works("show", "named")).toContain("The numbers");
  expect(await project.json("list")).toMatchObject([{ title: "The numbers" }, { title: "Fix the login" }]);

  expect(await works("title", "plain", "  The login\u001b[31m of the shop\n2")).toBe(
    "The login of the shop\n",
  );
  expect(await project.json("title", "plain")).toEqual({
    sessionId: "plain",
    title: "The login of the shop",
  });
  const file = project.path("plain.ndjson");
  await works("export", "plain", "--output", file);
  await works("delete", "plain");
  await works("import", file);
  expect(await works("title", "plain")).toBe("The login of the shop\n");
  expect(await works("title", "plain", "")).toBe("Fix the login\n");
});

test("a title of two words without quotes, and that of a session that is not there, are refused", async () => {
  expectError(await project.run("title", "named", "two", "words"), 2, "E_USAGE", ["put the title in quotes"]);
  expectError(await project.run("title", "nobody", "x"), 4, "E_SESSION_NOT_FOUND", [
    "there is no session nobody",
  ]);
});
