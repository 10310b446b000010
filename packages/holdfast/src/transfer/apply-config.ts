// `applyConfig`: replaces the configuration of this machine by that of a file, all of it or nothing.
//
//   - Everything is checked and written beside its place first. Then files get their names, and all schedules
//     are stored in one transaction. An error brings the former files back. A process that is killed in
//     between leaves a part, and the same import repeated does the rest.
//   - Nothing is written through a link.

import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import {
  checkBudget,
  ConflictError,
  defined,
  encodeJson,
  HoldfastError,
  type AgentStorage,
  type Change,
  type Schedule,
} from "@holdfast/core";
import { createPrivate, makePrivateFolder, replacePrivate } from "@holdfast/system";
import { readCron } from "@holdfast/runtime";
import { refuseOtherFile } from "../sessions/schedule-changes.ts";
import { agentSourceText } from "@holdfast/machine/agent-source";
import { unwritable } from "@holdfast/terminal/frame/new-file";
import { withStorage } from "@holdfast/place/find-session";
import { makeProjectFolder } from "@holdfast/place/project";
import type { ConfigChange } from "./config-difference.ts";
import { sorted, type ConfigFile, type MovedSchedule } from "./config-file.ts";
import { lookAt, type ConfigPlaces } from "./found-config.ts";

interface Write {
  readonly path: string;
  readonly text: string;
  /** The folder that the import may write below. */
  readonly base: string;
}

/** @param changes those of `given` against `here`. @throws HoldfastError, with nothing changed. */
export async function applyConfig(
  here: ConfigFile,
  given: ConfigFile,
  changes: readonly ConfigChange[],
  places: ConfigPlaces,
): Promise<void> {
  const isChanged = (place: string): boolean => changes.some(({ what }) => what.startsWith(place));
  const writes = writesOf(here, given, isChanged, places);
  for (const write of writes) refuseLinks(write);
  const schedules = given.project.schedules.filter(({ id }) =>
    changes.some(({ what }) => what === `project/schedules/${id}`),
  );
  if (schedules.length === 0) {
    replaceAll(writes, places);
    return;
  }
  await withStorage(places.database, async ({ storage }) => {
    const rows = await rowsOf(schedules, storage, places.project);
    const restore = replaceAll(writes, places);
    try {
      await store(rows, storage);
    } catch (error) {
      restore();
      throw error;
    }
  });
}

function writesOf(
  here: ConfigFile,
  given: ConfigFile,
  isChanged: (place: string) => boolean,
  { projectSettings, projectAgents, userSettings, userAgents, policy, project }: ConfigPlaces,
): readonly Write[] {
  const writes: Write[] = [];
  const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;
  const need = (path: string | undefined, what: string): string => {
    if (path !== undefined) return path;
    throw new HoldfastError("config_invalid", `there is no folder here for ${what}`, {
      at: "HOME",
      expected: "a home folder that is not the project itself",
      fix: "set HOME, or import in the folder of a project",
    });
  };
  if (isChanged("user/settings/")) {
    const path = need(userSettings, "your settings");
    const text = json(sorted({ ...here.user.settings, ...given.user.settings }));
    writes.push({ path, text, base: dirname(dirname(path)) });
  }
  if (isChanged("permissions/runnerPolicy/")) {
    const path = need(policy, "the policy of the runner");
    writes.push({ path, text: json(given.permissions.runnerPolicy ?? {}), base: dirname(dirname(path)) });
  }
  if (isChanged("project/settings/")) {
    const text = json(sorted({ ...here.project.settings, ...given.project.settings }));
    writes.push({ path: projectSettings, text, base: project });
  }
  for (const [name, text] of Object.entries(given.project.agents))
    if (isChanged(`project/agents/${name}`))
      writes.push({ path: join(projectAgents, name), text, base: project });
  for (const [name, text] of Object.entries(given.user.agents)) {
    if (!isChanged(`user/agents/${name}`)) continue;
    const folder = need(userAgents, "your agents");
    writes.push({ path: join(folder, name), text, base: dirname(dirname(folder)) });
  }
  return writes;
}

/** @throws HoldfastError `config_invalid`. */
function refuseLinks({ path, base }: Write): void {
  const steps = path.slice(base.length + 1).split(sep);
  for (let n = 1; n <= steps.length; n++) {
    const at = join(base, ...steps.slice(0, n));
    const found = lookAt(at);
    const isRight = n === steps.length ? found?.isFile() : found?.isDirectory();
    if (found === undefined || isRight === true) continue;
    throw new HoldfastError(
      "config_invalid",
      `${at} is a link, or of another kind than the import would make`,
      {
        at,
        expected: n === steps.length ? "a file or nothing" : "a folder or nothing",
        fix: "move it away, or import somewhere else; nothing was changed",
      },
    );
  }
}

/** @returns how to bring the former files back. */
function replaceAll(writes: readonly Write[], { database }: ConfigPlaces): () => void {
  const drafts: { readonly path: string; readonly draft: string; readonly former: string | undefined }[] = [];
  let named = 0;
  const restore = (): void => {
    for (const { path, former } of drafts.slice(0, named)) {
      if (former === undefined) rmSync(path, { force: true });
      else replacePrivate(path, former);
    }
    for (const { draft } of drafts.slice(named)) rmSync(draft, { force: true });
  };
  let at = "";
  try {
    if (writes.length > 0) makeProjectFolder({ ...database, origin: "default" });
    for (const { path, text } of writes) {
      at = path;
      makePrivateFolder(dirname(path));
      const former = lookAt(path) === undefined ? undefined : readFileSync(path, "utf8");
      const draft = `${path}.${randomBytes(6).toString("hex")}.part`;
      createPrivate(draft, text);
      drafts.push({ path, draft, former });
    }
    for (const { path, draft } of drafts) {
      at = path;
      renameSync(draft, path);
      named++;
    }
    return restore;
  } catch (error) {
    restore();
    throw HoldfastError.is(error) ? error : unwritable(at, error as NodeJS.ErrnoException);
  }
}

async function rowsOf(
  schedules: readonly MovedSchedule[],
  storage: AgentStorage,
  project: string,
): Promise<readonly Schedule[]> {
  const known = await storage.reader.schedules();
  const now = Date.now();
  return schedules.map(({ id: scheduleId, cron, timeZone, start, signal }) => {
    const times = { nextAt: readCron(cron, timeZone).after(now), createdAt: now };
    if (signal !== undefined) {
      const { sessionId, name, payload } = signal;
      const text = encodeJson(payload, `payload of schedule ${scheduleId}`);
      return {
        scheduleId,
        cron,
        timeZone,
        action: { type: "signal", sessionId, name, payload: text },
        ...times,
      };
    }
    const { agent: name, version, input, budget, demands, priority } = start!;
    const source = sourceOf(start!, project);
    if (source !== undefined) refuseOtherFile(known, { agent: { name }, file: source, id: scheduleId });
    const placement = { ...(demands && { demands }), ...(priority !== undefined && { priority }) };
    return {
      scheduleId,
      cron,
      timeZone,
      action: {
        type: "start",
        agent: { name, version, ...defined({ file: source }) },
        input: encodeJson(input, `input of schedule ${scheduleId}`),
        ...(budget === undefined ? {} : { budget: checkBudget(budget) }),
        ...(Object.keys(placement).length === 0 ? {} : { placement }),
      },
      ...times,
    };
  });
}

/** The source of the agent as a session stores it. */
function sourceOf(
  { file, program }: NonNullable<MovedSchedule["start"]>,
  project: string,
): string | undefined {
  if (program !== undefined) return agentSourceText({ kind: "program", name: program });
  return file === undefined ? undefined : join(project, file);
}

/** All in one group. @throws ConflictError when storage refuses one; then the others are taken back. */
async function store(rows: readonly Schedule[], storage: AgentStorage): Promise<void> {
  const before = new Map((await storage.reader.schedules()).map((row) => [row.scheduleId, row]));
  const puts = rows.map((schedule): Change => ({ type: "put_schedule", schedule }));
  const results = await storage.commit(puts, Date.now());
  const wrong = results.findIndex(({ status }) => status !== "done");
  if (wrong < 0) return;
  const undo = rows.map(({ scheduleId }): Change => {
    const former = before.get(scheduleId);
    if (former === undefined) return { type: "remove_schedule", scheduleId };
    return { type: "put_schedule", schedule: former };
  });
  await storage.commit(undo, Date.now());
  const result = results[wrong]!;
  throw new ConflictError("conflict", `the schedule ${rows[wrong]!.scheduleId} cannot be stored`, {
    got: "reason" in result ? result.reason : result.status,
    fix: "correct the schedule in the file; nothing was changed",
  });
}
