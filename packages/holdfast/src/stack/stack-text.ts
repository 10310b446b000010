// The local stack as text for people: the banner of its start, and its status.

import { count, duration, localTime, table } from "@holdfast/terminal/frame/plain-text";
import { programOf } from "@holdfast/machine/agent-source";
import type { Io } from "@holdfast/terminal/frame/command";
import type { StackPaths, StackState } from "@holdfast/place/local-stack";

/** The banner: what runs, where its data is, and how to stop it. */
export function reportStack(state: StackState, paths: StackPaths, io: Io): void {
  const { url = "", agents, project, executor, policy } = state;
  if (io.isJson) return io.result({ ...state, folder: paths.folder, log: paths.log }, "");
  const { paint, symbols } = io.notes;
  const programs = agents.flatMap((agent) => programOf(agent) ?? []);
  const files = agents.filter((agent) => programOf(agent) === undefined);
  const runs = [
    ...(files.length > 0 || (executor === undefined && programs.length === 0)
      ? [`${count(files.length, "file")} of agents`]
      : []),
    ...programs,
    ...(executor === undefined ? [] : [`the executor ${executor}`]),
  ].join(" and ");
  io.note(`${paint.green(symbols.done)} the local stack runs: a coordinator and a runner with ${runs}`);
  for (const line of table([
    ["  url", url],
    ["  project", project],
    ...(policy === undefined ? [] : [["  policy", policy]]),
    ["  data", paths.folder.replace(/\/local$/, "")],
    ["  logs", `${paths.log}  (${io.call("local logs -f", "")})`],
    ["  stop", io.call("local stop", "")],
  ]))
    io.note(line);
}

/** The status as lines. @param isAlive whether the supervisor that wrote the state still runs. */
export function statusLines(state: StackState, isAlive: boolean, paths: StackPaths, now: number): string[] {
  const { status, supervisor, startedAt, url, project, agents, executor, policy, problem, failure } = state;
  const stands = isAlive ? status : status === "failed" ? "failed" : "not running";
  const rows = [
    ["stack", stands],
    ...(isAlive ? [["since", `${localTime(startedAt)} (${duration(now - startedAt)})`]] : []),
    ...(isAlive && url !== undefined ? [["url", url]] : []),
    ["project", project],
    ["agents", agents.join(", ")],
    ...(executor === undefined ? [] : [["executor", executor]]),
    ...(policy === undefined ? [] : [["policy", policy]]),
    ["log", paths.log],
    ...(problem === undefined ? [] : [["problem", `${problem}; the version before still runs`]]),
    ...(failure === undefined ? [] : [["failure", failure]]),
  ];
  if (!isAlive) return table(rows);
  const processes = state.processes.map(({ component, status: of, pid, restarts, lastEnd }) => [
    component,
    of,
    pid === undefined ? "" : String(pid),
    String(restarts),
    lastEnd ?? "",
  ]);
  return [
    ...table(rows),
    "",
    ...table([
      ["PROCESS", "STATUS", "PID", "RESTARTS", "LAST END"],
      ["supervisor", "ready", String(supervisor.pid), "", ""],
      ...processes,
    ]),
  ];
}
