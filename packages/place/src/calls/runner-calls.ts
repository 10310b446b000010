// `holdfast runners`: asks a coordinator for its runners, as an admin.

import { defined } from "@holdfast/core";
import type { Client } from "@connectrpc/connect";
import { RunnerService, type Runner } from "@holdfast/proto";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { allRunners, askCoordinator } from "./coordinator-call.ts";
import { moment } from "@holdfast/terminal/view/describe-session";
import { count, duration, localTime, plainLine, table } from "@holdfast/terminal/frame/plain-text";

const CELL_CHARS = 100;

/** @returns the exit code. */
export async function listRunners(args: Arguments, io: Io): Promise<number> {
  const runners = (await asAdmin(args, io, allRunners)).map(runnerJson);
  const now = Date.now();
  const rows = runners.map((runner) =>
    [
      runner.name,
      runner.runnerId,
      runner.status,
      runner.hostname,
      `${runner.held}/${runner.maxRuns}`,
      runner.owner ?? "",
      `${duration(Math.max(0, now - runner.seenAt))} ago`,
      labelsOf(runner),
      namesOf(runner).join(", "),
    ].map((cell) => plainLine(cell, CELL_CHARS)),
  );
  const head = ["NAME", "ID", "STATUS", "HOST", "HELD", "OWNER", "SEEN", "LABELS", "AGENTS AND TASKS"];
  io.show(runners, runners.length === 0 ? "" : table([head, ...rows]).join("\n"));
  if (runners.length === 0) io.note("no runner is registered: `holdfast runner` starts one");
  return 0;
}

/** @returns the exit code. */
export async function showRunner(text: string, args: Arguments, io: Io): Promise<number> {
  const runner = runnerJson(await asAdmin(args, io, (service) => service.get({ runnerId: text })));
  const rows = [
    ["runner", runner.name],
    ["id", runner.runnerId],
    ["status", runner.status],
    ["version", runner.version ?? "not said"],
    ["host", runner.hostname],
    ["project", runner.project],
    ["owner", runner.owner ?? "none: it takes sessions of all users"],
    ["holds", `${runner.held} of ${count(runner.maxRuns, "session")}`],
    ["labels", labelsOf(runner)],
    ["agents", runner.agents.map(({ name, version }) => `${name} ${version ?? ""}`.trim()).join(", ")],
    ["refuses", runner.refusedAgents.map(({ name, problem }) => `${name}: ${problem}`).join("; ")],
    ["tasks", runner.taskKinds.join(", ")],
    ["registered", localTime(runner.registeredAt)],
    ["seen", moment(runner.seenAt, Date.now())],
  ];
  io.show(runner, table(rows.map((row) => row.map((cell) => plainLine(cell, Infinity)))).join("\n"));
  return 0;
}

/** @returns the exit code. */
export async function drainRunner(text: string, args: Arguments, io: Io): Promise<number> {
  const runner = runnerJson(await asAdmin(args, io, (service) => service.drain({ runnerId: text })));
  io.result(runner, "");
  const { name, held } = runner;
  io.note(
    `${plainLine(name, CELL_CHARS)} takes nothing new, and ends when its work is done; it holds ${count(held, "session")}`,
  );
  return 0;
}

/** @returns the exit code. */
export async function deleteRunner(runnerId: string, args: Arguments, io: Io): Promise<number> {
  await asAdmin(args, io, (service) => service.delete({ runnerId }));
  io.result({ runnerId, status: "deleted" }, "");
  io.note(`${plainLine(runnerId, CELL_CHARS)} is deleted, and its token is revoked`);
  return 0;
}

function labelsOf({ labels }: Pick<ReturnType<typeof runnerJson>, "labels">): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

function namesOf({
  agents,
  taskKinds,
}: Pick<ReturnType<typeof runnerJson>, "agents" | "taskKinds">): string[] {
  return [...agents.map(({ name }) => name), ...taskKinds];
}

function runnerJson(runner: Runner) {
  const {
    runnerId,
    name,
    hostname,
    project,
    labels,
    agents,
    taskKinds,
    maxRuns,
    status,
    owner,
    held,
    version,
    refusedAgents,
  } = runner;
  return {
    runnerId,
    name,
    hostname,
    project,
    labels,
    agents: agents.map((agent) => {
      return { name: agent.name, ...defined({ version: agent.version }) };
    }),
    taskKinds,
    maxRuns,
    ...defined({ version }),
    status,
    ...defined({ owner }),
    held,
    refusedAgents: refusedAgents.map((refused) => ({ name: refused.name, problem: refused.problem })),
    registeredAt: Number(runner.registeredAt),
    seenAt: Number(runner.seenAt),
  };
}

function asAdmin<T>(
  args: Arguments,
  io: Io,
  ask: (runners: Client<typeof RunnerService>) => Promise<T>,
): Promise<T> {
  return askCoordinator(args, io, (connection) => ask(connection.client(RunnerService)));
}
