// Agents are found by their names and paths, those of a project only when the user trusts it.

import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentPlaces } from "../places/agent-places.ts";
import { findAgent, listAgents } from "./find-agent.ts";
import { readInstructions } from "./instructions.ts";
import { trustFolder } from "./trust-project.ts";
import { distrustFolder } from "../trust/trusted-folders.ts";

let folder: string;
let places: AgentPlaces;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-find-agent-")));
  const [project, home] = [join(folder, "project"), join(folder, "home")];
  mkdirSync(project);
  mkdirSync(home);
  places = { project, home, env: {}, trustFile: join(home, ".local", "trusted-folders.json") };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, fields = ""): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  const name = /([^/]+?)(\.agent)?\.md$/.exec(path)?.[1] ?? "";
  writeFileSync(file, `---\nname: ${name}\ndescription: d\n${fields}---\nDo it.\n`);
  return file;
}

const statuses = (): string[] =>
  listAgents(places).map(({ name, scope, status }) => `${scope} ${name} ${status}`);

describe("trust", () => {
  test("a project's files are listed and not loaded until the user trusts its folder", () => {
    write("project/.claude/agents/reviewer.md");
    expect(statuses()).toEqual(["project reviewer untrusted"]);
    expect(() => findAgent("reviewer", places)).toThrow(expect.objectContaining({ code: "policy_denied" }));
    trustFolder(places.trustFile, places.project);
    expect(findAgent("reviewer", places)).toMatchObject({ name: "reviewer", source: { scope: "project" } });
    distrustFolder(places.trustFile, places.project);
    expect(statuses()).toEqual(["project reviewer untrusted"]);
  });

  test("trust is of the folder that a path leads to, and not of what is below it or linked from it", () => {
    write("project/.claude/agents/reviewer.md");
    symlinkSync(places.project, join(folder, "alias"));
    trustFolder(places.trustFile, join(folder, "alias"));
    expect(statuses()).toEqual(["project reviewer loaded"]);
    const below = { ...places, project: join(places.project, "below") };
    write("project/below/.claude/agents/other.md");
    expect(listAgents(below).map(({ status }) => status)).toEqual(["untrusted"]);
  });

  test("files in the user's folders are loaded, and a path names a file of any folder", () => {
    write("home/.claude/agents/mine.md");
    const path = write("project/.claude/agents/reviewer.md");
    expect(findAgent("mine", places).source.scope).toBe("user");
    expect(findAgent(path, places).source).toMatchObject({ scope: "path", dialect: "claude" });
    expect(findAgent("./.claude/agents/reviewer.md", places).name).toBe("reviewer");
  });

  test("a damaged file of trusted folders is an error, and never trust", () => {
    mkdirSync(dirname(places.trustFile), { recursive: true });
    for (const text of ["{", "[]", '{"folders": "/"}']) {
      writeFileSync(places.trustFile, text, { mode: 0o600 });
      expect(() => listAgents(places)).toThrow(expect.objectContaining({ code: "config_invalid" }));
    }
  });
});

describe("names", () => {
  beforeEach(() => void trustFolder(places.trustFile, places.project));

  test("an agent of the project is found before the user's agent of that name", () => {
    write("home/.claude/agents/reviewer.md");
    write("project/.holdfast/agents/reviewer.md");
    expect(statuses()).toEqual(["project reviewer loaded", "user reviewer hidden"]);
    expect(findAgent("reviewer", places).source.dialect).toBe("holdfast");
  });

  test("files of several tools with one name: ours first, and each one by the name of its tool", () => {
    write("project/.claude/agents/reviewer.md");
    write("project/.opencode/agents/reviewer.md");
    expect(statuses()).toEqual(["project reviewer loaded", "project reviewer hidden"]);
    const dialectOf = (name: string): string => findAgent(name, places).source.dialect;
    expect(["reviewer", "claude:reviewer", "opencode:reviewer"].map(dialectOf)).toEqual([
      "claude",
      "claude",
      "opencode",
    ]);
    write("project/.holdfast/agents/reviewer.md");
    expect(["reviewer", "claude:reviewer"].map(dialectOf)).toEqual(["holdfast", "claude"]);
    expect(() => findAgent("codex:reviewer", places)).toThrow(
      expect.objectContaining({ code: "agent_not_found" }),
    );
  });

  test("two files of one tool with one name are an error that names both, and other agents are not affected", () => {
    const paths = [
      write("project/.opencode/agents/reviewer.md"),
      write("project/.opencode/agents/old/reviewer.md"),
    ].toSorted();
    write("project/.github/agents/planner.agent.md");
    write("project/.github/agents/reviewer.agent.md");
    write("home/.holdfast/agents/reviewer.md");
    for (const name of ["reviewer", "opencode:reviewer"])
      expect(() => findAgent(name, places)).toThrow(
        expect.objectContaining({ code: "agent_invalid", message: "2 files have the agent reviewer" }),
      );
    for (const name of ["planner", "copilot:reviewer"])
      expect(findAgent(name, places).source.dialect).toBe("copilot");
    expect(findAgent(paths[1]!, places).source.dialect).toBe("opencode");
  });

  test("a file that is refused takes the name of no other", () => {
    write("project/.claude/agents/reviewer.md");
    const broken = "---\nname: reviewer\ndescription: x\npermissionMode: bypassPermissions\n---\nx\n";
    for (const path of [".holdfast/agents/reviewer.md", ".claude/agents/old/reviewer.md"])
      writeFileSync(write(`project/${path}`), broken);
    expect(findAgent("reviewer", places).source.dialect).toBe("claude");
    expect(statuses().toSorted()).toEqual([
      "project reviewer loaded",
      "project reviewer refused",
      "project reviewer refused",
    ]);
  });

  test("one broken file never breaks the list", () => {
    write("project/.holdfast/agents/good.md");
    writeFileSync(join(places.project, ".holdfast/agents/broken.md"), "---\n: [\n---\n");
    mkdirSync(join(places.project, ".holdfast/agents/folder.md"));
    symlinkSync("nowhere", join(places.project, ".holdfast/agents/lost.md"));
    expect(statuses()).toEqual(["project broken refused", "project good loaded", "project lost refused"]);
    expect(() => findAgent("broken", places)).toThrow(expect.objectContaining({ code: "agent_invalid" }));
  });

  test("an unknown name is an error with a suggestion", () => {
    write("project/.holdfast/agents/reviewer.md");
    expect(() => findAgent("reviewr", places)).toThrow(
      expect.objectContaining({
        code: "agent_not_found",
        message: expect.stringContaining("did you mean reviewer?"),
      }),
    );
    expect(() => findAgent("./none.md", places)).toThrow(expect.objectContaining({ code: "file_not_found" }));
  });

  test("a file of another user is refused with a cure that helps there", (t) => {
    if (process.getuid?.() !== 0) return t.skip("only root may give a file away");
    const file = write("home/.claude/agents/theirs.md");
    chownSync(file, 12_345, 12_345);
    expect(listAgents(places)[0]?.problem).toMatchObject({
      message: expect.stringContaining("another user owns it"),
      fix: expect.stringContaining("make a copy"),
    });
    chownSync(file, 0, 0);
    chmodSync(file, 0o666);
    expect(listAgents(places)[0]?.problem).toMatchObject({
      message: expect.stringContaining("other users may write it"),
      fix: expect.stringContaining("chmod go-w"),
    });
  });

  test("a link that leads out of the project is refused", () => {
    const outside = write("outside.md");
    mkdirSync(join(places.project, ".holdfast/agents"), { recursive: true });
    symlinkSync(outside, join(places.project, ".holdfast/agents/outside.md"));
    const [listed] = listAgents(places);
    expect(listed).toMatchObject({
      status: "refused",
      problem: { message: expect.stringContaining("leads out") },
    });
  });

  test.each(["agent.system-prompt.md", "agent.mcp.json", ".disabled"])(
    "a link that leads out of the project is refused in an agent's folder: %s",
    (name) => {
      const inProject = join(places.project, "agents/helper");
      mkdirSync(inProject, { recursive: true });
      writeFileSync(join(inProject, "agent.json"), '{ "name": "helper", "description": "Helps." }');
      writeFileSync(join(inProject, "agent.system-prompt.md"), "You help.");
      expect(listAgents(places)).toMatchObject([{ status: "unapproved" }]);
      trustFolder(places.trustFile, places.project);
      expect(listAgents(places)).toMatchObject([{ status: "loaded" }]);
      rmSync(join(inProject, name), { force: true });
      symlinkSync(write("outside.md"), join(inProject, name));
      expect(listAgents(places)).toMatchObject([
        { status: "refused", problem: { message: expect.stringContaining("leads out") } },
      ]);
    },
  );

  test("a folder agent is not used once a capability of it starts another server", () => {
    const agent = join(places.project, "agents/helper");
    const capability = join(places.project, "capabilities/notes");
    for (const made of [agent, capability]) mkdirSync(made, { recursive: true });
    writeFileSync(
      join(agent, "agent.json"),
      '{ "name": "helper", "description": "Helps.", "capabilities": ["notes"] }',
    );
    writeFileSync(join(agent, "agent.system-prompt.md"), "You help.");
    writeFileSync(join(capability, "capability.json"), '{ "name": "notes" }');
    const servers = (command: string): void =>
      writeFileSync(
        join(capability, "capability.mcp.json"),
        JSON.stringify({ mcpServers: { notes: { command } } }),
      );
    servers("notes-server");
    trustFolder(places.trustFile, places.project);
    expect(listAgents(places)).toMatchObject([{ status: "loaded" }]);
    servers("other-server");
    expect(listAgents(places)).toMatchObject([{ status: "unapproved" }]);
    trustFolder(places.trustFile, places.project);
    expect(listAgents(places)).toMatchObject([{ status: "loaded" }]);
  });

  describe("an agent file with other rights than its user has trusted is not used", () => {
    const NONE = "";
    test.each([
      ["a hook", NONE, 'holdfast: { hooks: { on_run_start: { command: "true" } } }\n'],
      ["a program as a server", NONE, "mcpServers: [{ x: { command: sh } }]\n"],
      ["a server of the machine", NONE, "mcpServers: [known]\n"],
      ["a rule that allows", NONE, "holdfast: { approvals: { allow: [Bash] } }\n"],
      ["fewer rules that deny", "holdfast: { approvals: { deny: [Bash] } }\n", NONE],
      ["a mode", NONE, "permissionMode: acceptEdits\n"],
      ["an effect", NONE, "holdfast: { effects: { shell: read } }\n"],
      ["another sandbox", "holdfast: { sandbox: bubblewrap }\n", "holdfast: { sandbox: filesystem }\n"],
      ["the project's folder", "isolation: worktree\n", NONE],
      ["a secret", NONE, "holdfast: { secrets: [API_KEY] }\n"],
      ["an environment", NONE, "holdfast: { environment: work, variables: [A] }\n"],
    ])("%s is asked for again", (_what, before, after) => {
      const path = "project/.claude/agents/a.md";
      write(path, before);
      trustFolder(places.trustFile, places.project);
      expect(listAgents(places)).toMatchObject([{ status: "loaded" }]);
      write(path, after);
      expect(listAgents(places)).toMatchObject([{ status: "unapproved", record: null }]);
      expect(() => findAgent("a", places)).toThrow(expect.objectContaining({ code: "policy_denied" }));
      trustFolder(places.trustFile, places.project);
      expect(listAgents(places)).toMatchObject([{ status: "loaded" }]);
    });

    test("a new file with rights waits, and a new file or a new prompt without does not", () => {
      trustFolder(places.trustFile, places.project);
      write("project/.holdfast/agents/plain.md", "tools: Read, Bash\n");
      write(
        "project/.holdfast/agents/pwn.md",
        'holdfast: { hooks: { on_run_start: { command: "true" } } }\n',
      );
      const now = () => listAgents(places).map(({ status }) => status);
      expect(now()).toEqual(["loaded", "unapproved"]);
      write("project/.holdfast/agents/plain.md", "tools: Read\nmodel: opus\n");
      expect(now()).toEqual(["loaded", "unapproved"]);
    });

    test("another repository at the same path gets no right of the first", () => {
      write("project/.holdfast/agents/a.md", "holdfast: { approvals: { allow: [Read] } }\n");
      trustFolder(places.trustFile, places.project);
      rmSync(places.project, { recursive: true });
      write("project/.holdfast/agents/a.md", "holdfast: { approvals: { allow: [Bash] } }\n");
      expect(listAgents(places)).toMatchObject([{ status: "unapproved" }]);
    });

    test.each([
      [
        "the program of a hook",
        'holdfast: { hooks: { on_run_start: { command: "sh guard.sh" } } }\n',
        "guard.sh",
      ],
      [
        "what a server's program imports",
        "mcpServers: [{ x: { command: node, args: [server.ts] } }]\n",
        "lib.ts",
      ],
    ])("%s is trusted with its content", (_what, fields, changed) => {
      write("project/.holdfast/agents/a.md", fields);
      write("project/guard.sh");
      writeFileSync(join(places.project, "server.ts"), 'import "./lib.js";');
      write("project/lib.ts");
      trustFolder(places.trustFile, places.project);
      expect(listAgents(places)).toMatchObject([{ status: "loaded" }]);
      write(`project/${changed}`, "changed: true\n");
      expect(listAgents(places)).toMatchObject([{ status: "unapproved" }]);
    });
  });

  test("agents that start each other without end are refused, and a name of no file is reported", () => {
    write("project/.holdfast/agents/a.md", "holdfast: { agents: [b] }\n");
    write("project/.holdfast/agents/b.md", "holdfast: { agents: [c] }\n");
    write("project/.holdfast/agents/c.md", "holdfast: { agents: [a, nobody] }\n");
    write("project/.holdfast/agents/d.md", "holdfast: { agents: [nobody] }\n");
    expect(statuses()).toEqual([
      "project a refused",
      "project b refused",
      "project c refused",
      "project d loaded",
    ]);
    const [first, , , last] = listAgents(places);
    expect(first?.verdicts.at(-1)?.text).toBe("agents start each other without end: a → b → c → a");
    expect(last?.verdicts.at(-1)).toMatchObject({
      verdict: "ignored",
      text: expect.stringContaining("nobody"),
    });
  });

  test("files in folders below are found at any depth, and those of installed packages are not", () => {
    write("project/.claude/agents/1/2/3/4/5/6/7/deep.md");
    write("project/.claude/agents/node_modules/package/foreign.md");
    trustFolder(places.trustFile, places.project);
    expect(statuses()).toEqual(["project deep loaded"]);
  });

  test("a thousand agents that start each other in layers are listed in a time that grows with their files", () => {
    const next = (at: number): string =>
      Array.from({ length: 12 }, (_, step) => `a${Math.min(at + step + 1, 999)}`)
        .filter((name) => name !== `a${at}`)
        .join(", ");
    for (let at = 0; at < 1_000; at++)
      write(`home/.holdfast/agents/a${at}.md`, `holdfast: { agents: [${next(at)}] }\n`);
    const before = process.cpuUsage();
    expect(new Set(statuses().map((line) => line.split(" ")[2]))).toEqual(new Set(["loaded"]));
    // 0.4 s, and 23 s with a list in the place of the index and a search from each agent.
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(6_000);
  });

  test("the home folder as a project has its files once, as the user's", () => {
    write("home/.holdfast/agents/mine.md");
    places = { ...places, project: places.home! };
    expect(statuses()).toEqual(["user mine loaded"]);
  });
});

describe("AGENTS.md", () => {
  function instruct(path: string, text: string): string {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  test("the files from the repository's root to the folder hold, the nearest last", () => {
    mkdirSync(join(places.project, ".git"));
    writeFileSync(join(places.project, ".git", "HEAD"), "ref: refs/heads/main\n");
    instruct("AGENTS.md", "outside");
    const files = [
      instruct("project/AGENTS.md", "use tabs\n"),
      instruct("project/web/AGENTS.md", "use spaces\n"),
    ];
    mkdirSync(join(places.project, "web/src"));
    const read = readInstructions(join(places.project, "web/src"));
    expect(read.files).toEqual(files);
    expect(read.text).toBe(
      "Instructions of AGENTS.md:\n\nuse tabs\n\nInstructions of web/AGENTS.md:\n\nuse spaces",
    );
    expect(readInstructions(places.project).files).toEqual([files[0]]);
  });

  test("the furthest file is left out when the text would be too long, and a link out of the root is not read", () => {
    mkdirSync(join(places.project, ".git"));
    writeFileSync(join(places.project, ".git", "HEAD"), "ref: refs/heads/main\n");
    const far = instruct("project/AGENTS.md", "x".repeat(60_000));
    const near = instruct("project/web/AGENTS.md", "y".repeat(30_000));
    const read = readInstructions(join(places.project, "web"));
    expect([read.files, read.leftOut.map(({ path }) => path)]).toEqual([[near], [far]]);
    rmSync(far);
    symlinkSync(instruct("secret.md", "secret"), far);
    expect(readInstructions(places.project)).toMatchObject({ text: "", leftOut: [{ path: far }] });
    expect(readInstructions(join(folder, "home"))).toEqual({ text: "", files: [], leftOut: [] });
  });
});
