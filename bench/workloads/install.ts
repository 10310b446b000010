// W10: what a user gets: packed as for publishing, installed from the tarballs into an empty folder, and run
// from cold.
//
// Everything happens on a copy of the packages, so that a bench disturbs nobody who works in the checkout.
// Installing is offline: what a registry and a network add is not ours.

import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Measured } from "../line.ts";
import { assertDone, median, nowMs, percentile } from "../measure.ts";
import type { StorageKind } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SIZE_GOAL_MB = 1.5;
const IMPORT_GOAL_MS = 25;
const FIRST_RUN_GOAL_S = 5;

type Installed = Exclude<StorageKind, "postgres">;

/** The packages that run an agent. Packages of other authors are counted apart. */
const MEASURED: Readonly<Record<Installed, readonly string[]>> = {
  memory: ["core", "system", "runtime"],
  sqlite: ["core", "system", "runtime", "storage"],
};

/** Packages that are installed because a part imports them which is not used here. */
const UNUSED: Readonly<Record<Installed, readonly string[]>> = { memory: [], sqlite: ["proto"] };

export const install: Workload = {
  id: "W10",
  title: "install, import and first run from cold",
  refuses: (storage) => (storage === "postgres" ? "it is not measured with a server" : undefined),
  async *run(bench) {
    const { storage } = bench;
    if (storage === "postgres") return;
    // Not under the checkout, where Node would find its packages too.
    const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
    try {
      const names = [...MEASURED[storage], ...UNUSED[storage]];
      const tarballs = [...pack(folder, names), ...packOthers(folder, names)];
      const installS: number[] = [];
      const runS: number[] = [];
      for (let i = 0; i < Math.min(bench.repeats, 3); i++) {
        const user = join(folder, `user-${i}`);
        installS.push(secondsOf(() => installInto(user, tarballs)));
        runS.push(secondsOf(() => runHello(user, storage)));
      }
      yield measureSize(join(folder, "user-0"), MEASURED[storage]);
      yield measureImport(join(folder, "user-0"), bench);
      const value = median(installS) + median(runS);
      yield {
        variant: "install and first durable run",
        unit: "s",
        value,
        goal: `<= ${FIRST_RUN_GOAL_S} s`,
        isGoalMet: value <= FIRST_RUN_GOAL_S,
        more: { installSeconds: median(installS), runSeconds: median(runS) },
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** `npm run pack` in a copy of the workspace that holds these packages only. Answers the tarballs. */
function pack(folder: string, names: readonly string[]): string[] {
  const copy = join(folder, "workspace");
  mkdirSync(join(copy, "packages"), { recursive: true });
  const isSource = (path: string) => !/[/\\](dist|node_modules)$|\.tsbuildinfo$/.test(path);
  for (const name of names) {
    cpSync(join(ROOT, "packages", name), join(copy, "packages", name), { recursive: true, filter: isSource });
  }
  for (const file of ["package.json", "tsconfig.base.json", "README.md", "LICENSE"])
    cpSync(join(ROOT, file), join(copy, file));
  cpSync(join(ROOT, "scripts"), join(copy, "scripts"), { recursive: true });
  const references = names.map((name) => ({ path: `packages/${name}` }));
  writeFileSync(join(copy, "tsconfig.build.json"), JSON.stringify({ files: [], references }));

  // The tools are the checkout's; our own packages are the copy's.
  const modules = join(copy, "node_modules");
  mkdirSync(join(modules, "@holdfast"), { recursive: true });
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    if (name !== "@holdfast" && name !== "holdfast" && name !== ".cache")
      symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  }
  for (const name of names) symlinkSync(join(copy, "packages", name), join(modules, "@holdfast", name));

  run(copy, process.execPath, ["scripts/pack.ts"]);
  const target = join(copy, "dist", "packages");
  const tarballs = readdirSync(target).filter((name) => name.endsWith(".tgz"));
  assertDone("packages packed", tarballs.length, names.length);
  return tarballs.map((name) => join(target, name));
}

/** Packs the dependencies of these packages from the checkout, so that no registry is needed. */
function packOthers(folder: string, names: readonly string[]): string[] {
  const needed = names.flatMap((name) => {
    const manifest = readFileSync(join(ROOT, "packages", name, "package.json"), "utf8");
    const { dependencies = {} } = JSON.parse(manifest) as { dependencies?: Readonly<Record<string, string>> };
    return Object.keys(dependencies).filter((other) => !other.startsWith("@holdfast/"));
  });
  const target = join(folder, "others");
  mkdirSync(target);
  for (const name of new Set(needed))
    run(target, "npm", ["pack", "--offline", "--silent", join(ROOT, "node_modules", name)]);
  return readdirSync(target).map((name) => join(target, name));
}

function installInto(folder: string, tarballs: readonly string[]): void {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  run(folder, "npm", [
    "install",
    "--offline",
    "--legacy-peer-deps", // npm would ask the registry for the peers, although they are not installed.
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--loglevel=error",
    ...tarballs,
  ]);
}

const HELLO: Readonly<Record<Installed, string>> = {
  memory: `
    import { createRuntime, defineAgent, MemoryStorage } from "@holdfast/runtime";
    const storage = new MemoryStorage();`,
  sqlite: `
    import { createRuntime, defineAgent } from "@holdfast/runtime";
    import { openSqliteStorage } from "@holdfast/storage/sqlite";
    const storage = await openSqliteStorage({ path: "hello.db" });`,
};

function runHello(folder: string, storage: Installed): void {
  writeFileSync(
    join(folder, "hello.mjs"),
    `${HELLO[storage]}
    const hello = defineAgent({ name: "hello", run: (ctx) => ctx.run("greet", () => "Hello, durable world") });
    const runtime = createRuntime({ storage });
    const session = await runtime.start(hello);
    console.log(await session.result());
    await runtime.close();
    await storage.close();`,
  );
  assertDone(
    "what hello world says",
    run(folder, process.execPath, ["hello.mjs"]).trim(),
    "Hello, durable world",
  );
}

function measureSize(folder: string, names: readonly string[]): Measured {
  const modules = join(folder, "node_modules");
  const all = filesBelow(modules);
  const files = names.flatMap((name) => filesBelow(join(modules, "@holdfast", name)));
  const native = all.filter((file) => file.endsWith(".node")).length;
  const value = megabytes(files);
  return {
    variant: `installed: ${names.join(", ")}`,
    unit: "MB",
    value,
    goal: `<= ${SIZE_GOAL_MB} MB, no native build`,
    isGoalMet: value <= SIZE_GOAL_MB && native === 0,
    more: { files: files.length, nativeFiles: native, dependenciesMb: megabytes(all) - value },
  };
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function megabytes(files: readonly string[]): number {
  return sum(files.map((file) => statSync(file).size)) / 1e6;
}

/** CPU time above that of an empty program, in pairs. */
function measureImport(folder: string, { storage, isQuick }: Bench): Measured {
  const ours = ["@holdfast/runtime", ...(storage === "sqlite" ? ["@holdfast/storage/sqlite"] : [])];
  const samples = Array.from(
    { length: isQuick ? 1 : 20 },
    () => -importMs(folder, []) + importMs(folder, ours),
  );
  const value = median(samples);
  return {
    variant: `import of ${ours.join(" and ")}`,
    unit: "ms",
    value,
    floor: null,
    p50Ms: value,
    p99Ms: percentile(samples, 0.99),
    goal: `<= ${IMPORT_GOAL_MS} ms`,
    isGoalMet: value <= IMPORT_GOAL_MS,
  };
}

/** The CPU time of a process that imports these, Node's start included. */
function importMs(folder: string, specifiers: readonly string[]): number {
  const imports = specifiers.map((specifier) => `import ${JSON.stringify(specifier)};`).join(" ");
  const cpu = "const { user, system } = process.cpuUsage(); console.log((user + system) / 1000);";
  writeFileSync(join(folder, "import.mjs"), `${imports} ${cpu}`);
  return Number(run(folder, process.execPath, ["import.mjs"]));
}

function secondsOf(work: () => void): number {
  const startedAt = nowMs();
  work();
  return (nowMs() - startedAt) / 1_000;
}

/** Run a program with this Node first in its path. Answers what it printed. */
function run(cwd: string, command: string, args: readonly string[]): string {
  const PATH = [dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, PATH },
  });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(" ")} ended with ${status}: ${error?.message ?? stdout + stderr}`);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
