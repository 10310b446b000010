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
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { GRANTING_FILES, GRANTING_FOLDERS } from "../granting-places.ts";
import { tryEach } from "../sandboxes/canaries/attempts.ts";
import { tryNetwork } from "../sandboxes/canaries/network-attempts.ts";
import { runCanaries } from "../sandboxes/canaries/sandbox-canaries.ts";
import type { SandboxBackend, SandboxCheck, SandboxPlace } from "../sandboxes/sandbox-backend.ts";
import { isHeldIn } from "../workspace/capabilities.ts";
import type { Execution } from "../workspace/execute.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { shellConformance } from "./shell-conformance.ts";

export interface SandboxSubject {
  readonly backend: SandboxBackend;
  /**
   * The answer of its check. Where the machine cannot run it, its suite is skipped by name. Where the
   * sandbox itself does not work, a test fails.
   */
  readonly check: SandboxCheck;
  /** Whether a file is there for a command that still runs. The folder of this machine says so by default. */
  readonly sees?: (path: string) => boolean;
}

/** A command must be able to start on a machine with much other work. */
const SLOW_MS = 60_000;
const SECRET = "canary-5f2e9c";

export function sandboxConformance({ backend, check, sees = existsSync }: SandboxSubject): void {
  const { capabilities } = backend;
  if (check.status !== "ready") return reportUnavailable(backend.name, check);
  // A clause about what a capability promises has no test for a sandbox that does not promise it.
  const isHeld = capabilities.files === "workspace";

  describe(`sandbox: ${backend.name}`, { timeout: SLOW_MS }, () => {
    let base: string;
    let place: SandboxPlace;
    let home: string;
    let workspace: Workspace;
    const opened: Workspace[] = [];
    let played = 0;

    beforeEach(async () => {
      played++;
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

    afterAll(() => console.log(`sandbox ${backend.name}: ${played} tests ran`));

    async function open(limits = {}): Promise<Workspace> {
      const inherit = { ...process.env, HOME: home, HOLDFAST_TEST_KEY: SECRET };
      const one = await backend.open(place, { inherit, env: { DECLARED: "given" }, limits });
      opened.push(one);
      return one;
    }
    const run = (line: string, timeoutMs = 30_000): Promise<Execution> =>
      workspace.execute(line, { timeoutMs });
    /** @param lines attempts with `; ` between them, each of which is made whatever becomes of the others. */
    const tries = (lines: string): Promise<Execution> => tryEach(run, lines.split("; "));
    const outside = (): string => join(base, "outside");

    test("sandbox-backend-1: the check finds the machine ready and names what it found", async () => {
      expect(await backend.check()).toMatchObject({ status: "ready", found: expect.any(String) });
      expect(workspace.sandbox).toBe(backend.name);
      expect(workspace.capabilities).toEqual(capabilities);
    });

    if (isHeldIn(capabilities))
      test("sandbox-backend-1: the check is not ready without its canaries, and none of them escapes", async () => {
        vi.stubEnv("TMPDIR", join(base, "none")); // Canaries make their folders there.
        const untried = await backend.check();
        vi.unstubAllEnvs();
        expect(untried).toMatchObject({ status: "unavailable" });
        const places: SandboxPlace[] = [];
        const canaries = await runCanaries({
          // The canary of memory needs a limit that `open` cannot set. Clause 12 has a test of its own.
          capabilities: { ...capabilities, limits: [] },
          open: (root, options) => {
            places.push({ session: place.session, root });
            return backend.open({ session: place.session, root }, options);
          },
        });
        await Promise.all(places.map((one) => backend.destroy(one)));
        expect(canaries.filter(({ escaped }) => escaped)).toEqual([]);
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

    shellConformance(isHeld, () => workspace);

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

    // The emulated shell has no signals.
    if (capabilities.exec !== "emulated")
      test("sandbox-backend-5: SIGTERM ends a command that handles no signal", async () => {
        const { end, stdout } = await run("kill -TERM $$; echo no");
        expect([143, "SIGTERM"]).toContain(
          end.type === "exit" ? end.exitCode : (end as { signal?: string }).signal,
        );
        expect(stdout).toBe("");
      });

    if (isHeld)
      test(
        "sandbox-backend-5: a process that left its session and ignores signals does not outlive its command",
        ofCampaign,
        async () => {
          // The emulated shell has no `setsid`, so there nothing begins to wait for.
          const begun =
            capabilities.exec === "emulated" ? "sleep 0.3" : "until [ -e left.txt ]; do sleep 0.1; done";
          const left = await run(
            `for i in 1 2 3 4 5 6 7 8; do (trap '' TERM HUP INT; setsid sh -c 'trap "" TERM HUP; while true; do date > left.txt; sleep 0.05; done') & done; ${begun}`,
          );
          expect(left.end).toEqual({ type: "exit", exitCode: 0 });
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
      const tried = await tries(
        "cat .holdfast/config.json; grep -r canary .; cp -r . /tmp/copy; cat /tmp/copy/.holdfast/config.json; " +
          "mkdir -p .holdfast/agents; echo evil > .holdfast/agents/a.md; mv .holdfast other; rm -rf .holdfast",
      );
      expect(tried.stdout).not.toContain(SECRET);
      expect(readFileSync(join(place.root, ".holdfast", "config.json"), "utf8")).toBe(SECRET);
      expect(existsSync(join(place.root, ".holdfast", "agents"))).toBe(false);
    });

    if (isHeld)
      test("sandbox-backend-9: a command changes nothing outside of the root", async () => {
        symlinkSync(base, join(place.root, "up"));
        await tries(
          `echo x > ${outside()}; echo x > ../../outside; echo x > up/outside; ln -s ${base} own; echo x > own/outside; ` +
            `cp .git/config ${outside()}; touch ${outside()}; mv made.txt ${outside()}; rm -rf ${home}/credentials ../credentials`,
        );
        expect(existsSync(outside())).toBe(false);
        expect(readFileSync(join(home, "credentials"), "utf8")).toBe(SECRET);
      });

    if (isHeld)
      test("sandbox-backend-9: a command cannot change the repository's configuration and hooks", async () => {
        await tries(
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

    if (isHeld)
      test("sandbox-backend-9: a command makes and changes no file that gives rights", async () => {
        const agent = join(place.root, "agents/helper/agent.json");
        mkdirSync(join(place.root, "agents/helper"), { recursive: true });
        for (const path of [agent, join(place.root, ".mcp.json")]) writeFileSync(path, "{}\n");
        const made = GRANTING_FOLDERS.map((folder) => `${folder}/new.json`);
        await tries(
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

    if (isHeld)
      test("sandbox-backend-9: a command makes no repository in a folder without one", async () => {
        rmSync(join(place.root, ".git"), { recursive: true });
        await tries(
          "ln -s ../../home .git; mkdir .git; mkdir -p other/hooks; mv other .git; echo evil > .git/config",
        );
        await tries(
          "rm -rf .git; mkdir -p .git; echo '[filter \"x\"] clean = evil' > .git/config; git init; mv .git old",
        );
        expect(existsSync(join(place.root, ".git", "config"))).toBe(false);
        // On a machine of its own a command may move its `.git` to a place where git does not look for it.
        if (capabilities.changes === "at_once") expect(existsSync(join(place.root, "old"))).toBe(false);
      });

    if (capabilities.credentials === "hidden")
      test("sandbox-backend-10: a link named .git leads a command nowhere", async () => {
        rmSync(join(place.root, ".git"), { recursive: true });
        await run("ln -s .. .git");
        expect((await run("cat .git/credentials")).stdout).not.toContain(SECRET);
        rmSync(join(place.root, ".git"), { recursive: true, force: true });
        symlinkSync("..", join(place.root, ".git")); // As the user or another sandbox may have made it.
        expect((await run("cat .git/credentials")).stdout).not.toContain(SECRET);
      });

    if (capabilities.credentials === "hidden")
      test("sandbox-backend-10: a command reads nothing of the user's home folder outside of the root", async () => {
        symlinkSync(home, join(place.root, "up"));
        const { stdout } = await tries(
          `cat ../credentials; cat ${home}/credentials; cat up/credentials; cat /proc/self/cwd/../credentials; ` +
            `ln -s ${home}/credentials own; cat own; ln ${home}/credentials hard; cat hard; grep -r canary .. /proc/1/cwd 2>/dev/null`,
        );
        expect(stdout).not.toContain(SECRET);
      });

    if (capabilities.network === "none")
      test("sandbox-backend-11: a command reaches no address and no Unix socket", async () => {
        const { tried, reached } = await tryNetwork(run, base);
        expect(reached).toEqual([]);
        // A test that has no program to try it with proves nothing. The emulated shell has none.
        const isTried = (target: string): boolean => tried.some((way) => way.startsWith(target));
        const targets = { machine: ["server", "metadata", "unix"], image: ["server"], emulated: [] };
        expect(
          targets[capabilities.exec].filter((target) => !isTried(target)),
          "was not tried",
        ).toEqual([]);
      });

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
        expect(sizes[1], "nothing was written").toBeGreaterThan(0);
        for (const size of sizes) expect(size).toBeLessThanOrEqual(1024 * 1024);
      });

    if (capabilities.limits.includes("memory") && capabilities.exec !== "emulated")
      test("sandbox-backend-12: a command that exceeds its memory fails", async () => {
        const take = (size: string) => run(`dd if=/dev/zero of=/dev/null bs=${size} count=1`);
        expect((await take("1M")).end, "there is no dd to try it with").toEqual({
          type: "exit",
          exitCode: 0,
        });
        const { end } = await take("6G");
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

    // The emulated shell has no processes.
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

    // Where a command changes the root alone, an own call finds nothing of it elsewhere.
    if (!isHeld)
      test("sandbox-backend-14: an own call is held in as a command is", async () => {
        const own = (line: string): Promise<Execution> =>
          workspace.execute(["/bin/sh", "-c", line], { isOwn: true, timeoutMs: 30_000 });
        expect((await own("echo works")).stdout).toBe("works\n");
        if (capabilities.network === "none")
          expect((await tryNetwork(own, base)).reached, "a hook of git would reach it").toEqual([]);
        if (capabilities.credentials === "hidden")
          expect((await own(`cat ${home}/credentials`)).stdout).not.toContain(SECRET);
      });
  });
}

/** Names the suite that is skipped once, with the reason, and fails where that is not the machine's doing. */
function reportUnavailable(name: string, check: Extract<SandboxCheck, { status: "unavailable" }>): void {
  if (check.cause !== undefined) {
    console.log(`sandbox ${name}: skipped, because ${check.reason}`);
    // The machine cannot run the sandbox: the name says why.
    test.skip(`the suite of the sandbox ${name} (skipped: ${check.reason})`, () => {});
    return;
  }
  test(`the sandbox ${name} works where its parts are there`, () => {
    throw new Error(
      `its check says: ${check.reason}. If it is the machine that refuses, let the check answer \`cause: "forbidden"\` for these words ` +
        '(`refusal` of `checkByCanaries`), and `cause: "absent"` for a program that is missing',
    );
  });
}
