// record-demo: plays the README's demonstration with real processes and draws it as an animated picture,
// docs/demo.svg.
//
//   npm run demo        in an empty folder: start an agent, kill its process with -9, resume it, approve
//
// Every line in the picture was printed by the command; only the process id and the waiting times are
// shortened.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const bin = join(root, "node_modules", ".bin");
const SESSION = "release";
const GIVE_UP_MS = 20_000;

/** A line of the picture: its text, when it appears in seconds, and how it is coloured. */
interface Line {
  readonly text: string;
  readonly at: number;
  readonly kind: "typed" | "output" | "remark";
}

const folder = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
const lines: Line[] = [];
let clock = 0.5;
try {
  cpSync(join(root, "examples", "04-approval", "deploy.ts"), join(folder, "deploy.ts"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}\n');
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  await play();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
writeFileSync(join(root, "docs", "demo.svg"), draw(lines, clock + 4));
console.log(`docs/demo.svg: ${lines.length} lines, ${clock + 4} s`);

async function play(): Promise<void> {
  type(`npx holdfast run deploy.ts --session ${SESSION}`);
  const first = start("run", "deploy.ts", "--session", SESSION);
  show(await first.until(/withdraw \[JSON\]/));
  remark("its process dies while it waits:");
  type(`kill -9 ${first.child.pid}`);
  first.child.kill("SIGKILL");
  await first.ended;

  type(`npx holdfast resume ${SESSION}`);
  const second = start("resume", SESSION);
  const before = await second.until(/withdraw \[JSON\]/);
  show(before);
  remark(`from another terminal: npx holdfast approve ${SESSION}`);
  const approved = spawnSync("holdfast", ["approve", SESSION], { cwd: folder, env: environment() });
  if (approved.status !== 0) throw new Error(`approve: ${String(approved.stderr)}`);
  await second.ended;
  show(second.output().slice(before.length));
}

function start(...args: readonly string[]) {
  const child: ChildProcess = spawn("holdfast", args, { cwd: folder, env: environment() });
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const until = async (pattern: RegExp): Promise<string> => {
    const deadline = Date.now() + GIVE_UP_MS;
    while (!pattern.test(output)) {
      if (Date.now() > deadline) throw new Error(`the command printed no ${String(pattern)}: ${output}`);
      await sleep(20);
    }
    return output;
  };
  return { child, ended, until, output: () => output };
}

function environment(): NodeJS.ProcessEnv {
  return {
    PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`,
    HOME: folder,
    LANG: "C.UTF-8",
    COLUMNS: "90",
  };
}

function type(text: string): void {
  clock += 0.8;
  lines.push({ text: `$ ${text}`, at: clock, kind: "typed" });
  clock += 0.7;
}

function remark(text: string): void {
  clock += 1.4;
  lines.push({ text: `# ${text}`, at: clock, kind: "remark" });
}

function show(output: string): void {
  for (const text of stripVTControlCharacters(output).trimEnd().split("\n")) {
    lines.push({ text: text.trimEnd(), at: clock, kind: "output" });
    clock += 0.12;
  }
}

/** The lines as an SVG whose lines appear one after the other, over and over. */
function draw(shown: readonly Line[], seconds: number): string {
  const lineHeight = 19;
  const width = 820;
  const height = shown.length * lineHeight + 34;
  const percent = (at: number) => ((100 * at) / seconds).toFixed(2);
  const styles = shown.map(
    ({ at }, index) =>
      `.l${index}{animation:a${index} ${seconds.toFixed(1)}s infinite}` +
      `@keyframes a${index}{0%,${percent(at)}%{opacity:0}${percent(at + 0.05)}%,100%{opacity:1}}`,
  );
  const texts = shown.map(
    ({ text, kind }, index) =>
      `<text class="l${index} ${kind}" x="18" y="${30 + index * lineHeight}" xml:space="preserve">${escape(text)}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="A terminal: an agent waits for an approval, its process is killed, resume continues it">`,
    "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d0d7de}",
    ".typed{fill:#fff;font-weight:600}.remark{fill:#8b949e;font-style:italic}",
    "@media (prefers-reduced-motion:reduce){text{animation:none!important;opacity:1}}",
    `${styles.join("\n")}</style>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    ...texts,
    "</svg>",
    "",
  ].join("\n");
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
