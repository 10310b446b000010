// One command in a remote sandbox, as an archive that goes there (`packJob`) and one that comes back
// (`readJob`).
//
//   - The script writes the files that have changed, runs the command, ends everything that it started, and
//     packs what the command changed. A process that a command started has a mark in its environment.
//   - Values of variables are in a file of the archive, and in no argument of a process.
//   - Output, files and time are limited there. The archive that comes back is checked here.

import { randomUUID } from "node:crypto";

import type { Launch } from "../../workspace/execute.ts";
import { WORKSPACE_LIMITS } from "../../workspace/limits.ts";
import { packTar, unpackTar, type TarFile } from "./tar.ts";

/** Folders that stay where they are: the repository, Holdfast's own files, and what tools install. */
export const STAYING: readonly string[] = [".git", ".holdfast", "node_modules", ".venv", "__pycache__"];

/** The output of a stream that comes back. A longer one loses its end there. */
const OUTPUT_BYTES = WORKSPACE_LIMITS.outputBytes;
/** The folder of jobs in a sandbox. */
const JOBS = "/tmp/holdfast-jobs";
const MARK = "HOLDFAST_JOB";

export interface JobInput {
  readonly request: Pick<Launch, "argv" | "cwd" | "env" | "timeoutMs" | "input">;
  readonly root: string;
  /** The files that have changed here, by their paths from the root. */
  readonly changed: readonly TarFile[];
  /** Files that are gone here. */
  readonly removed: readonly string[];
  /** The sandbox has nothing of this folder yet, or nobody knows what it has. */
  readonly isFresh: boolean;
  readonly fileBytes: number;
}

export interface Job {
  readonly archive: Buffer;
  readonly archivePath: string;
  readonly resultPath: string;
  /** The line that runs the job. */
  readonly line: string;
}

export interface JobResult {
  readonly exitCode: number;
  readonly isTimedOut: boolean;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** The paths of all files below the root, except for those that stay there. */
  readonly names: ReadonlySet<string>;
  readonly changed: readonly TarFile[];
}

export function packJob({ request, root, changed, removed, isFresh, fileBytes }: JobInput): Job {
  const id = randomUUID();
  const folder = `${JOBS}/${id}`;
  const { argv, cwd, env, timeoutMs, input = "" } = request;
  // The programs and the home folder are those of the image. Folders of the workspace stand behind them.
  const { PATH: programs = "", HOME: _home, ...given } = env;
  const added = programs.split(":").filter((one) => one.startsWith(`${root}/`));
  const variables = [
    ...Object.entries({ ...given, TMPDIR: "/tmp" }).map(([name, value]) => `export ${name}=${quote(value)}`),
    ...added.map((one) => `PATH=$PATH:${quote(one)}`),
  ];
  const limits = [`ulimit -f ${Math.ceil(fileBytes / 512)}`, "ulimit -c 0"];
  const command = [
    ...variables,
    ...limits,
    `cd ${quote(cwd)} || exit 126`,
    `exec ${argv.map(quote).join(" ")}`,
  ];
  const scripts = {
    "run.sh": runScript({ root, isFresh, id, timeoutMs, fileBytes }),
    "command.sh": `${command.join("\n")}\n`,
    input,
    removed: removed.map((path) => `./${path}\0`).join(""),
  };
  const archive = packTar([
    ...Object.entries(scripts).map(([path, text]) => ({ path, bytes: Buffer.from(text), mode: 0o600 })),
    ...changed.map((file) => ({ ...file, path: `files/${file.path}` })),
  ]);
  const archivePath = `/tmp/holdfast-job-${id}.tar`;
  const resultPath = `/tmp/holdfast-result-${id}.tar`;
  const unpack = `mkdir -p ${folder} && tar -xf ${archivePath} -C ${folder}`;
  return {
    archive,
    archivePath,
    resultPath,
    line: `umask 077; rm -rf ${JOBS}; rm -f /tmp/holdfast-result-*; ${unpack} && rm -f ${archivePath} && sh ${folder}/run.sh ${folder} ${resultPath}`,
  };
}

/** The line that ends every command of Holdfast in the sandbox. */
export const END_ALL = endOf("");

/** @throws Error for an archive that is damaged. */
export function readJob(archive: Buffer): JobResult {
  const files = unpackTar(archive);
  const own = new Map(
    files.flatMap(({ path, bytes }) => (path.startsWith("out/") ? [[path.slice(4), bytes] as const] : [])),
  );
  const exitCode = Number((own.get("exit") ?? "").toString().trim());
  if (!Number.isInteger(exitCode) || !own.has("names"))
    throw new Error("the sandbox did not say how the command ended");
  const names = (own.get("names") ?? Buffer.alloc(0))
    .toString("utf8")
    .split("\0")
    .filter((name) => name !== "");
  return {
    exitCode,
    isTimedOut: own.has("timeout"),
    stdout: own.get("stdout") ?? Buffer.alloc(0),
    stderr: own.get("stderr") ?? Buffer.alloc(0),
    names: new Set(names.map(fromRoot)),
    changed: files.flatMap((file) =>
      file.path.startsWith("./") ? [{ ...file, path: fromRoot(file.path) }] : [],
    ),
  };
}

function fromRoot(path: string): string {
  return path.replace(/^\.\//, "");
}

interface ScriptOptions {
  readonly root: string;
  readonly isFresh: boolean;
  readonly id: string;
  readonly timeoutMs: number;
  readonly fileBytes: number;
}

function runScript({ root, isFresh, id, timeoutMs, fileBytes }: ScriptOptions): string {
  const at = quote(root);
  const staying = STAYING.map((name) => `-name ${name}`).join(" -o ");
  const found = `find . \\( ${staying} \\) -prune -o -type f`;
  // A program that writes more than is kept must not be ended by a closed pipe.
  const keep = `head -c ${OUTPUT_BYTES + 1}`;
  return `job=$1 result=$2
mkdir -p ${at} 2>/dev/null || { sudo mkdir -p ${at} && sudo chown "$(id -u):$(id -g)" ${at}; } || exit 97
cd ${at} || exit 97
${isFresh ? `find . -mindepth 1 -maxdepth 1 \\( ${staying} \\) -prune -o -mindepth 1 -maxdepth 1 -exec rm -rf {} +` : ""}
xargs -0 rm -f -- < "$job/removed"
if [ -d "$job/files" ]; then (cd "$job/files" && tar -cf - .) | tar -xpf - || exit 97; fi
mkdir "$job/out" && mkfifo "$job/o" "$job/e" && sleep 0.05 && : > "$job/marker" && sleep 0.05
{ ${keep} > "$job/out/stdout"; cat > /dev/null; } < "$job/o" & first=$!
{ ${keep} > "$job/out/stderr"; cat > /dev/null; } < "$job/e" & second=$!
end() { ${endOf(id)}; }
env -i PATH="$PATH" HOME="$HOME" ${MARK}=${id} sh "$job/command.sh" < "$job/input" > "$job/o" 2> "$job/e" & command=$!
{ sleep ${timeoutMs / 1_000}; : > "$job/out/timeout"; end; } > /dev/null 2>&1 & watch=$!
wait $command; code=$?
kill $watch 2>/dev/null
end
wait $first $second
echo $code > "$job/out/exit"
cd ${at} || exit 97
${found} -print0 > "$job/out/names"
${found} -cnewer "$job/marker" -size -$((${fileBytes} + 1))c -print0 > "$job/changed"
tar -cf "$result" -C "$job" out -C ${at} --null -T "$job/changed" 2>/dev/null
[ -s "$result" ]
`;
}

/** Ends processes with a mark until there is none. @param id of one job, or nothing for all. */
function endOf(id: string): string {
  const marked = `grep -lz '^${MARK}=${id}' /proc/[0-9]*/environ 2>/dev/null`;
  return `n=0; while [ $n -lt 50 ]; do p=$(${marked} | cut -d/ -f3); [ -n "$p" ] || break; kill -9 $p 2>/dev/null; n=$((n+1)); sleep 0.02; done`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
