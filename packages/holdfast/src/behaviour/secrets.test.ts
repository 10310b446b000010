// Secrets on the command line: how they are given, stored and asked for, and that none is seen anywhere.

import { CanaryScan } from "@holdfast/testkit";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { LAUNCHER, Project, type Finished } from "../testing/holdfast-process.ts";

const AGENT = `import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { defineAgent, defineTask } from "holdfast";
const use = defineTask({ name: "use", secrets: ["API_KEY"], run: (_input, task) => {
  const key = task.secret("API_KEY");
  task.streamToken("token " + key + "\\n");
  task.progress({ key });
  execFileSync("sleep", ["0.05"], { env: { PATH: process.env.PATH } });
  return { leaked: "Bearer " + key, basic: btoa(key), sha256: createHash("sha256").update(key).digest("hex") };
} });
const fail = defineTask({ name: "fail", secrets: ["OTHER_KEY"], retry: { maxAttempts: 1 }, run: (_input, task) => {
  throw new Error("refused " + task.secret("OTHER_KEY"));
} });
export default defineAgent({ name: "keys", tasks: [use, fail], run: async (ctx) => {
  const output = await ctx.scheduleTask(use, null);
  const error = await ctx.scheduleTask(fail, null).catch((thrown) => thrown.cause.message);
  return { ...output, error };
} });
`;

let project: Project;
let scan: CanaryScan;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  scan = new CanaryScan();
  writeFileSync(project.path("keys.ts"), AGENT);
});
afterEach(() => project.dispose());

/** The answer has the hash of the secret, and the secret is in nothing that the command wrote or started. */
function expectUsedAndUnseen({ code, stdout, stderr }: Finished): void {
  scan.search("standard output", stdout);
  scan.search("standard error", stderr);
  scan.searchFolder(project.folder);
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual({
    leaked: "Bearer [secret]",
    basic: "[secret]",
    sha256: sha256(scan.secret),
    error: "refused [secret]",
  });
  expect(scan.found).toEqual([]);
}

function sha256(value: string): string {
  return createHash("sha256").update(value).digest("hex");
}

describe("a secret reaches the task that declares it, and is seen nowhere", () => {
  test("a secret on standard input is used", async () => {
    const started = project.start(["run", "keys.ts", "--secret-stdin", "API_KEY"], {
      stdin: `${scan.secret}\n`,
      env: { OTHER_KEY: "another secret" },
    });
    const end = scan.watch(started.child.pid);
    expectUsedAndUnseen(await started.finished);
    end();
    expect(scan.found).toEqual([]);
  });

  test("a secret that was stored in the encrypted file is used", ofCampaign, async () => {
    const env = keyFileEnv();
    const set = await project.start(["secret", "set", "API_KEY"], { stdin: scan.secret, env }).finished;
    expect([set.code, set.stdout]).toEqual([0, "API_KEY is stored in the encrypted file\n"]);
    await project.start(["secret", "set", "OTHER_KEY"], { stdin: "another secret\n", env }).finished;
    const list = await project.start(["secret", "list"], { env }).finished;
    expect(list.stdout).toMatch(
      /^NAME +FROM +LAST USE *\nAPI_KEY +encrypted file *\nOTHER_KEY +encrypted file *\n$/,
    );
    expectUsedAndUnseen(await project.start(["run", "keys.ts"], { stdin: "", env }).finished);
    const [used] = await project.json<{ readonly name: string; readonly usedAt: number }[]>("secret", "list");
    expect([used!.name, Date.now() - used!.usedAt < 600_000]).toEqual(["API_KEY", true]);
    const deleted = await project.run("secret", "delete", "API_KEY");
    expect([deleted.code, deleted.stdout]).toEqual([0, "API_KEY is deleted from the encrypted file\n"]);
    const again = await project.run("secret", "delete", "API_KEY");
    expect([again.code, again.stderr]).toEqual([4, expect.stringContaining("error[E_SECRET_NOT_FOUND]")]);
  });

  test("a secret that is typed on a terminal is used, and the terminal shows stars", ofCampaign, async () => {
    const run = project.startOnTerminal(["run", "keys.ts", "--json"]);
    const refused = await run.finished;
    expect(refused.stdout).toContain("E_SECRET_MISSING"); // With --json a program has called.
    const asked = project.startOnTerminal(["run", "keys.ts"]);
    await asked.says("Enter API_KEY: ");
    asked.child.stdin.write(`${scan.secret}x\u007f\r`);
    await asked.says("Enter OTHER_KEY: ");
    asked.child.stdin.write("another secret\r");
    const { code, stdout } = await asked.finished;
    scan.search("the terminal", stdout);
    scan.searchFolder(project.folder);
    expect([code, scan.found]).toEqual([0, []]);
    expect(stdout).toContain(`Enter API_KEY: ${"*".repeat(scan.secret.length + 1)}`);
    expect(stdout).toContain(sha256(scan.secret));
  });
});

test(
  "the secret is in nothing that an agent prints, and not in the error of a crash",
  ofCampaign,
  async () => {
    writeFileSync(
      project.path("loud.ts"),
      `import { defineAgent, defineTask } from "holdfast";
const print = defineTask({ name: "print", secrets: ["API_KEY"], run: (_input, task) => {
  const key = task.secret("API_KEY");
  console.log("printed", key);
  process.stderr.write("written " + JSON.stringify({ key }));
  setTimeout(() => { throw new Error("thrown " + key); });
  return new Promise(() => {});
} });
export default defineAgent({ name: "loud", secrets: ["API_KEY"], tasks: [print], run: (ctx) => ctx.scheduleTask(print, null) });
`,
    );
    const { code, stdout, stderr } = await project.start(["run", "loud.ts", "--secret-stdin", "API_KEY"], {
      stdin: `${scan.secret}\n`,
    }).finished;
    scan.search("the output", stdout + stderr);
    for (const shown of [
      "printed [secret]",
      'written {"key":"[secret]"}',
      "nobody caught Error: thrown [secret]",
    ])
      expect(stderr).toContain(shown);
    expect([code, scan.found]).toEqual([1, []]);
  },
);

describe("without a value nothing starts", () => {
  test("the error names every missing secret and the ways to give it", ofCampaign, async () => {
    const { code, stdout, stderr } = await project.run("run", "keys.ts");
    expect([code, stdout, existsSync(project.path(".holdfast"))]).toEqual([5, "", false]);
    expect(stderr).toBe(
      [
        "error[E_SECRET_MISSING]: 2 secrets are missing: API_KEY, OTHER_KEY",
        "  expected: a value for API_KEY, OTHER_KEY",
        "  fix: run the command on a terminal, which asks for it, set the environment variable API_KEY, pipe the value with --secret-stdin API_KEY, or store it with `holdfast secret set API_KEY`",
        "",
      ].join("\n"),
    );
  });

  test(
    "Ctrl-C at the prompt ends the command as that signal does, and restores the terminal",
    ofCampaign,
    async () => {
      const command = `'${process.execPath}' '${LAUNCHER}' run keys.ts; echo "code $?"; stty -a`;
      const child = spawn("script", ["-qefc", command, "/dev/null"], {
        cwd: project.folder,
        env: {
          PATH: process.env["PATH"],
          HOME: project.folder,
          TERM: "xterm",
          LANG: "C.UTF-8",
          SHELL: "/bin/sh",
        },
      });
      child.stdout.on("data", (chunk: Buffer) => {
        if (chunk.includes("Enter API_KEY: ")) child.stdin.write("half a secr\u0003");
      });
      const shown = await text(child.stdout);
      expect(shown).toContain("code 130");
      expect(shown).toMatch(/(?<!-)\bicanon\b/);
      expect(shown).toMatch(/(?<!-)\becho\b/);
      expect(shown).not.toContain("half");
      expect(existsSync(project.path(".holdfast"))).toBe(false);
    },
  );
});

describe("a wrong use is refused, and shows no value", () => {
  test.each(
    sampled([
      ["a value as an argument", ["secret", "set", "API_KEY", "VALUE"], 2, "E_SECRET_ARG"],
      ["a value after an equals sign", ["secret", "set", "API_KEY=VALUE"], 2, "E_SECRET_ARG"],
      ["a value in the place of the name", ["secret", "set", "VALUE"], 2, "E_USAGE"],
      [
        "a value in the place of the option's name",
        ["run", "keys.ts", "--secret-stdin", "VALUE"],
        2,
        "E_USAGE",
      ],
      ["a place that is none", ["secret", "set", "API_KEY", "--to", "disk"], 2, "E_USAGE"],
      [
        "a keychain that is not there",
        ["secret", "set", "API_KEY", "--to", "keychain"],
        3,
        "E_CONFIG_INVALID",
      ],
      ["a name that no agent declares", ["run", "keys.ts", "--secret-stdin", "NONE"], 2, "E_USAGE"],
      [
        "two uses of standard input",
        ["run", "keys.ts", "--secret-stdin", "API_KEY", "--input", "-"],
        2,
        "E_USAGE",
      ],
      ["an empty value", ["run", "keys.ts", "--secret-stdin", "API_KEY"], 2, "E_USAGE"],
      ["a file without a key", ["secret", "set", "API_KEY"], 5, "E_SECRET_KEY"],
    ]),
  )("%s is refused", async (what, args, code, error) => {
    const words = args.map((word) => word.replace("VALUE", scan.secret));
    const stdin = what === "an empty value" ? "\n" : "a value\n";
    const finished = await project.start(words, { stdin }).finished;
    scan.search("standard error", finished.stderr);
    expect([finished.code, finished.stdout]).toEqual([code, ""]);
    expect(finished.stderr).toContain(`error[${error}]`);
    expect(finished.stderr).not.toMatch(/^\s+at .*\.ts:\d+/m);
    expect(scan.found).toEqual([]);
  });

  test("a damaged file of secrets is named, and stays as it is", ofCampaign, async () => {
    const path = project.path(".local/share/holdfast/secrets.json");
    mkdirSync(project.path(".local/share/holdfast"), { recursive: true });
    writeFileSync(path, "{");
    const { code, stderr } = await project.run("secret", "list");
    expect([code, stderr.includes(path), readFileSync(path, "utf8")]).toEqual([3, true, "{"]);
  });
});

function keyFileEnv(): Record<string, string> {
  mkdirSync(project.path("keys"));
  const path = project.path("keys/key");
  writeFileSync(path, "0123456789abcdef".repeat(4), { mode: 0o600 });
  return { HOLDFAST_SECRET_KEY_FILE: path };
}
