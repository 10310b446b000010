// `holdfast agents push`, `skill push` and `script push --catalogue`: contents of this machine for a
// coordinator.
//
// Everything is read and checked before the first content is pushed. A content that is refused here is not
// pushed.

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import {
  agentFileText,
  findAgent,
  findScripts,
  findSkills,
  presentContent,
  readFolderContent,
  type AgentRecord,
} from "@holdfast/agents";
import { HoldfastError, UsageError } from "@holdfast/core";
import { agentPlaces } from "../agents/agent-places.ts";
import { findSkill } from "./show-skills.ts";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { noteName, pickScript } from "./show-scripts.ts";
import { pushContents, type PushedContent } from "@holdfast/place/calls/catalogue-calls";

/** Pushes agent files by their names or paths. */
export async function pushAgents(names: readonly string[], args: Arguments, io: Io): Promise<number> {
  if (names.length === 0)
    throw new UsageError("no agent file is named", { expected: "the name or the path of an agent file" });
  const records = names.map((name) => findAgent(name, agentPlaces(io), io.cwd));
  const doubled = records.find(({ name }, at) => records.findIndex((other) => other.name === name) < at);
  if (doubled !== undefined)
    throw new UsageError(`two of the files have the agent ${doubled.name}`, { fix: "push one of them" });
  return pushContents(records.map(contentOf), args, io);
}

/** An agent of another tool, or of a folder, is pushed in our own form. */
function contentOf(record: AgentRecord): PushedContent {
  const { name, description, source, environments, variables } = record;
  const text = source.dialect === "holdfast" ? readFileSync(source.path, "utf8") : agentFileText(record);
  const base64 = Buffer.from(text).toString("base64");
  const files = [{ path: `${name}.md`, base64, executable: false }];
  return { kind: "agent", name, description, files, environments, variables };
}

/** Pushes skills by their names. */
export async function pushSkills(names: readonly string[], args: Arguments, io: Io): Promise<number> {
  if (names.length === 0) throw new UsageError("no skill is named", { expected: "the name of a skill" });
  const skills = findSkills(agentPlaces(io));
  const contents = [...new Set(names)].map((name): PushedContent => {
    const { status, path, description } = findSkill(name, skills);
    if (status === "refused" || status === "untrusted") throw notUsable("skill", name, status, path);
    return { kind: "skill", name, description, files: filesOf(readFolderContent(dirname(path)).files) };
  });
  return pushContents(contents, args, io);
}

/** Pushes the present contents of scripts by their names. */
export async function pushScripts(names: readonly string[], args: Arguments, io: Io): Promise<number> {
  if (names.length === 0) throw new UsageError("no script is named", { expected: "the name of a script" });
  const places = agentPlaces(io);
  const scripts = findScripts(places);
  const contents = [...new Set(names)].map((name): PushedContent => {
    const script = pickScript(name, scripts);
    if (script.status === "untrusted") throw notUsable("script", name, "untrusted", script.path);
    const { content, manifest } = presentContent(script, places);
    noteName(name, io);
    return { kind: "script", name, description: manifest.description, files: filesOf(content.files) };
  });
  return pushContents(contents, args, io);
}

function notUsable(
  kind: "skill" | "script",
  name: string,
  status: "refused" | "untrusted",
  at: string,
): HoldfastError {
  return status === "untrusted"
    ? new HoldfastError("policy_denied", `the ${kind} ${name} is of a project that you have not trusted`, {
        at,
        fix: `read the ${kind}, and then run \`holdfast agents trust\``,
      })
    : new HoldfastError("agent_invalid", `the ${kind} ${name} is refused`, {
        at,
        fix: `run \`holdfast ${kind} show ${name}\` to see the reason`,
      });
}

function filesOf(files: ReturnType<typeof readFolderContent>["files"]): PushedContent["files"] {
  return files.map(({ path, bytes, isExecutable }) => ({
    path,
    base64: bytes.toString("base64"),
    executable: isExecutable,
  }));
}
