// Rules for paths in a session of an external agent: the place that a path leads to decides.

import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";

import { ExternalSession } from "../../testing/external-session.ts";

let session: ExternalSession | undefined;
afterEach(async () => {
  await session?.dispose();
  session = undefined;
});

test("a rule for a folder permits no write through a link or out of the folder (permissions-8)", async () => {
  session = new ExternalSession("claude-code", {
    rules: [{ decision: "allow", tool: "write_file", pattern: "docs/**" }],
  });
  const { folder, home } = session;
  for (const path of ["docs", "hooks"]) mkdirSync(join(folder, path));
  mkdirSync(join(home, "outside"));
  symlinkSync(join(home, "outside"), join(folder, "docs/out"));
  symlinkSync("../hooks", join(folder, "docs/hk"));
  await session.converse("ask:docs/in.txt", { profile: "p" });
  expect(await session.question()).toBe("");
  expect(existsSync(join(folder, "docs/in.txt"))).toBe(true);
  const paths = [
    "docs/out/pwned",
    join(folder, "docs/hk/post-commit"),
    "docs/../top",
    join(home, "outside/x"),
  ];
  for (const path of paths) {
    await session.say(`ask:${path}`);
    expect(await session.question()).toContain("Allow write_file: ");
    await session.answer({ approved: false });
  }
  for (const path of ["hooks/post-commit", "top", "../outside/pwned", "../outside/x"])
    expect(existsSync(join(folder, path))).toBe(false);
});
