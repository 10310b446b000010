// The tests of what the shell of a sandbox does as every shell does: `shellConformance`, a part of the suite
// that every sandbox passes.

import { expect, test } from "vitest";

import type { Execution } from "../workspace/execute.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** @param isHeld the sandbox keeps commands from changing `.git` */
export function shellConformance(isHeld: boolean, opened: () => Workspace): void {
  const run = (line: string): Promise<Execution> => opened().execute(line, { timeoutMs: 30_000 });

  // A shell that throws here would lose what the line has printed before.
  test("sandbox-backend-5: a file that cannot be opened fails its command, and the line goes on", async () => {
    await run("mkdir folder");
    // Without isolation no path is refused, and a folder is no file for any shell.
    for (const path of isHeld ? [".git/new", "folder"] : ["folder"])
      for (const write of [
        `echo z > ${path}`,
        `echo z >> ${path}`,
        `{ echo z; } 2> ${path}`,
        `echo z > kept.txt 2> ${path}`,
        `for i in 1; do echo z; done > ${path}`,
        `made() { echo z; }; made > ${path}`,
      ]) {
        const { end, stdout, stderr } = await run(`echo one; ${write}; echo "two $?"`);
        expect(end, write).toEqual({ type: "exit", exitCode: 0 });
        expect(stdout, write).toMatch(/^one\ntwo [12]\n$/);
        expect(stderr, write).toContain(path);
      }
  });

  test("sandbox-backend-5: the streams of a command go into the files that it names", async () => {
    const both = "{ echo out; echo problem >&2; }";
    const { stdout, stderr } = await run(
      `${both} > o 2> e; cat o e; ${both} >> o 2>&1; cat o; echo new >| o; cat o; ${both} 2>&1 > o`,
    );
    expect(stdout).toBe("out\nproblem\nout\nout\nproblem\nnew\nproblem\n");
    expect(stderr).toBe("");
  });

  test("sandbox-backend-6: programs of given folders are found behind all others", async () => {
    const folder = "of the agent/bin";
    for (const name of ["greet-us", "echo", "cat"])
      await opened().writeFile(`${folder}/${name}`, '#!/bin/sh\necho "hello $1 from $0"\n');
    await run(`chmod +x '${folder}/'*`);
    const { stdout } = await opened().execute("greet-us you | cat; command -v cat", {
      pathFolders: [folder],
    });
    expect(stdout).toMatch(/^hello you from .*greet-us\n(?!.*of the agent)/);
    expect((await run("greet-us")).end).toEqual({ type: "exit", exitCode: 127 });
  });
}
