// Scripts below their command: what a push refuses, how a wrapper answers, and how a script that misbehaves
// ends.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import type { AgentPlaces } from "../places/agent-places.ts";
import { Sandboxes } from "@holdfast/workspace";
import { scriptProject } from "../testing/script-project.ts";
import { findScripts, pushScript, rollbackScript, type Script } from "./find-scripts.ts";
import { checkCall, runScript } from "./run-script.ts";
import { writeScript } from "./script-files.ts";

const project = scriptProject();
const { write, writeFolder, find, push, call } = project;
let folder: string;
let places: AgentPlaces;
beforeEach(() => void ({ folder, places } = project));

test("X6: a damaged content is no version that runs, and a push keeps it again", () => {
  writeFolder({}, "good");
  const { content } = push("good");
  writeFileSync(join(folder, "data/scripts", content.hash, "main.sh"), "evil");
  expect(find("good")).toMatchObject({ status: "unpushed", problem: expect.stringContaining("damaged") });
  push("good");
  expect(find("good").status).toBe("loaded");
});

test("X6: a call runs the approved bytes, although an agent has changed the files in its workspace", async () => {
  writeFolder({}, "good", "echo approved");
  expect((await call("good")).stdout).toBe("approved\n");
  const { content } = push("good");
  const version = join(places.project, ".agent-orchestrator/scripts/good", content.hash.slice(0, 12));
  for (const [path, text] of [
    [join(version, "main.sh"), "echo evil"],
    [`${version}.sh`, "#!/bin/sh\necho evil"],
  ] as const) {
    chmodSync(path, 0o755);
    writeFileSync(path, text);
    expect((await call("good")).stdout).toBe("approved\n");
  }
  // The folder of the project has another content, which nobody has pushed.
  write("work/.holdfast/scripts/good/main.sh", "echo evil\n");
  const workspace = await new Sandboxes().open(places.project);
  const manifest = find("good").manifest as NonNullable<Script["manifest"]>;
  const ran = await runScript(workspace, manifest, content, checkCall(manifest, {}));
  await workspace.dispose();
  expect(ran.stdout).toBe("approved\n");
});

test("X6: a script runs from a folder with exactly its files, although an agent has put others beside them", async () => {
  writeFolder({}, "good", 'cd "$SCRIPT_DIR"; ls -A . ../ ../..; cat lib/own.txt');
  write("work/.holdfast/scripts/good/lib/own.txt", "approved");
  const { content } = push("good");
  const version = content.hash.slice(0, 12);
  const at = `.agent-orchestrator/scripts`;
  const elsewhere = join(folder, "elsewhere");
  write("elsewhere/kept.txt", "kept");
  for (const path of [
    `${at}/good/${version}/json.py`,
    `${at}/good/${version}/lib/json.pyc`,
    `${at}/good/${version}/node_modules/a/b/index.js`,
    `${at}/good/${version}/main.sh/in-the-way.txt`,
    `${at}/good/node_modules/a/index.js`,
    `${at}/node_modules/a/index.js`,
    `${at}/deno.json`,
  ])
    write(`work/${path}`, "evil");
  symlinkSync(elsewhere, join(places.project, at, "good", version, "linked"));
  symlinkSync(join(elsewhere, "kept.txt"), join(places.project, at, "package.json"));
  for (const sandbox of ["filesystem", "virtual"]) {
    const { stdout } = await call("good", {}, sandbox);
    expect(
      stdout
        .split(/[\n\s]+/)
        .filter((line) => line !== "" && !line.endsWith(":"))
        .toSorted(),
      sandbox,
    ).toEqual(
      [
        ".gitignore",
        "approved",
        "good",
        "lib",
        "main.sh",
        "package.json",
        "script.json",
        version,
        `${version}.sh`,
      ].toSorted(),
    );
  }
  expect(readdirSync(elsewhere)).toEqual(["kept.txt"]);
  expect(readFileSync(join(elsewhere, "kept.txt"), "utf8")).toBe("kept");
});

test(
  "a script of the project hides one of the user, and versions of two projects are apart",
  ofCampaign,
  () => {
    writeFolder({}, "good");
    const { content } = push("good");
    write(
      "home/.holdfast/scripts/good/script.json",
      JSON.stringify({ name: "good", description: "d", script_file: "a.sh" }),
    );
    write("home/.holdfast/scripts/good/a.sh", "");
    expect(findScripts(places).map(({ scope, status }) => [scope, status])).toEqual([
      ["project", "loaded"],
      ["user", "hidden"],
    ]);
    mkdirSync(join(folder, "other/.holdfast"), { recursive: true });
    symlinkSync(join(folder, "work/.holdfast/scripts"), join(folder, "other/.holdfast/scripts"));
    const [other] = findScripts({ ...places, project: join(folder, "other"), home: undefined });
    expect(other).toMatchObject({
      status: "refused",
      current: null,
      problem: expect.stringContaining("leads out"),
    });
    rollbackScript(find("good"), content.hash, places);
    expect(find("good").current).toBe(content.hash);
  },
);

async function writeInto(name: string): Promise<string> {
  const { content, manifest } = push(name);
  const workspace = await new Sandboxes().open(places.project);
  try {
    return await writeScript(workspace, manifest, content);
  } finally {
    await workspace.dispose();
  }
}

test("a link at the place where scripts are written is refused, and nothing is written through it", async () => {
  writeFolder({}, "good");
  const elsewhere = join(folder, "elsewhere");
  for (const path of [elsewhere, join(places.project, ".agent-orchestrator")]) mkdirSync(path);
  symlinkSync(elsewhere, join(places.project, ".agent-orchestrator/scripts"));
  await expect(writeInto("good")).rejects.toMatchObject({ code: "policy_denied" });
  expect(readdirSync(elsewhere)).toEqual([]);
});

test("a script with setuid that all may write is kept and written without either", async () => {
  writeFolder({}, "good");
  chmodSync(join(places.project, ".holdfast/scripts/good/main.sh"), 0o4777);
  await writeInto("good");
  const written = ["data/scripts", "work/.agent-orchestrator"].flatMap((below) =>
    readdirSync(join(folder, below), { recursive: true, encoding: "utf8" })
      .map((path) => statSync(join(folder, below, path)))
      .filter((stats) => stats.isFile()),
  );
  expect(written.length).toBeGreaterThan(4);
  expect(written.filter(({ mode }) => (mode & 0o7022) !== 0)).toEqual([]);
});

describe("a push is refused, and makes no version", () => {
  const MANY = { properties: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`p${at}`, {}])) };
  const bad = (path: string): string => join(folder, "work/.holdfast/scripts/bad", path);

  test.each<readonly [string, () => void, readonly string[]]>([
    [
      "a manifest that is not JSON",
      () => write("work/.holdfast/scripts/bad/script.json", "{"),
      ["script.json is not JSON"],
    ],
    ["no manifest", () => write("work/.holdfast/scripts/bad/x.sh", ""), ["it has no script.json"]],
    ["an unknown field", () => writeFolder({ timeOut: "1s" }), ["/timeOut", "did you mean timeout"]],
    ["another name than its folder", () => writeFolder({ name: "good" }), ["/name", "bad"]],
    ["a name that is no name", () => writeFolder({}, "Bad_Name"), ["is no name of a script"]],
    [
      "a file outside of the folder",
      () => writeFolder({ script_file: "../good/main.sh" }),
      ['no file "../good/main.sh"'],
    ],
    ["a file at an absolute path", () => writeFolder({ script_file: "/bin/sh" }), ["/script_file"]],
    ["an empty script_file", () => writeFolder({ script_file: "" }), ["/script_file"]],
    ["a schema that is none", () => writeFolder({ parameters_schema: { type: 7 } }), ["no JSON Schema"]],
    [
      "parameters that are a list",
      () => writeFolder({ parameters_schema: { type: "array" } }),
      ["/parameters_schema/type"],
    ],
    [
      "a parameter that is no flag",
      () => writeFolder({ parameters_schema: { properties: { "a b": {} } } }),
      ["/parameters_schema/properties/a b"],
    ],
    [
      "a required parameter that is not there",
      () => writeFolder({ parameters_schema: { required: ["x"] } }),
      ['no parameter "x"'],
    ],
    [
      "parameters without a limit",
      () => writeFolder({ parameters_schema: { additionalProperties: true } }),
      ["/parameters_schema/additionalProperties"],
    ],
    ["too many parameters", () => writeFolder({ parameters_schema: MANY }), ["50 is the limit"]],
    ["demands that are a list", () => writeFolder({ demands: ["gpu"] }), ["/demands"]],
    ["an unknown demand", () => writeFolder({ demands: { gpu: true } }), ["/demands", "gpu"]],
    ["an empty tag", () => writeFolder({ demands: { tags: [""] } }), ["/demands/tags/0"]],
    ["an unknown effect", () => writeFolder({ effect: "maybe" }), ["/effect"]],
    ["a time limit of nothing", () => writeFolder({ timeout: "0s" }), ["/timeout"]],
    ["a time limit of days", () => writeFolder({ timeout: "2d" }), ["/timeout", "1h"]],
    [
      "no known program",
      () => (writeFolder({ script_file: "a.rb" }), write("work/.holdfast/scripts/bad/a.rb", "")),
      ["interpreter"],
    ],
    [
      "a link in the folder",
      () => (writeFolder({}), symlinkSync("/etc/passwd", bad("link"))),
      ["link is a link"],
    ],
    [
      "a hard link in the folder",
      () => (writeFolder({}), write("out", "x"), linkSync(join(folder, "out"), bad("data"))),
      ["data is a hard link"],
    ],
    [
      "a folder that leads out of the project",
      () => (
        write("out/x", ""),
        mkdirSync(join(folder, "work/.holdfast/scripts"), { recursive: true }),
        symlinkSync(join(folder, "out"), bad("").replace(/\/$/, ""))
      ),
      ["leads out of the project"],
    ],
    [
      "two files that are one on other systems",
      () => (writeFolder({}), write("work/.holdfast/scripts/bad/MAIN.sh", "")),
      ["are one file on other systems"],
    ],
  ])("%s", (_name, make, says) => {
    make();
    const [script] = findScripts(places);
    if (script === undefined) throw new Error("no script");
    expect(script).toMatchObject({ status: "refused", current: null });
    for (const text of says) {
      expect(script.problem).toContain(text);
      expect(() => pushScript(script, places, 0)).toThrow(text);
    }
    expect(findScripts(places)[0]?.versions).toEqual([]);
  });
});

describe("the wrapper", () => {
  const parameters_schema = {
    properties: {
      channel: { enum: ["slack", "it's"], description: "Where to" },
      times: { type: "integer" },
      ratio: { type: "number" },
      loud: { type: "boolean" },
      tags: { type: "array", items: { type: "string" } },
    },
    required: ["channel"],
  };
  const shell = (line: string) => {
    const PATH = `${process.env["PATH"]}:${join(places.project, ".agent-orchestrator/bin")}`;
    const { status, stdout, stderr } = spawnSync("sh", ["-c", line], {
      cwd: folder,
      env: { PATH },
      encoding: "utf8",
    });
    return { code: status, stdout, stderr };
  };
  beforeEach(async () => {
    writeFolder({ parameters_schema }, "notify", 'printf "%s|" "$@"');
    const { content, manifest } = push("notify");
    const workspace = await new Sandboxes().open(places.project);
    await writeScript(workspace, manifest, content);
    await workspace.dispose();
  });

  test.each<readonly [string, string]>(
    sampled([
      ["", "--channel is missing"],
      ["--chanel slack", "there is no parameter --chanel"],
      ["slack", '"slack" is no parameter'],
      ["--channel", "--channel has no value"],
      ["--channel mail", '--channel is "mail", and it is one of slack, it\'s'],
      ["--channel slack --channel slack", "--channel stands twice"],
      ["--channel slack --times 1.5", "--times is 1.5, and it is a whole number"],
      ["--channel slack --ratio x", '--ratio is "x", and it is a number'],
      ["--channel slack --tags ''", '--tags is "", and it is JSON'],
      ["--channel slack --loud=maybe", "--loud is a switch and has no value"],
    ]),
  )("answers `notify %s` with code 2 and a right call", (args, says) => {
    for (const check of ["", "--check"]) {
      const answer = shell(`notify ${check} ${args}`);
      expect(answer).toMatchObject({ code: 2, stdout: "" });
      expect(answer.stderr).toContain(`notify: ${says}`);
      expect(answer.stderr).toContain("a right call: notify --channel slack");
    }
  });

  test("right calls reach the script in one form, in the folder of the call, and --check runs nothing", () => {
    expect(shell(`notify --channel="it's" --times=2 --loud`).stdout).toBe("--channel|it's|--times|2|--loud|");
    expect(shell("notify --channel slack --loud=false --tags '[\"a b\"]'").stdout).toBe(
      `--channel|slack|--tags|["a b"]|`,
    );
    expect(shell("notify --check --channel slack")).toMatchObject({ code: 0, stdout: "" });
    expect(shell("notify --help").stdout).toContain("--tags <JSON>");
  });

  test("the tool gives the same flags, and no text is read by a shell", ofCampaign, async () => {
    const tags = ["$(touch pwned)", "`touch pwned`; touch pwned 'x"];
    const { stdout } = await call("notify", { channel: "it's", times: 2, loud: true, tags });
    expect(stdout).toBe(`--channel|it's|--times|2|--loud|--tags|${JSON.stringify(tags)}|`);
    expect(existsSync(join(places.project, "pwned"))).toBe(false);
  });

  test("the tool checks the whole schema before anything starts", () => {
    const { manifest } = push("notify");
    const wrong = [7, [], {}, { channel: 7 }, { channel: "slack", tags: [7] }, { channel: "slack", x: 1 }];
    for (const args of wrong) expect(() => checkCall(manifest, args)).toThrow(/not right[^]*a right call/);
    expect(() => checkCall(manifest, { channel: "slack", tags: ["x".repeat(200_000)] })).toThrow(
      "--tags is longer",
    );
  });
});

describe("running", () => {
  test("a script ends at its time limit with everything that it started", async () => {
    writeFolder({ timeout: "300ms" }, "hang", "sleep 1000 & echo started; wait");
    const { end, stdout, isTreeGone } = await call("hang");
    expect({ end, stdout, isTreeGone }).toEqual({
      end: { type: "timeout", timeoutMs: 300 },
      stdout: "started\n",
      isTreeGone: true,
    });
  });

  test("a script that prints 100 MB is cut with a mark, and its errors stay", ofCampaign, async () => {
    writeFolder(
      { output_bytes: 2048 },
      "flood",
      "head -c 100000000 /dev/zero | tr '\\0' x; echo the end >&2",
    );
    const { end, stdout, stderr, isCut } = await call("flood");
    expect({ end, isCut }).toEqual({ end: { type: "exit", exitCode: 0 }, isCut: true });
    expect(stdout.length).toBeLessThan(4096);
    expect(stderr).toBe("the end\n");
  });

  test("a script that leaves a process behind ends with it", async () => {
    writeFolder({}, "leave", "sleep 1000 & echo left");
    expect(await call("leave")).toMatchObject({ stdout: "left\n", isTreeGone: true });
  });

  test(
    "a script that dies by a signal says so, and one whose program is missing ends with 127",
    ofCampaign,
    async () => {
      writeFolder({}, "die", "kill -9 $$");
      expect((await call("die")).end).toMatchObject({ type: "exit", exitCode: 137 });
      writeFolder({ interpreter: ["no-such-program-7"] }, "odd");
      const { end, stderr } = await call("odd");
      expect(end).toEqual({ type: "exit", exitCode: 127 });
      expect(stderr).toBe("odd: this script needs no-such-program-7, which is not here\n");
    },
  );

  test("a script runs in the virtual sandbox as it does on the machine", async () => {
    writeFolder({}, "where", 'pwd; cat "$SCRIPT_DIR/data.txt"; exit 7');
    write("work/.holdfast/scripts/where/data.txt", "beside");
    for (const sandbox of ["filesystem", "virtual"])
      expect(await call("where", {}, sandbox), sandbox).toMatchObject({
        end: { type: "exit", exitCode: 7 },
        stdout: `${places.project}\nbeside`,
      });
  });
});
