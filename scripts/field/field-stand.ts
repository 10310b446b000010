// `FieldStand`: a project of the packed packages, a copy of the programs, and what each kind of program needs.
//
//   - The programs were written for another state of the checkout. The copy gets the ports of this run, two
//     modules that are not among them, and the present address of the inbox.
//   - A program leaves processes when it fails. Each is the leader of a group of processes, which ends with it.

import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startServer } from "@holdfast/storage/postgres-testing";
import { CHROMIUM } from "../../packages/holdfast/src/testing/browser.ts";
import type { FieldProgram } from "./field-program.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const HOLDFAST_PACKAGES = join(root, "dist", "packages");
/** The packages that the programs of `engine` use beside Holdfast. */
const TOOLS = [
  "pg",
  "zod",
  "esbuild",
  "tsx",
  "vite",
  "vitest",
  "webpack",
  "webpack-cli",
  "typescript@5.9.3",
  "@types/node@24",
];
const INSTALL_MS = 5 * 60_000;
const READY_MS = 60_000;

/** The steps that `engine/29-fleet` asks for in its case `blocked`. */
const BLOCKED = `import { execSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent } from "holdfast";
const log = process.env.FIELD_LOG ?? "/dev/null";
export const build = defineAgent({ name: "build", run: async (ctx, { seconds }: { seconds: number }) =>
  ctx.run("build", (task) => {
    appendFileSync(log, \`build attempt \${task.attempt}\\n\`);
    execSync(\`sleep \${seconds}\`);
    return "built";
  }) });
export const payer = defineAgent({ name: "payer", run: async (ctx) =>
  ctx.run("pay", async (task) => {
    appendFileSync(log, \`pay attempt \${task.attempt}\\n\`);
    await delay(3_000);
    return "paid";
  }, { effect: "once" }) });
`;

/** The module of which \`local/s4-two-policies.py\` takes its helpers. */
const MISC = `from lib import *
def place(name): return Place(name, ANTHROPIC_BASE_URL=MODEL, ANTHROPIC_API_KEY="test", HOLDFAST_MODEL="anthropic/claude-sonnet-5")
def scen(name, steps): json.dump(steps, open(W + "/scenarios/" + name + ".json", "w"))
def S(tool, **input): return {"toolCalls": [{"name": tool, "input": input}]}
`;

export class FieldStand {
  readonly #work: string;
  readonly #programs: string;
  readonly #project: string;
  readonly #env: Readonly<Record<string, string>>;
  /** The groups of processes that stay until the end. */
  readonly #staying = new Set<number>();
  #page: Promise<Readonly<Record<string, string>>> | undefined;
  #model: Promise<Readonly<Record<string, string>>> | undefined;

  /** Packs and installs the packages of this checkout. @param programs stays as it is. */
  static open(programs: string): FieldStand {
    const work = mkdtempSync(join(tmpdir(), "field-"));
    try {
      return new FieldStand(work, programs);
    } catch (error) {
      rmSync(work, { recursive: true, force: true });
      throw error;
    }
  }

  private constructor(work: string, programs: string) {
    this.#work = work;
    this.#project = join(work, "project");
    this.#programs = join(this.#project, "programs");
    for (const folder of ["home", "tmp", "project"]) mkdirSync(join(work, folder));
    this.#env = {
      PATH: [dirname(process.execPath), join(this.#project, "node_modules/.bin"), process.env["PATH"]].join(
        delimiter,
      ),
      HOME: join(work, "home"),
      TMPDIR: join(work, "tmp"),
      LANG: "C.UTF-8",
      NO_COLOR: "1",
      HOLDFAST_REPO: root,
      HOLDFAST_ROOT: root,
    };
    this.#install();
    cpSync(programs, this.#programs, { recursive: true });
    mkdirSync(join(this.#programs, "engine/07-blocked"));
    writeFileSync(join(this.#programs, "engine/07-blocked/agents.ts"), BLOCKED);
    writeFileSync(join(this.#programs, "local/misc.py"), MISC);
  }

  #install(): void {
    const packed = run("npm", ["run", "-s", "pack"], { cwd: root });
    if (packed !== undefined) throw new Error(`the packages are not packed: ${packed}`);
    writeFileSync(join(this.#project, "package.json"), '{ "private": true, "type": "module" }\n');

    const args = ["install", "--no-audit", "--no-fund", ...tarballs(), ...TOOLS];
    const installed = run("npm", args, { cwd: this.#project });
    if (installed !== undefined) throw new Error(`the packages are not installed: ${installed}`);
  }

  async close(): Promise<void> {
    for (const pid of this.#staying) endGroup(pid);
    await sleep(100);
    rmSync(this.#work, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  /** @returns all that the program printed. */
  async play(program: FieldProgram, ms: number): Promise<string> {
    const path = join(this.#programs, program.file);
    if (program.misuse !== undefined) writeFileSync(path, program.misuse.repair(readFileSync(path, "utf8")));
    const { args = [] } = program;
    const name = basename(program.file, extname(program.file));
    switch (dirname(program.file).split("/")[0]) {
      case "agents": {
        const FIELD_SCRATCH = join(this.#work, "tmp", name);
        mkdirSync(FIELD_SCRATCH, { recursive: true });
        return this.#call("bash", [path], ms, { FIELD_SCRATCH });
      }
      case "security":
        return this.#call(process.execPath, [path], ms, await this.#ofAttack(name));
      case "local":
        return this.#playLocal(path, ms);
      case "page":
        writeFileSync(path, inInbox(readFileSync(path, "utf8")));
        return this.#call(process.execPath, [path], ms, await (this.#page ??= this.#openPage()));
      default:
        return this.#playEngine(path, args, ms);
    }
  }

  async #playEngine(path: string, args: readonly string[], ms: number): Promise<string> {
    const bin = (tool: string): string => join(this.#project, "node_modules/.bin", tool);
    const name = basename(path);
    if (path.includes("10-bundles")) return this.#call("sh", [path, bin("")], ms, { LINES_MAX: "9" });
    if (name === "run.sh") return this.#call("sh", [path, bin("tsc")], ms);
    if (name.endsWith(".test.mjs")) return this.#call(bin("vitest"), ["run", path], ms);
    if (name === "fleet.mjs")
      return this.#call(process.execPath, [path, String(await freePort()), ...args], ms);
    if (name.startsWith("14c")) return this.#playOverPostgres(path, ms);
    if (path.includes("16-types")) {
      const settings = [
        "--strict",
        "--noEmit",
        "--skipLibCheck",
        "--target",
        "es2022",
        "--module",
        "nodenext",
      ];
      const text = await this.#call(bin("tsc"), [...settings, "--types", "node", path], ms);
      return `${text}${text.split("error TS").length - 1} errors\n`;
    }
    return this.#call(process.execPath, [path], ms);
  }

  /** The program is given two commands of the shell that stop and start the server. */
  async #playOverPostgres(path: string, ms: number): Promise<string> {
    const server = await startServer({ fsync: false });
    const remote = createServer((request, response) => {
      const done = request.url === "/stop" ? server.stopImmediately() : server.start();
      void done.finally(() => response.end());
    });
    try {
      const url = await listen(remote);
      const command = (what: string): string =>
        `${process.execPath} -e 'fetch("${url}/${what}").then((answer) => answer.text())'`;
      return await this.#call(process.execPath, [path, server.url, command("stop"), command("start")], ms);
    } finally {
      remote.close();
      await server.stop();
    }
  }

  async #ofAttack(name: string): Promise<Readonly<Record<string, string>>> {
    const ATTACK_TMP = join(this.#work, "a"); // A socket has a short path.
    mkdirSync(ATTACK_TMP, { recursive: true });
    const port = await freePort();
    return {
      ATTACK_TMP,
      ATTACK_PORT: String(port),
      PUB: this.#project,
      CASES: "3", // The last sandbox isolates nothing, as its documentation says.
      ...(name === "trace-rce" ? { HOLDFAST_BIN: join(this.#project, "node_modules/.bin/holdfast") } : {}),
    };
  }

  async #playLocal(path: string, ms: number): Promise<string> {
    const text = readFileSync(path, "utf8");
    const port = String(await freePort());
    writeFileSync(path, text.replaceAll(/\b240\d\d\b/g, port));
    const args = text.includes("sys.argv[2]") ? [port, "1"] : [];
    return this.#call(
      "python3",
      [path, dirname(path), ...args],
      ms,
      await (this.#model ??= this.#openModel()),
    );
  }

  async #openModel(): Promise<Readonly<Record<string, string>>> {
    const SEEDS_WORK = join(this.#work, "l");
    mkdirSync(SEEDS_WORK);
    const port = await freePort();
    const env = {
      SEEDS_REPO: root,
      SEEDS_PROJ: this.#project,
      SEEDS_NPM: this.#project,
      SEEDS_WORK,
      SEEDS_MODEL: `http://127.0.0.1:${port}`,
    };
    this.#stay([join(this.#programs, "local/model.mjs"), String(port), SEEDS_WORK], env);
    await until(() => existsSync(join(SEEDS_WORK, "scenarios")), "the scripted model of local");
    return env;
  }

  /** A coordinator with sessions of every kind, which stays. */
  async #openPage(): Promise<Readonly<Record<string, string>>> {
    const WORK = join(this.#work, "p");
    mkdirSync(WORK);
    cpSync(join(this.#programs, "page/agents.ts"), join(WORK, "agents.ts"));
    symlinkSync(join(root, "node_modules"), join(WORK, "node_modules"));
    const env = {
      WORK,
      HF: join(root, "packages/holdfast/bin/holdfast.mjs"),
      NODE: process.execPath,
      PW: root,
      CHROMIUM: CHROMIUM ?? "",
      PORT: String(await freePort()),
    };
    this.#stay([join(this.#programs, "page/seed.mjs")], env);
    await until(() => existsSync(join(WORK, "seed.json")), "the coordinator of page");
    await sleep(1_000);
    return env;
  }

  #stay(args: readonly string[], env: Readonly<Record<string, string>>): void {
    const child = spawn(process.execPath, args, {
      cwd: this.#work,
      env: { ...this.#env, ...env },
      stdio: "ignore",
      detached: true,
    });
    if (child.pid !== undefined) this.#staying.add(child.pid);
  }

  /** Runs it in its folder, and ends all that it has started when it ends or its time is over. */
  #call(
    command: string,
    args: readonly string[],
    ms: number,
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const file = args.find((arg) => arg.startsWith(this.#programs));
    const child = spawn(command, args, {
      cwd: file === undefined ? this.#work : dirname(file),
      env: { ...this.#env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (part: string) => (text += part));
    const timer = setTimeout(() => {
      text += `\nit did not end within ${ms} ms\n`;
      if (child.pid !== undefined) endGroup(child.pid);
    }, ms);
    child.on("error", (error) => (text += String(error)));
    child.on("exit", () => {
      clearTimeout(timer);
      if (child.pid !== undefined) endGroup(child.pid);
    });
    child.on("close", () => resolve(text));
    return promise;
  }
}

/** The inbox was the first screen when the programs of `page` were written, and has an address of its own now. */
function inInbox(program: string): string {
  return program.replaceAll(/goto\(`\$\{url\}\/ui\/(?=[`?])/g, (first) => `${first}inbox`);
}

function tarballs(): readonly string[] {
  return readdirSync(HOLDFAST_PACKAGES)
    .filter((name) => name.endsWith(".tgz"))
    .map((name) => join(HOLDFAST_PACKAGES, name));
}

/** @returns why it failed. */
function run(
  command: string,
  args: readonly string[],
  { cwd }: { readonly cwd: string },
): string | undefined {
  const { status, error, stderr } = spawnSync(command, args, { cwd, encoding: "utf8", timeout: INSTALL_MS });
  return status === 0 ? undefined : (error?.message ?? stderr.slice(-2_000));
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has no process any more.
  }
}

async function until(isSo: () => boolean, what: string): Promise<void> {
  const end = performance.now() + READY_MS;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`${what} did not start within ${READY_MS} ms`);
    await sleep(50);
  }
}

async function listen(server: Server): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function freePort(): Promise<number> {
  const server = createTcpServer();
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  await closed.promise;
  return port;
}
