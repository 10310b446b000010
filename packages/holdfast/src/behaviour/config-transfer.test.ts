// `holdfast config export` and `import`: one file, two machines, and no secret between them.

import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { CanaryScan } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { openFleet } from "../testing/fleet.ts";
import { Project, type Finished } from "../testing/holdfast-process.ts";

const AGENT = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "nightly", run: async () => "done" });`;
const REVIEWER = "---\nname: reviewer\ndescription: Reviews.\ntools: Read\n---\nYou review.\nBe brief.\n";

/** A folder with a project and a home folder of its own. */
class Machine extends Project {
  readonly env = { HOME: this.path("home") };

  constructor() {
    super();
    this.write("home/.keep", "");
    this.write("work/.holdfast/.gitignore", "*\n");
  }

  override write(name: string, text: string): void {
    super.write(name, text);
    chmodSync(this.path(name), 0o600);
  }

  read(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }

  holdfast(line: string, env: Record<string, string> = {}): Promise<Finished> {
    const options = { env: { ...this.env, ...env } };
    if (line.includes("<")) return this.shell(`cd work && holdfast ${line}`, options);
    const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
      ([, one, two, plain]) => one ?? two ?? plain!,
    );
    return this.finish(words, { ...options, folder: "work" });
  }
}

let here: Machine;
let there: Machine;
beforeEach(() => {
  here = new Machine();
  there = new Machine();
});
afterEach(async () => {
  await here.dispose();
  await there.dispose();
});

/** Everything that can be moved. */
async function configure(machine: Machine): Promise<void> {
  machine.write("work/nightly.ts", AGENT);
  machine.write("work/.holdfast/config.json", '{"strictBounds": true, "db": "sessions.db"}');
  machine.write("work/.holdfast/agents/reviewer.md", REVIEWER);
  await machine.holdfast("agents trust");
  machine.write("home/.config/holdfast/config.json", '{"trace": ["stdout", "file:trace.ndjson"]}');
  machine.write("home/.config/holdfast/runner-policy.json", '{"concurrency": 2, "allowScripts": "none"}');
  machine.write("home/.holdfast/agents/team/writer.md", REVIEWER.replace("reviewer", "writer"));
  const input = `'{"b": 1, "a": [2, "ü"]}'`;
  const add = `schedule add "0 3 * * *" --run nightly.ts --input ${input} --tz Europe/Berlin --id nightly --budget 2.00usd`;
  expect(await machine.holdfast(add)).toMatchObject({ code: 0 });
}

/** The file of a machine, and what was said of it. */
async function exported(machine: Machine, env?: Record<string, string>): Promise<Finished> {
  const finished = await machine.holdfast("config export", env);
  expect(finished).toMatchObject({ code: 0 });
  return finished;
}

describe("a configuration that moves", () => {
  test(
    "an export that was imported on an empty machine is exported again byte by byte",
    ofCampaign,
    async () => {
      await configure(here);
      const { stdout } = await exported(here);
      expect(stdout).not.toContain(here.folder);
      expect(JSON.parse(stdout)).toMatchObject({ format: "holdfast-config", version: 1 });
      expect((await exported(here)).stdout).toBe(stdout);

      there.write("work/nightly.ts", AGENT);
      there.write("work/moved.json", stdout);
      const { code, stderr } = await there.holdfast("config import moved.json --yes");
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("changes made") });
      expect((await exported(there)).stdout).toBe(stdout);
      const list = JSON.parse((await there.holdfast("schedule list --json")).stdout);
      expect(list).toMatchObject([
        { scheduleId: "nightly", start: { agent: { file: there.path("work/nightly.ts") } } },
      ]);
      const again = await there.holdfast("config import moved.json");
      expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("nothing is changed") });
    },
  );

  test("a schedule of an agent file moves with the file, also from the folders of other tools", async () => {
    const files = [
      ".holdfast/agents/team/reviewer.md",
      ".claude/agents/reader.md",
      "agents-of-ours/plain.md",
    ];
    for (const [at, file] of files.entries()) {
      const text = REVIEWER.replace("reviewer", `agent-${at}`);
      for (const machine of at === 0 ? [here] : [here, there]) machine.write(`work/${file}`, text);
      await here.holdfast("agents trust");
      const added = await here.holdfast(
        `schedule add "0 9 * * *" --run ${file} --input '"go"' --id at-${at}`,
      );
      expect(added.code, added.stderr).toBe(0);
    }
    const { stdout, stderr } = await exported(here);
    expect(stderr).not.toContain("left out");
    there.write("work/moved.json", stdout);
    const imported = await there.holdfast("config import moved.json --yes");
    expect(imported.code, imported.stderr).toBe(0);
    expect(imported.stderr).not.toContain("is not here");
    const list = JSON.parse((await there.holdfast("schedule list --json")).stdout);
    expect(list.map((one: { start: { agent: { file: string } } }) => one.start.agent.file)).toEqual(
      files.map((file) => there.path(`work/${file}`)),
    );
  });

  test("an import shows the difference and changes nothing until it is told to", ofCampaign, async () => {
    await configure(here);
    there.write("work/moved.json", (await exported(here)).stdout);
    there.write("work/.holdfast/config.json", '{"strictBounds": false, "mode": "local"}');
    await there.holdfast("agents trust");
    there.write("work/.holdfast/agents/reviewer.md", REVIEWER.replace("Be brief.", "Take your time."));
    const before = (await exported(there)).stdout;

    const refused = await there.holdfast("config import moved.json < /dev/null");
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("~ project/settings/strictBounds: false → true");
    expect(refused.stderr).toContain('+ project/settings/db: "sessions.db"');
    expect(refused.stderr).toContain("- Take your time.");
    expect(refused.stderr).toContain("+ Be brief.");
    expect(refused.stderr).toContain("nightly.ts, the agent of schedule nightly, is not here");
    expect(refused.stderr).toContain("nobody can be asked here");
    expect(await there.holdfast("config import moved.json --dry-run")).toMatchObject({ code: 0 });
    expect(await there.holdfast("config import - --json < moved.json")).toMatchObject({ code: 2 });
    expect((await exported(there)).stdout).toBe(before);

    const done = await there.holdfast("config import moved.json --yes --json");
    expect(JSON.parse(done.stdout)).toMatchObject({
      applied: true,
      changes: expect.arrayContaining([{ what: "project/settings/strictBounds", from: "false", to: "true" }]),
    });
    expect(JSON.parse(there.read("work/.holdfast/config.json")), "what only this machine has stays").toEqual({
      db: "sessions.db",
      mode: "local",
      strictBounds: true,
    });
  });

  test.each(
    sampled([
      ["y", true],
      ["n", false],
    ]),
  )("a person at a terminal who answers %s decides", async (answer, isApplied) => {
    there.write("work/moved.json", fileWith({ project: { settings: { strictBounds: true } } }));
    const asking = there.startOnTerminal(["config", "import", "work/moved.json"]);
    await asking.says("Make 1 change? [y/N]");
    asking.type(answer);
    expect((await asking.finished).code).toBe(0);
    expect(existsSync(there.path(".holdfast/config.json"))).toBe(isApplied);
  });

  test("a policy is replaced whole, and its removed fields are shown", async () => {
    there.write("home/.config/holdfast/runner-policy.json", '{"concurrency": 2, "roots": ["/srv"]}');
    there.write("work/moved.json", fileWith({ permissions: { runnerPolicy: { concurrency: 3 } } }));
    const { stderr } = await there.holdfast("config import moved.json --yes");
    expect(stderr).toContain("~ permissions/runnerPolicy/concurrency: 2 → 3");
    expect(stderr).toContain('- permissions/runnerPolicy/roots: ["/srv"]');
    expect(JSON.parse(there.read("home/.config/holdfast/runner-policy.json"))).toEqual({ concurrency: 3 });
  });
});

describe("secrets", () => {
  test("no value of a secret is in an export, and each place that had one is named", async () => {
    const scan = new CanaryScan();
    const { secret } = scan;
    here.write("work/nightly.ts", AGENT);
    here.write(
      "home/.config/holdfast/config.json",
      JSON.stringify({ trace: `otlp:https://u:${secret}@x.test` }),
    );
    here.write("work/.holdfast/config.json", JSON.stringify({ db: `${secret}.db` }));
    await here.holdfast("agents trust");
    const fields = `mcpServers:\n  x:\n    env:\n      NOTES: ${JSON.stringify(secret)}`;
    here.write("work/.holdfast/agents/a.md", `---\nname: a\n${fields}\n---\nText.`);
    here.write("work/.holdfast/agents/b.md", "---\nname: b\napiKey: plainly-a-value\n---\nText.");
    here.write(
      "work/.holdfast/agents/c.md",
      "---\nname: c\nsecrets: [API_KEY]\nx:\n  token: ${API_KEY}\n---\nText.",
    );
    here.write("home/.local/share/holdfast/secrets.json", JSON.stringify({ API_KEY: secret }));
    here.write("home/.local/share/holdfast/admin-token", `hf_adm_${"0123456789abcdef".repeat(4)}\n`);
    const env = { SERVICE_API_KEY: secret };
    const db = "--db sessions.db";
    for (const [id, input] of Object.entries({
      one: { note: secret },
      two: { password: "hunter2" },
      three: { n: 1 },
    })) {
      here.write("work/input.json", JSON.stringify(input));
      const add = `schedule add "0 3 * * *" --run nightly.ts --input @input.json --tz UTC --id ${id} ${db}`;
      expect(await here.holdfast(add)).toMatchObject({ code: 0 });
    }
    const { stdout, stderr } = await here.holdfast(`config export ${db}`, env);
    scan.search("the file", stdout);
    scan.search("the notes", stderr);
    expect(scan.found).toEqual([]);
    expect(stdout).not.toMatch(/hunter2|plainly-a-value|hf_adm_/);
    const leftOut = [...stderr.matchAll(/left out: (\S+)/g)].map(([, what = ""]) => what);
    expect(new Set(leftOut)).toEqual(
      new Set([
        "project/agents/a.md",
        "project/agents/b.md",
        "project/schedules/one",
        "project/schedules/two",
        "project/settings/db",
        "user/settings/trace",
      ]),
    );
    const { project } = JSON.parse(stdout);
    expect(Object.keys(project.agents), "a placeholder is no secret").toEqual(["c.md"]);
    expect(project.schedules).toMatchObject([{ id: "three" }]);
  });
});

/** A file with these parts, and nothing in the others. */
function fileWith(parts: {
  readonly user?: object;
  readonly project?: object;
  readonly permissions?: object;
  readonly [field: string]: unknown;
}): string {
  const { user, project, permissions, ...rest } = parts;
  return JSON.stringify({
    format: "holdfast-config",
    version: 1,
    user: { settings: {}, agents: {}, ...user },
    project: { settings: {}, agents: {}, schedules: [], code: {}, ...project },
    permissions: { ...permissions },
    ...rest,
  });
}

const start = { agent: "nightly", version: "1", file: "nightly.ts" };
const nightly = { id: "nightly", cron: "0 3 * * *", timeZone: "UTC", start };

describe("files that cannot be imported", () => {
  test.each([
    ["that is not JSON", "{", 3, "the file is not JSON"],
    ["of another program", '{"format": "else"}', 3, "no exported configuration"],
    ["that is null", "null", 3, "no exported configuration"],
    ["of a newer version", fileWith({ version: 2 }), 11, "has version 2"],
    ["of an older version", fileWith({ version: 0 }), 11, "has version 0"],
    ["with an unknown field", fileWith({ extra: 1 }), 3, "#/extra"],
    ["with an unknown setting", fileWith({ project: { settings: { dv: "x" } } }), 3, "#/project/settings/dv"],
    ["with a wrong policy", fileWith({ permissions: { runnerPolicy: { root: [] } } }), 3, "runnerPolicy"],
    ["with a path upward", fileWith({ project: { agents: { "../../up.md": "x" } } }), 3, "project/agents"],
    ["with an absolute path", fileWith({ user: { agents: { "/tmp/up.md": "x" } } }), 3, "user/agents"],
    ["with a hidden path", fileWith({ user: { agents: { ".ssh/up.md": "x" } } }), 3, "user/agents"],
    ["with a file that is no agent", fileWith({ user: { agents: { "up.sh": "x" } } }), 3, "user/agents"],
    [
      "with code outside of the project",
      fileWith({ project: { schedules: [{ ...nightly, start: { ...start, file: "../x.ts" } }] } }),
      3,
      "start/file",
    ],
    [
      "with an agent in another hidden folder",
      fileWith({ project: { schedules: [{ ...nightly, start: { ...start, file: ".ssh/x.md" } }] } }),
      3,
      "start/file",
    ],
    [
      "with an agent above its hidden folder",
      fileWith({
        project: { schedules: [{ ...nightly, start: { ...start, file: ".claude/agents/../x.md" } }] },
      }),
      3,
      "start/file",
    ],
    [
      "with a wrong cron line",
      fileWith({ project: { schedules: [{ ...nightly, cron: "61 * * * *" }] } }),
      3,
      "nightly",
    ],
    ["with a schedule twice", fileWith({ project: { schedules: [nightly, nightly] } }), 3, "is there twice"],
    ["that is too large", `"${"x".repeat(17 * 1024 * 1024)}"`, 3, "16777216"],
  ])("a file %s changes nothing", async (_what, text, exitCode, message) => {
    there.write("work/moved.json", text);
    const { code, stdout, stderr } = await there.holdfast("config import moved.json --yes");
    expect(stderr).toContain(message);
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: "" });
    expect(existsSync(there.path("work/.holdfast/config.json"))).toBe(false);
    expect(existsSync(there.path("home/.config"))).toBe(false);
  });

  test("nothing is written through a link, and nothing beside it either", async () => {
    mkdirSync(there.path("elsewhere"));
    symlinkSync(there.path("elsewhere"), there.path("work/.holdfast/agents"));
    const parts = { settings: { strictBounds: true }, agents: { "a.md": REVIEWER }, schedules: [nightly] };
    there.write("work/moved.json", fileWith({ project: parts }));
    const { code, stderr } = await there.holdfast("config import moved.json --yes");
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining("is a link") });
    expect(existsSync(there.path("elsewhere/a.md"))).toBe(false);
    expect(existsSync(there.path("work/.holdfast/config.json"))).toBe(false);
    expect((await there.holdfast("schedule list --json")).stdout.trim()).toBe("[]");
  });

  test("a schedule that cannot be stored leaves the settings as they were", async () => {
    there.write("work/other.ts", AGENT);
    const add = `schedule add "0 3 * * *" --run other.ts --tz UTC --id other`;
    expect(await there.holdfast(add)).toMatchObject({ code: 0 });
    const parts = { settings: { strictBounds: true }, schedules: [nightly] };
    there.write("work/moved.json", fileWith({ project: parts }));
    const { code, stderr } = await there.holdfast("config import moved.json --yes");
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("same name from another file"),
    });
    expect(existsSync(there.path("work/.holdfast/config.json"))).toBe(false);
  });

  test("a schedule that a coordinator refuses brings files and other schedules back", async () => {
    const fleet = await openFleet();
    try {
      there.write("work/nightly.ts", AGENT);
      there.write("work/.holdfast/config.json", '{"mode": "local"}');
      const asUser = async (name: string) => ({
        HOLDFAST_URL: fleet.url,
        HOLDFAST_TOKEN: await fleet.token("user", name),
      });
      const add = `schedule add "0 3 * * *" --run nightly.ts --tz UTC --id nightly`;
      expect(await there.holdfast(add, await asUser("ada"))).toMatchObject({ code: 0 });
      const schedules = [{ ...nightly, id: "early" }, nightly];
      const parts = {
        settings: { mode: "cloud", strictBounds: true },
        agents: { "a.md": REVIEWER },
        schedules,
      };
      there.write("work/moved.json", fileWith({ project: parts }));
      const env = await asUser("bob");
      const { code, stderr } = await there.holdfast("config import moved.json --yes", env);
      expect({ code, stderr }).toEqual({
        code: 6,
        stderr: expect.stringContaining("nightly cannot be stored"),
      });
      expect(there.read("work/.holdfast/config.json").trim()).toBe('{"mode": "local"}');
      expect(readdirSync(there.path("work/.holdfast/agents"))).toEqual([]);
      expect((await there.holdfast("schedule list --json", env)).stdout.trim()).toBe("[]");
    } finally {
      await fleet.close();
    }
  });

  test("a link among the agent files is left out of an export and named", async () => {
    here.write("work/.holdfast/agents/a.md", REVIEWER);
    symlinkSync("/etc/hostname", here.path("work/.holdfast/agents/b.md"));
    const { stdout, stderr } = await exported(here);
    expect(stderr).toContain("left out: project/agents/b.md");
    expect(Object.keys(JSON.parse(stdout).project.agents)).toEqual(["a.md"]);
  });

  test("an export replaces no file", async () => {
    here.write("work/moved.json", "mine");
    expect(await here.holdfast("config export -o moved.json")).toMatchObject({ code: 2 });
    expect(here.read("work/moved.json")).toBe("mine");
    rmSync(here.path("work/moved.json"));
    expect(await here.holdfast("config export -o moved.json")).toMatchObject({ code: 0 });
  });

  test.each([
    "get db --yes",
    "export --dry-run",
    "import x --origin",
    "import x --yes --dry-run",
    "export x",
  ])("config %s is refused", async (line) => {
    expect(await here.holdfast(`config ${line}`)).toMatchObject({ code: 2, stdout: "" });
  });
});
