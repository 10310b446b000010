// `scriptProject`: a project with scripts for each test of a file, with calls of them in a sandbox.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Sandboxes, type Execution, type Workspace } from "@holdfast/workspace";
import { afterEach, beforeEach } from "vitest";

import type { AgentPlaces } from "../places/agent-places.ts";
import { contentOfVersion, findScripts, pushScript, type Script } from "../scripts/find-scripts.ts";
import { checkCall, runScript } from "../scripts/run-script.ts";

/** Call it at the top of a file. `folder` and `places` are there in a test. */
export function scriptProject() {
  let folder = "";
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-scripts-")));
    mkdirSync(join(folder, "work"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const placesOf = (): AgentPlaces => ({
    project: join(folder, "work"),
    home: join(folder, "home"),
    env: {},
    trustFile: join(folder, "data/trusted-folders.json"),
    trustsProject: true,
  });
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const find = (name: string): Script => {
    const found = findScripts(placesOf()).find((script) => script.name === name);
    if (found === undefined) throw new Error(`no script ${name}`);
    return found;
  };
  const push = (name: string) => {
    const content = contentOfVersion(pushScript(find(name), placesOf(), 0), placesOf());
    const { manifest } = find(name);
    if (content === undefined || manifest === null) throw new Error("not pushed");
    return { content, manifest };
  };
  const inSandbox = async <Result>(
    sandbox: string,
    use: (workspace: Workspace) => Promise<Result>,
  ): Promise<Result> => {
    const sandboxes = new Sandboxes();
    const workspace = await sandboxes.open(
      sandboxes.addressOf(sandbox, { session: "s", root: placesOf().project }),
    );
    try {
      return await use(workspace);
    } finally {
      await workspace.dispose();
    }
  };
  return {
    get folder(): string {
      return folder;
    },
    get places(): AgentPlaces {
      return placesOf();
    },
    write,
    /** Writes the folder of a script with these fields of its manifest. */
    writeFolder: (fields: object, name = "bad", code = ""): void => {
      const manifest = { name, description: "Does it.", script_file: "main.sh", ...fields };
      write(`work/.holdfast/scripts/${name}/script.json`, JSON.stringify(manifest));
      write(`work/.holdfast/scripts/${name}/main.sh`, `${code}\n`);
    },
    find,
    /** Pushes the script, and returns what runs. */
    push,
    inSandbox,
    call: async (name: string, args: object = {}, sandbox = "filesystem"): Promise<Execution> => {
      const { content, manifest } = push(name);
      return inSandbox(sandbox, (workspace) =>
        runScript(workspace, manifest, content, checkCall(manifest, args)),
      );
    },
  };
}
