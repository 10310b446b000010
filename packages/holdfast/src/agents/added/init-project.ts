// `initProject`: writes agents to begin with into a folder. `npm create holdfast` calls it in the folder that
// it has made.
//
//   - No file that is there is changed. Where one has the path of a file of the template, nothing is written.
//   - A new folder also gets the files of a project. In a project of somebody else these are theirs.

import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { HoldfastError, UsageError, VERSION, type ErrorCode } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";

interface Template {
  readonly about: string;
  /** The commands to type next. */
  readonly next: readonly string[];
  /** The files that only a new project gets. */
  readonly ofProject: readonly string[];
  /** The packages of other authors that it imports, and the scripts of npm. `create-holdfast` has the same. */
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
}

const PROJECT = ["package.json", "tsconfig.json", ".gitignore", "README.md", "AGENTS.md"];

/** By the names of their folders. */
export const TEMPLATES: Readonly<Record<string, Template>> = {
  agent: {
    about: "an agent in TypeScript, with its test; it needs no key",
    next: ["run agents/first-agent.ts"],
    ofProject: PROJECT,
  },
  "agent-file": {
    about: "an agent file with a skill and a script",
    next: ["agents trust", 'run writer "At most 8 words about our lamp." --replies replies/writer.json'],
    ofProject: ["package.json", ".gitignore", "README.md", "AGENTS.md"],
  },
  "coding-agent": {
    about: "a coding agent that plans, asks, and works on a git branch of its own",
    next: ["run agents/coding-agent.ts --input '\"add a README\"'"],
    ofProject: PROJECT,
  },
  model: {
    about: "an agent in TypeScript that asks a model and gives it tools of yours",
    next: ["run agents/assistant.ts --input '\"My lamp of order 7 is broken.\"'"],
    ofProject: PROJECT,
    dependencies: { zod: "^4.6.7" },
  },
  hono: {
    about: "a web server whose requests start durable sessions, with Hono",
    next: ["npm start"],
    ofProject: PROJECT,
    dependencies: { "@hono/node-server": "^2.1.9", hono: "^4.13.19" },
    scripts: { start: "node src/server.ts", test: 'node --test "src/*.test.ts"' },
  },
  next: {
    about: "the same in Next.js, also while its development server replaces edited agents",
    next: ["npm run dev"],
    ofProject: [...PROJECT, "next.config.ts"],
    dependencies: {
      "@types/react": "^19.3.3",
      next: "^16.4.6",
      react: "^19.3.1",
      "react-dom": "^19.3.1",
      typescript: "^5.9.3",
    },
    scripts: { dev: "next dev", build: "next build", start: "next start" },
  },
};

const UNWRITABLE: Readonly<Record<string, ErrorCode>> = {
  EACCES: "storage_readonly",
  EROFS: "storage_readonly",
  ENOSPC: "storage_full",
};

/** A folder with nothing else is a new one: npm made these, or Git. */
const OF_TOOLS = new Set(["package.json", "package-lock.json", "node_modules", ".git"]);

export function initProject(name: string, io: Io): number {
  const template = Object.hasOwn(TEMPLATES, name) ? TEMPLATES[name] : undefined;
  if (template === undefined)
    throw new UsageError(`there is no template ${name}`, {
      got: name,
      expected: Object.keys(TEMPLATES).join(", "),
      fix: "name one of these, or leave --template out",
    });
  const files = filesOf(name, template, io.cwd);
  const taken = firstTaken([...files.keys()], io.cwd);
  if (taken !== undefined)
    throw new UsageError(`there is a file ${taken} already, and nothing was written`, {
      at: join(io.cwd, taken),
      fix: "rename that file, or use another folder",
    });
  const written = writeAll(files, io.cwd);
  io.show({ template: name, written }, written.map((path) => `wrote ${path}`).join("\n"));
  io.note("next:");
  const missing = Object.keys(template.dependencies ?? {}).filter((each) => !isInstalled(each, io.cwd));
  if (missing.length > 0) io.note(`  npm install holdfast ${missing.join(" ")}`);
  for (const line of template.next) io.note(`  ${line.startsWith("npm ") ? line : io.call(line)}`);
  const hasTest = written.some((path) => path.endsWith(".test.ts"));
  if (hasTest && missing.length === 0 && !isInstalled("holdfast", io.cwd))
    io.note("the test of the agent needs the package here:\n  npm install holdfast");
  return 0;
}

/** Whether code in this folder can import the package. A command that is installed elsewhere runs agents without it. */
function isInstalled(name: string, folder: string): boolean {
  if (existsSync(join(folder, "node_modules", name))) return true;
  return folder !== dirname(folder) && isInstalled(name, dirname(folder));
}

/** A file, or something that is no folder in the place of one. A link may lead out of the folder. */
function firstTaken(paths: readonly string[], folder: string): string | undefined {
  for (const path of paths) {
    const parts = path.split("/");
    for (const i of parts.keys()) {
      const part = parts.slice(0, i + 1).join("/");
      const stats = lstatSync(join(folder, part), { throwIfNoEntry: false });
      if (stats === undefined) break;
      if (part === path || !stats.isDirectory()) return part;
    }
  }
  return undefined;
}

/** The files that will be written, by their paths in the folder. */
function filesOf(name: string, template: Template, folder: string): ReadonlyMap<string, string> {
  const { ofProject } = template;
  const entries = readdirSync(folder);
  const isNew = entries.every((entry) => OF_TOOLS.has(entry));
  const files = new Map([...readTemplate("project"), ...readTemplate(name)]);
  const wanted = [...files].filter(
    ([path]) => ofProject.includes(path) || (path.includes("/") && !path.startsWith("..")),
  );
  const manifest = entries.includes("package.json")
    ? []
    : [["package.json", manifestOf(folder, template)] as const];
  return new Map([...wanted, ...manifest].filter(([path]) => isNew || !ofProject.includes(path)));
}

function readTemplate(name: string): readonly (readonly [path: string, text: string])[] {
  const folder = join(templatesFolder(), name);
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      // npm leaves `.gitignore` out of a package, so names with a dot have another mark there.
      const inProject = path
        .slice(folder.length + 1)
        .replaceAll("\\", "/")
        .replaceAll(/(^|\/)_/g, "$1.");
      return [inProject, readFileSync(path, "utf8")] as const;
    });
}

/** Beside the sources, or beside the built code of the published package. */
function templatesFolder(): string {
  const places = ["../../../templates", "../templates"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  const found = places.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new HoldfastError("file_not_found", "the templates of this installation are not there", {
    at: places[0]!,
    fix: "install holdfast again",
  });
}

/** A name that npm takes, whatever the folder is called. */
function manifestOf(folder: string, { dependencies, scripts }: Template): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  const manifest = {
    name: name === "" ? "my-agents" : name,
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: { test: 'node --test "agents/*.test.ts"', ...scripts },
    dependencies: { holdfast: VERSION, ...dependencies },
    devDependencies: { "@types/node": "^24" },
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** @returns the folders that were not there. A recursive call of `mkdirSync` never returns below /proc. */
function makeFolders(folder: string): readonly string[] {
  if (existsSync(folder)) return [];
  const above = makeFolders(dirname(folder));
  mkdirSync(folder);
  return [...above, folder];
}

/** All or none: what was written is removed when one cannot be. */
function writeAll(files: ReadonlyMap<string, string>, folder: string): readonly string[] {
  const made: string[] = [];
  try {
    for (const [path, text] of files) {
      made.push(...makeFolders(dirname(join(folder, path))));
      const isProgram = text.startsWith("#!");
      writeFileSync(join(folder, path), text, { flag: "wx", mode: isProgram ? 0o755 : 0o644 });
      made.push(join(folder, path));
    }
  } catch (thrown) {
    for (const path of made.toReversed()) rmSync(path, { recursive: true, force: true });
    const { code = "", message } = thrown as NodeJS.ErrnoException;
    throw new HoldfastError(
      UNWRITABLE[code] ?? "storage_unavailable",
      `the files cannot be written: ${message}`,
      {
        at: folder,
        fix: "check the rights of the folder and the space of its disk, and try again",
      },
    );
  }
  return [...files.keys()];
}
