// Checks of what runs: the local stack, its port, the coordinator that commands call, its runners and its
// clock.
//
// A token goes only to the coordinator that the user named, and to the one of the user's own stack. Another
// process may listen on the default port.

import { ERROR_TABLE, VERSION } from "@holdfast/core";
import { askForJson, isRunning } from "@holdfast/system/processes";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { count, duration, plainLine } from "@holdfast/terminal/frame/plain-text";
import { adminTokenFile, readToken } from "@holdfast/place/admin-token";
import { coordinatorToken, namedCoordinator, URL_DEFAULT } from "@holdfast/place/coordinator-access";
import { dataFolder } from "@holdfast/system";
import { findRunningStack, readStackState, stackPaths } from "@holdfast/place/local-stack";
import { listed, problemOf, type Finding } from "./check.ts";
import { portOwner } from "./port-owner.ts";

const ANSWER_MS = 3_000;
const RUNNERS_MAX = 1_000;
const CLOCK_MS = 1_000;
const VERSION_CHARS = 60;

export function checkStack(io: Io): Finding {
  const state = readStackState(stackPaths(io));
  const start = io.call("local start --agents FILE", "");
  const logs = io.call("local logs", "");
  if (state === undefined) return { status: "ok", found: "not running", fix: `${start} starts it` };
  const { supervisor, status, problem, failure, offers, url } = state;
  if (!isRunning(supervisor)) {
    if (status === "failed") return { status: "warning", found: `gave up: ${failure}`, fix: `see ${logs}` };
    if (status === "stopped")
      return { status: "ok", found: "stopped; its sessions are kept", fix: `${start} continues them` };
    return {
      status: "warning",
      found: `its supervisor, process ${supervisor.pid}, has died; its sessions are kept`,
      fix: `${start} continues them`,
    };
  }
  const agents = offers.length === 0 ? "no agents" : `agents ${listed(offers)}`;
  const found = `${status}${url === undefined ? "" : ` on ${url}`}, with ${agents}`;
  if (problem !== undefined)
    return {
      status: "warning",
      found: `${found}; changed files do not load: ${problem}`,
      fix: "correct the file; the version before still runs",
    };
  const restarts = state.processes.reduce((sum, { restarts: times }) => sum + times, 0);
  if (restarts === 0) return { status: "ok", found };
  return {
    status: "warning",
    found: `${found}; ${count(restarts, "restart")} after ends that nobody asked for`,
    fix: `see ${logs}`,
  };
}

/** The port on which a stack and a coordinator listen by default. */
export async function checkPort(io: Io): Promise<Finding> {
  const use = await portOwner(Number(new URL(URL_DEFAULT).port));
  if (use.status === "free") return { status: "ok", found: "free" };
  const stack = findRunningStack(io);
  const by = use.process ?? "an unknown process";
  if (stack?.url === URL_DEFAULT) return { status: "ok", found: `used by the local stack, ${by}` };
  const health = await askForJson(`${URL_DEFAULT}/healthz`, { ms: ANSWER_MS });
  const isCoordinator =
    health.status === "answered" && (health.body as { status?: unknown } | undefined)?.status === "ok";
  const fix = `start the stack on another port: ${io.call("local start --port 0 --agents FILE", "")}`;
  if (isCoordinator) return { status: "ok", found: `used by a coordinator, ${by}` };
  return { status: "warning", found: `used by ${by}`, fix };
}

interface Asked {
  readonly url: string;
  readonly token: string;
  readonly isStack: boolean;
}

/** The findings about one coordinator. */
export interface CoordinatorAnswer {
  readonly versions: Finding;
  readonly clock: Finding;
}

const NONE: CoordinatorAnswer = {
  versions: { status: "ok", found: "none is named, and no stack runs", fix: "HOLDFAST_URL names one" },
  clock: { status: "ok", found: "without a coordinator, the clock of this machine counts" },
};

/** Asks the coordinator that is named, or the stack's, for its version, its runners and its time. Never rejects. */
export async function askForVersions(args: Arguments, io: Io): Promise<CoordinatorAnswer> {
  let asked: Asked | undefined;
  try {
    asked = coordinatorOf(args, io);
  } catch (thrown) {
    return { ...NONE, versions: problemOf(thrown) };
  }
  return asked === undefined ? NONE : ask(asked, io);
}

/** @throws HoldfastError for a URL or a token that cannot be used. */
function coordinatorOf(args: Arguments, io: Io): Asked | undefined {
  const named = namedCoordinator(args, io);
  if (named !== undefined) return { url: named.url, token: coordinatorToken(args, io).token, isStack: false };
  const url = findRunningStack(io)?.url;
  const token = readToken(adminTokenFile(dataFolder(io)));
  return url === undefined || token === undefined ? undefined : { url, token, isStack: true };
}

async function ask({ url, token, isStack }: Asked, io: Io): Promise<CoordinatorAnswer> {
  const call = { headers: { authorization: `Bearer ${token}` }, ms: ANSWER_MS };
  const base = url.replace(/\/+$/, "");
  const before = Date.now();
  const answer = await askForJson(`${base}/v1/version`, call);
  const after = Date.now();
  const unknown: Finding = { status: "ok", found: "the coordinator's time is not known" };
  if (answer.status === "silent" || answer.code >= 500) {
    const why = answer.status === "silent" ? answer.reason : `HTTP ${answer.code}`;
    const fix = isStack
      ? `see ${io.call("local logs -c coordinator", "")}`
      : "start it with `holdfast coordinator`, or correct HOLDFAST_URL";
    const found = `${url} does not answer: ${why}`;
    return {
      versions: { status: "problem", found, fix, exitCode: ERROR_TABLE.unavailable.exit },
      clock: unknown,
    };
  }
  if (answer.code === 401 || answer.code === 403) {
    const found = `${url} refuses the token`;
    const fix = "give another by HOLDFAST_TOKEN or --token-file";
    return {
      versions: { status: "problem", found, fix, exitCode: ERROR_TABLE.unauthenticated.exit },
      clock: unknown,
    };
  }
  const { version, now } = (answer.body ?? {}) as { readonly version?: string; readonly now?: number };
  if (answer.code !== 200 || typeof version !== "string") {
    const found = `${url} does not say its version; it is older than this command`;
    return { versions: { status: "warning", found, fix: "update it" }, clock: unknown };
  }
  const runners = await runnersOf(base, call);
  return {
    versions: versionsFinding({ url, version: plainLine(version, VERSION_CHARS), runners, isStack }),
    clock: clockFinding(Number(now), before, after),
  };
}

interface RunnerSaid {
  readonly name: string;
  readonly status: string;
  readonly version?: string;
}

/** `undefined` for a caller that is no admin. */
async function runnersOf(
  base: string,
  call: { readonly headers: Readonly<Record<string, string>>; readonly ms: number },
): Promise<readonly RunnerSaid[] | undefined> {
  const page = await askForJson(`${base}/v1/runners?limit=${RUNNERS_MAX}`, call);
  if (page.status === "silent" || page.code !== 200) return undefined;
  return (page.body as { readonly runners?: readonly RunnerSaid[] } | undefined)?.runners ?? [];
}

function versionsFinding({
  url,
  version,
  runners,
  isStack,
}: {
  readonly url: string;
  readonly version: string;
  readonly runners: readonly RunnerSaid[] | undefined;
  readonly isStack: boolean;
}): Finding {
  const others = (runners ?? []).filter((runner) => runner.version !== VERSION);
  const silent = (runners ?? []).filter(({ status }) => status === "silent").length;
  const of = runners === undefined ? "runners are for admins" : count(runners.length, "runner");
  const texts = [
    `${url} has version ${version}`,
    silent === 0 ? of : `${of}, ${silent} silent`,
    ...(others.length === 0
      ? []
      : [listed(others.map((one) => `${one.name} has version ${one.version ?? "unknown"}`))]),
  ];
  const found = texts.join("; ");
  if (version === VERSION && others.length === 0) return { status: "ok", found };
  const fix = isStack
    ? `this command has version ${VERSION}: stop the stack and start it again`
    : `this command has version ${VERSION}: update what is older`;
  return { status: "warning", found, fix };
}

/** The answer was made at some moment of the call, so a difference within the call means nothing. */
function clockFinding(now: number, before: number, after: number): Finding {
  const ahead = now < before ? before - now : now > after ? after - now : 0;
  if (Math.abs(ahead) < CLOCK_MS) return { status: "ok", found: "agrees with the coordinator's" };
  return {
    status: "warning",
    found: `this machine's clock is ${duration(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"} the coordinator's`,
    fix: "synchronise the clocks of all machines, for example by NTP",
  };
}
