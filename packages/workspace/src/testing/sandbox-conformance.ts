// The suite that every sandbox passes: `sandboxConformance`. Its clauses are those of the port
// `SandboxBackend`.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { GRANTING_FILES, GRANTING_FOLDERS } from "../granting-places.ts";
import type { SandboxBackend, SandboxPlace } from "../sandboxes/sandbox-backend.ts";
import type { Execution } from "../workspace/execute.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface SandboxSubject {
  readonly backend: SandboxBackend;
  /** Why this machine cannot run it. Its tests are then skipped by name. */
  readonly unavailable?: string | undefined;
  /** Whether a file is there for a command that still runs. The folder of this machine says so by default. */
  readonly sees?: (path: string) => boolean;
}

/** A command must be able to start on a machine with much other work. */
const SLOW_MS = 60_000;
const SECRET = "canary-5f2e9c";

export function sandboxConformance({ backend, unavailable, sees = existsSync }: SandboxSubject): void {
  const { capabilities } = backend;
  const suffix = unavailable === undefined ? "" : ` (skipped: ${unavailable})`;
  // A clause about what a capability promises has no test for a sandbox that does not promise it.
  const isHeld = capabilities.files === "workspace";

  // The machine cannot run the sandbox: the name says why.
  describe.skipIf(unavailable !== undefined)(
    `sandbox: ${backend.name}${suffix}`,
    { timeout: SLOW_MS },
    () => {
      let base: string;
      let place: SandboxPlace;
      let home: string;
      let workspace: Workspace;
      const opened: Workspace[] = [];

      beforeEach(async () => {
        base = mkdtempSync(join(tmpdir(), "holdfast-sandbox-"));
        home = join(base, "home");
        place = {
          session: `ses_${Date.now()}${Math.random()}`.replace(".", ""),
          root: join(home, "project"),
        };
        mkdirSync(join(place.root, ".git"), { recursive: true });
        writeFileSync(join(place.root, ".git", "config"), "[core]\n");
        mkdirSync(join(place.root, ".holdfast"));
        writeFileSync(join(place.root, ".holdfast", "config.json"), SECRET);
        writeFileSync(join(home, "credentials"), SECRET);
        workspace = await open();
      });
      afterEach(async () => {
        await Promise.all(opened.splice(0).map((one) => one.dispose()));
        await backend.destroy(place);
        rmSync(base, { recursive: true, force: true });
      });

      async function open(limits = {}): Promise<Workspace> {
        const inherit = { ...process.env, HOME: home, HOLDFAST_TEST_KEY: SECRET };
        const one = await backend.open(place, { inherit, env: { DECLARED: "given" }, limits });
        opened.push(one);
        return one;
      }
      const run = (line: string, timeoutMs = 30_000): Promise<Execution> =>
        workspace.execute(line, { timeoutMs });
      const outside = (): string => join(base, "outside");

      test("sandbox-backend-1: the check finds the machine ready and names what it found", async () => {
        const check = await backend.check();
        expect(check).toMatchObject({ status: "ready", found: expect.any(String) });
        expect(workspace.sandbox).toBe(backend.name);
        expect(workspace.capabilities).toEqual(capabilities);
      });

      test("sandbox-backend-2: a sandbox that is opened again has the files of before", async () => {
        expect((await run("echo one > made.txt")).end).toEqual({ type: "exit", exitCode: 0 });
        await workspace.dispose();
        workspace = await open();
        expect((await workspace.readFile("made.txt")).text).toBe("one\n");
        expect((await run("cat made.txt")).stdout).toBe("one\n");
      });

      test("sandbox-backend-3: file tools and commands see the same files under the same paths", async () => {
        await workspace.writeFile("src/a.txt", "by a tool\n");
        expect((await run("cat src/a.txt; echo by a command > src/b.txt; pwd")).stdout).toBe(
          `by a tool\n${workspace.root}\n`,
        );
        expect((await workspace.readFile("src/b.txt")).text).toBe("by a command\n");
        expect((await workspace.list("src")).map(({ path }) => path)).toEqual(["src/a.txt", "src/b.txt"]);
        const { stdout } = await workspace.execute("pwd", { cwd: "src" });
        expect(stdout).toBe(`${workspace.root}/src\n`);
        expect((await workspace.execute(["cat", "src/a.txt"])).stdout).toBe("by a tool\n");
      });

      test("sandbox-backend-4: no path and no link leads a file tool out of the root", async () => {
        symlinkSync(join(home, "credentials"), join(place.root, "link"));
        for (const path of ["../credentials", "link", join(home, "credentials")]) {
          await expect(workspace.readFile(path), path).rejects.toMatchObject({ code: "policy_denied" });
          await expect(workspace.writeFile(path, "x"), path).rejects.toMatchObject({ code: "policy_denied" });
        }
        expect(readFileSync(join(home, "credentials"), "utf8")).toBe(SECRET);
      });

      test("sandbox-backend-5: a command that fails is a result with its exit code and its texts", async () => {
        const failed = await run("echo out; echo problem >&2; exit 7");
        expect(failed).toMatchObject({
          end: { type: "exit", exitCode: 7 },
          stdout: "out\n",
          stderr: "problem\n",
          isTreeGone: true,
        });
        expect((await run("cat", 30_000)).end).toEqual({ type: "exit", exitCode: 0 }); // No input to wait for.
        expect((await workspace.execute("cat", { input: "given" })).stdout).toBe("given");
        expect((await run("no-such-program-of-ours")).end).toEqual({ type: "exit", exitCode: 127 });
      });

      test(
        "sandbox-backend-5: a time-out and an abort end a command with everything that it started",
        ofCampaign,
        async () => {
          const endless = "(while true; do date > alive.txt; done) & while true; do sleep 0.01; done";
          const timedOut = await run(endless, 3_000);
          expect(timedOut).toMatchObject({ end: { type: "timeout", timeoutMs: 3_000 }, isTreeGone: true });
          const aborting = new AbortController();
          const running = workspace.execute(endless, { signal: aborting.signal });
          rmSync(join(place.root, "alive.txt"), { force: true });
          await expect.poll(() => sees(join(place.root, "alive.txt")), { timeout: SLOW_MS }).toBe(true);
          aborting.abort();
          expect(await running).toMatchObject({ end: { type: "aborted" }, isTreeGone: true });
          rmSync(join(place.root, "alive.txt"), { force: true });
          await run("true");
          expect(existsSync(join(place.root, "alive.txt")), "a process of the command still writes").toBe(
            false,
          );
        },
      );

      // A sandbox without this capability does not promise it.
      if (isHeld)
        test(
          "sandbox-backend-5: a process that left its session and ignores signals does not outlive its command",
          ofCampaign,
          async () => {
            await run(
              "for i in 1 2 3 4 5 6 7 8; do (trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; while true; do date > left.txt; sleep 0.05; done') & done; sleep 0.3",
            );
            rmSync(join(place.root, "left.txt"), { force: true });
            await run("sleep 0.3");
            expect(existsSync(join(place.root, "left.txt"))).toBe(false);
          },
        );

      test("sandbox-backend-6: a command has the variables that it was given and no other of this process", async () => {
        const { stdout } = await workspace.execute("env", { env: { OWN: "one" } });
        expect(stdout).toContain("OWN=one");
        expect(stdout).toContain("DECLARED=given");
        expect(stdout).not.toContain("HOLDFAST_TEST_KEY");
        if (!isHeld) return; // Without isolation a command can read the environment of every process of its user.
        const others = await run("cat /proc/self/environ /proc/1/environ /proc/$PPID/environ 2>/dev/null");
        expect(others.stdout).not.toContain("VITEST");
      });

      test("sandbox-backend-7: output over the limit is cut with a mark", ofCampaign, async () => {
        workspace = await open({ outputBytes: 2_000 });
        const cut = await run("i=0; while [ $i -lt 2000 ]; do echo line-$i; i=$((i+1)); done");
        expect(cut.end).toEqual({ type: "exit", exitCode: 0 });
        expect(cut.isCut).toBe(true);
        expect(cut.stdout.length).toBeLessThan(2_200);
        expect(cut.stdout).toMatch(/^line-0\n[\s\S]*bytes of output left out[\s\S]*line-1999\n$/);
      });

      test("sandbox-backend-8: Holdfast's own folder is out of reach", async () => {
        for (const path of [".holdfast/config.json", ".holdfast/new"]) {
          await expect(workspace.readFile(path), path).rejects.toMatchObject({ code: "policy_denied" });
          await expect(workspace.writeFile(path, "x"), path).rejects.toMatchObject({ code: "policy_denied" });
        }
        if (!isHeld) return;
        const tried = await run(
          "cat .holdfast/config.json; grep -r canary .; cp -r . /tmp/copy; cat /tmp/copy/.holdfast/config.json; " +
            "mkdir -p .holdfast/agents; echo evil > .holdfast/agents/a.md; mv .holdfast other; rm -rf .holdfast",
        );
        expect(tried.stdout).not.toContain(SECRET);
        expect(readFileSync(join(place.root, ".holdfast", "config.json"), "utf8")).toBe(SECRET);
        expect(existsSync(join(place.root, ".holdfast", "agents"))).toBe(false);
      });

      // A sandbox without this capability does not promise it.
      if (isHeld)
        test("sandbox-backend-9: a command changes nothing outside of the root", async () => {
          symlinkSync(base, join(place.root, "up"));
          await run(
            `echo x > ${outside()}; echo x > ../../outside; echo x > up/outside; ln -s ${base} own; echo x > own/outside; ` +
              `cp .git/config ${outside()}; touch ${outside()}; mv made.txt ${outside()}; rm -rf ${home}/credentials ../credentials`,
          );
          expect(existsSync(outside())).toBe(false);
          expect(readFileSync(join(home, "credentials"), "utf8")).toBe(SECRET);
        });

      // A sandbox without this capability does not promise it.
      if (isHeld)
        test("sandbox-backend-9: a command cannot change the repository's configuration and hooks", async () => {
          await run(
            "echo '[core] fsmonitor=evil' >> .git/config; mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; " +
              "mv .git other; rm -rf .git",
          );
          expect(readFileSync(join(place.root, ".git", "config"), "utf8")).toBe("[core]\n");
          expect(existsSync(join(place.root, ".git", "hooks"))).toBe(false);
        });

      test("sandbox-backend-9: no file tool writes a file that gives rights, and every one can be read", async () => {
        for (const folder of [".claude", "agents/helper"])
          mkdirSync(join(place.root, folder), { recursive: true });
        writeFileSync(join(place.root, ".mcp.json"), "{}");
        expect((await workspace.readFile(".mcp.json")).text).toBe("{}");
        for (const path of [
          ...GRANTING_FOLDERS.flatMap((folder) => [folder, `${folder}/new.md`, `${folder}/a/b.md`]),
          ...GRANTING_FILES.map((file) => file.replace("*", "helper")),
          ".Claude/settings.json",
          "deep/.claude/agents/new.md",
        ])
          await expect(workspace.writeFile(path, "x"), path).rejects.toMatchObject({ code: "policy_denied" });
      });

      // A sandbox without this capability does not promise it.
      if (isHeld)
        test("sandbox-backend-9: a command makes and changes no file that gives rights", async () => {
          const agent = join(place.root, "agents/helper/agent.json");
          mkdirSync(join(place.root, "agents/helper"), { recursive: true });
          for (const path of [agent, join(place.root, ".mcp.json")]) writeFileSync(path, "{}\n");
          const made = GRANTING_FOLDERS.map((folder) => `${folder}/new.json`);
          await run(
            made.map((path) => `mkdir -p $(dirname ${path}); echo evil > ${path}`).join("; ") +
              "; mkdir -p with/agents; echo evil > with/agents/new.json; mv .github moved; mv with .github; cp -r with .github; rm -rf .github; mv with .github; " +
              "ln -s with .claude; rm -rf .mcp.json agents; echo evil > .mcp.json; mkdir -p agents/helper; " +
              "echo evil > agents/helper/agent.json; echo evil > agents/helper/agent.mcp.json; ln .mcp.json hard; echo evil > hard",
          );
          for (const path of [...made, "agents/helper/agent.mcp.json"])
            expect(existsSync(join(place.root, path)), path).toBe(false);
          for (const path of [agent, join(place.root, ".mcp.json")])
            expect(readFileSync(path, "utf8"), path).toBe("{}\n");
        });

      // A sandbox without this capability does not promise it.
      if (isHeld)
        test("sandbox-backend-9: a command makes no repository in a folder without one", async () => {
          rmSync(join(place.root, ".git"), { recursive: true });
          await run(
            "ln -s ../../home .git; mkdir .git; mkdir -p other/hooks; mv other .git; echo evil > .git/config",
          );
          await run(
            "rm -rf .git; mkdir -p .git; echo '[filter \"x\"] clean = evil' > .git/config; git init; mv .git old",
          );
          expect(existsSync(join(place.root, ".git", "config"))).toBe(false);
          // On a machine of its own a command may move its `.git` to a place where git does not look for it.
          if (capabilities.changes === "at_once") expect(existsSync(join(place.root, "old"))).toBe(false);
        });

      // A sandbox without this capability does not promise it.
      if (capabilities.credentials === "hidden")
        test("sandbox-backend-10: a link named .git leads a command nowhere", async () => {
          rmSync(join(place.root, ".git"), { recursive: true });
          await run("ln -s .. .git");
          expect((await run("cat .git/credentials")).stdout).not.toContain(SECRET);
          rmSync(join(place.root, ".git"), { recursive: true, force: true });
          symlinkSync("..", join(place.root, ".git")); // As the user or another sandbox may have made it.
          expect((await run("cat .git/credentials")).stdout).not.toContain(SECRET);
        });

      // A sandbox without this capability does not promise it.
      if (capabilities.credentials === "hidden")
        test("sandbox-backend-10: a command reads nothing of the user's home folder outside of the root", async () => {
          symlinkSync(home, join(place.root, "up"));
          const { stdout } = await run(
            `cat ../credentials; cat ${home}/credentials; cat up/credentials; cat /proc/self/cwd/../credentials; ` +
              `ln -s ${home}/credentials own; cat own; ln ${home}/credentials hard; cat hard; grep -r canary .. /proc/1/cwd 2>/dev/null`,
          );
          expect(stdout).not.toContain(SECRET);
        });

      // A sandbox without this capability does not promise it.
      if (capabilities.network === "none")
        test("sandbox-backend-11: a command reaches no address", async () => {
          let visits = 0;
          const server = createServer((_request, response) => {
            visits += 1;
            response.end(SECRET);
          });
          await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
          const { port } = server.address() as AddressInfo;
          const url = `http://127.0.0.1:${port}/`;
          const socket = createServer((_request, response) => void response.end(SECRET));
          await new Promise<void>((resolve) => socket.listen(join(base, "socket"), resolve));
          const { stdout } = await run(
            `curl -m 2 ${url}; wget -T 2 -O - ${url}; node -e 'fetch("${url}").then(r=>r.text()).then(console.log)'; ` +
              `exec 3<>/dev/tcp/127.0.0.1/${port}; echo 'GET / HTTP/1.0' >&3; head -c 99 <&3; curl -m 2 http://169.254.169.254/; ` +
              `curl -m 2 --unix-socket ${base}/socket http://socket/`,
          );
          await Promise.all([server, socket].map((one) => new Promise((resolve) => one.close(resolve))));
          expect(stdout).not.toContain(SECRET);
          expect(visits).toBe(0);
        });

      // A sandbox without this capability does not promise it.
      if (capabilities.limits.includes("file_size"))
        test("sandbox-backend-12: a file of 10 GB is not written", ofCampaign, async () => {
          workspace = await open({ fileBytes: 1024 * 1024 });
          await run(
            "dd if=/dev/zero of=large bs=1M count=10240; " +
              'i=0; while [ $i -lt 30 ]; do printf "%0100000d" 1 >> grown || break; i=$((i+1)); done',
            20_000,
          );
          const sizes = ["large", "grown"].map((name) => {
            const path = join(place.root, name);
            return existsSync(path) ? readFileSync(path).length : 0;
          });
          for (const size of sizes) expect(size).toBeLessThanOrEqual(1024 * 1024);
        });

      // A sandbox without this capability does not promise it.
      if (capabilities.limits.includes("memory") && capabilities.exec === "machine")
        test("sandbox-backend-12: a command that exceeds its memory fails", async () => {
          const { end } = await run("dd if=/dev/zero of=/dev/null bs=6G count=1");
          expect(end).not.toEqual({ type: "exit", exitCode: 0 });
          expect((await run("echo alive")).stdout).toBe("alive\n");
        });

      // The emulated shell has no `dd`. Its thread ends at its own limit, so the text cannot grow beyond it.
      if (capabilities.limits.includes("memory") && capabilities.exec === "emulated")
        test("sandbox-backend-12: a text that grows without end fails its command", ofCampaign, async () => {
          const { end } = await run('x=0123456789abcdef; while true; do x="$x$x"; echo "$x" > grown; done');
          expect(end).not.toEqual({ type: "exit", exitCode: 0 });
          expect((await run("echo alive")).stdout).toBe("alive\n");
        });

      // The bomb has five generations, and each process ends itself, so that it hurts no machine where
      // nothing stops it.
      test(
        "sandbox-backend-5: processes that double until the time limit end with their command",
        ofCampaign,
        async () => {
          const bomb =
            'grow() { if [ "$1" -gt 0 ]; then grow $(($1 - 1)) & grow $(($1 - 1)) & fi; i=0; ' +
            "while [ $i -lt 60 ]; do date > bomb.txt; sleep 0.5; i=$((i+1)); done; }; grow 4; sleep 60";
          expect(await run(bomb, 3_000)).toMatchObject({ end: { type: "timeout" }, isTreeGone: true });
          rmSync(join(place.root, "bomb.txt"), { force: true });
          await run("sleep 1");
          expect(existsSync(join(place.root, "bomb.txt")), "a process of the bomb still writes").toBe(false);
        },
      );

      // A sandbox without this capability does not promise it. The emulated shell has no processes.
      if (capabilities.limits.includes("processes") && capabilities.exec !== "emulated")
        test(
          "sandbox-backend-12: a command that starts more processes than its limit fails",
          ofCampaign,
          async () => {
            const { stdout } = await run(
              'i=0; while [ $i -lt 1100 ]; do sleep 20 & i=$((i+1)); done; echo "all $i"',
            );
            expect(stdout).not.toContain("all 1100");
            expect((await run("echo alive")).stdout).toBe("alive\n");
          },
        );

      test("sandbox-backend-13: a sandbox that is destroyed leaves the folder", async () => {
        await workspace.writeFile("kept.txt", "kept\n");
        await workspace.dispose();
        await backend.destroy(place);
        await backend.destroy(place);
        expect(readFileSync(join(place.root, "kept.txt"), "utf8")).toBe("kept\n");
        workspace = await open();
        expect((await run("cat kept.txt")).stdout).toBe("kept\n");
      });
    },
  );
}
