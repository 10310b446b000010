// `create`: makes the folder, installs Holdfast in it and lets Holdfast write the agents.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
/** The templates: their packages of other authors, their scripts of npm and their first commands, as `holdfast init` has them. */
export const TEMPLATES = {
  agent: { first: "npx holdfast run agents/first-agent.ts" },
  "agent-file": { first: "npx holdfast agents trust" },
  "coding-agent": { first: "npx holdfast doctor" },
  model: {
    first: `npx holdfast run agents/assistant.ts --input '"My lamp of order 7 is broken."'`,
    dependencies: { zod: "^4.6.7" },
  },
  hono: {
    first: "npm start",
    dependencies: { "@hono/node-server": "^2.1.9", hono: "^4.13.19" },
    scripts: { start: "node src/server.ts", test: 'node --test "src/*.test.ts"' },
  },
  next: {
    first: "npm run dev",
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
const USAGE = `usage: npm create holdfast@latest NAME [-- --template ${Object.keys(TEMPLATES).join("|")}]`;
/** A name of a package without a scope, as npm takes it. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,212}$/;
const RESERVED = ["node_modules", "favicon.ico", "holdfast", "create-holdfast"];
// `npm create` hands its own settings down. These would make the inner npm work on another folder.
const LEAKING =
  /^npm_config_(prefix|(local|global)_prefix|global|location|workspaces?|include_workspace_root|omit|production|package|call|yes)$/i;
const STOPS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/**
 * @param {string[]} words of the command line.
 * @returns {Promise<number>} the exit code.
 */
export async function create(words) {
  const { name, template, problem, isHelp } = readWords(words);
  if (isHelp) {
    process.stdout.write(`${USAGE}\n\nMakes the folder NAME with Holdfast and an agent in it.\n`);
    return 0;
  }
  if (problem !== undefined) return fail(2, "E_USAGE", problem);
  const folder = resolve(name);
  const found = problemOf(folder);
  if (found !== undefined) return fail(2, "E_USAGE", found);
  removeAbandoned(folder);
  const made = join(dirname(folder), `.${basename(folder)}.creating-${process.pid}`);
  try {
    makeFolder(made);
  } catch (error) {
    return fail(10, "E_STORAGE_READONLY", {
      what: `the folder cannot be made: ${error.code}`,
      at: dirname(folder),
      fix: "choose a place where you may write, or change its rights",
    });
  }
  const running = new Set();
  for (const [signal, exitCode] of Object.entries(STOPS))
    process.on(signal, () => {
      for (const child of running) child.kill("SIGKILL");
      rmSync(made, { recursive: true, force: true });
      process.exit(exitCode);
    });
  try {
    return await fill({ made, folder, name, template, running });
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

async function fill({ made, folder, name, template, running }) {
  writeFileSync(
    join(made, "package.json"),
    `${JSON.stringify(manifestOf(basename(folder), TEMPLATES[template]), null, 2)}\n`,
  );
  process.stderr.write(`installing holdfast ${version}\n`);
  const quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
  const installed = await run(npm(), ["install", ...quiet], made, running);
  if (installed !== 0)
    return fail(7, "E_INSTALL", {
      what: `npm could not install holdfast@${version} (${installed}), and nothing was left behind`,
      at: made,
      fix: "see npm's message above (network? registry? disk?) and run the same again",
    });
  const launcher = join(made, "node_modules", "holdfast", "bin", "holdfast.mjs");
  const chosen = template === undefined ? [] : ["--template", template];
  const silent = ["ignore", "ignore", "pipe"];
  const written = await run([process.execPath], [launcher, "init", ...chosen], made, running, silent);
  if (written !== 0) return typeof written === "number" ? written : 1;
  try {
    renameSync(made, folder); // An empty folder is replaced.
  } catch (error) {
    return fail(10, "E_STORAGE_UNAVAILABLE", {
      what: `the folder is complete and cannot be moved to its place: ${error.code}`,
      at: folder,
      fix: "remove what is there now, and run the same again",
    });
  }
  const at = relative(process.cwd(), folder);
  const { first } = TEMPLATES[template ?? "agent"];
  process.stdout.write(
    `\ncreated ${name}. Next:\n\n  cd ${/^[\w./-]+$/.test(at) ? at : JSON.stringify(at)} && ${first}\n`,
  );
  return 0;
}

function readWords(words) {
  const names = [];
  let template;
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (word === "--help" || word === "-h") return { isHelp: true };
    if (word === "--template") template = words[++i] ?? "";
    else if (word.startsWith("--template=")) template = word.slice("--template=".length);
    else if (word.startsWith("-")) return wrong(`there is no option ${word}`, word);
    else names.push(word);
  }
  if (template !== undefined && !Object.keys(TEMPLATES).includes(template))
    return wrong(
      `there is no template ${JSON.stringify(template)}`,
      template,
      Object.keys(TEMPLATES).join(", "),
    );
  if (names.length !== 1) return wrong("the name of one folder is needed", names.join(" ") || "nothing");
  return { name: names[0], template };
}

function wrong(what, got, expected) {
  return { problem: { what, got, ...(expected === undefined ? {} : { expected }), fix: USAGE } };
}

/** Why a folder cannot be made here. */
function problemOf(folder) {
  const name = basename(folder);
  if (!NAME.test(name) || RESERVED.includes(name))
    return {
      what: "the folder would be the name of a package, and npm does not take this one",
      got: name,
      expected: "small letters, digits, hyphens, dots and underscores, and the name of no other package here",
      fix: "choose another name, such as my-agents",
    };
  let files;
  try {
    files = readdirSync(folder);
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    return { what: `there is something in the way: ${error.code}`, at: folder, fix: "choose another name" };
  }
  if (files.length === 0) return undefined;
  return {
    what: "the folder is not empty, and nothing was changed",
    at: folder,
    got: `${files.slice(0, 3).join(", ")}${files.length > 3 ? ", …" : ""}`,
    fix: "choose another name; in a project that you have, run: npm install holdfast && npx holdfast init",
  };
}

/** One folder at a time: a recursive call of `mkdirSync` never returns below /proc. */
function makeFolder(folder) {
  if (!existsSync(dirname(folder))) makeFolder(dirname(folder));
  mkdirSync(folder);
}

/** Removes the leftovers of creates that were killed with -9. */
function removeAbandoned(folder) {
  let siblings;
  try {
    siblings = readdirSync(dirname(folder));
  } catch {
    return; // The parent is made with the folder.
  }
  const begin = `.${basename(folder)}.creating-`;
  for (const sibling of siblings.filter((each) => each.startsWith(begin))) {
    const pid = Number(sibling.slice(begin.length));
    if (Number.isInteger(pid) && pid > 0 && !isAlive(pid))
      rmSync(join(dirname(folder), sibling), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function manifestOf(name, { dependencies, scripts } = {}) {
  return {
    name,
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: { test: 'node --test "agents/*.test.ts"', ...scripts },
    dependencies: { holdfast: version, ...dependencies },
    devDependencies: { "@types/node": "^24" },
  };
}

/** The npm that runs us, under the Node that runs us. */
function npm() {
  const { npm_execpath: path = "" } = process.env;
  return /npm-cli\.[cm]?js$/.test(path) ? [process.execPath, path] : ["npm"];
}

/** @returns {Promise<number | string>} the exit code, or what kept the program from ending. */
function run([command, ...first], args, cwd, running, stdio = ["ignore", 2, 2]) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !LEAKING.test(name)));
  return new Promise((end) => {
    const child = spawn(command, [...first, ...args], { cwd, env, stdio });
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text) => (said += text));
    running.add(child);
    child.on("error", (error) => end(error.message));
    child.on("close", (code, signal) => {
      running.delete(child);
      if (code !== 0) process.stderr.write(said);
      end(code ?? signal);
    });
  });
}

function fail(exitCode, code, details) {
  const { what, ...others } = details;
  const lines = Object.entries(others).map(([name, text]) => `  ${name}: ${text}\n`);
  process.stderr.write(`error[${code}]: ${what}\n${lines.join("")}`);
  return exitCode;
}
