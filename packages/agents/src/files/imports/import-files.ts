// `importedAgents`: the agents of a file that is imported. It is `agent.yaml` of Docker, a managed agent of
// Anthropic, or `opencode.json`.
//
// Such a file may have several agents, and it is not looked for in a project.

import { basename, extname } from "node:path";
import { foundAt } from "../../places/agent-places.ts";
import { FileProblem, jsoncObject, readText } from "../../format/front-matter.ts";
import type { AgentFile } from "../load-agent-file.ts";
import { readDockerFile } from "./docker-agents.ts";
import { readImported, type ImportedFile } from "./imported-agent.ts";
import { readManagedFile } from "./managed-agents.ts";
import { readOpencodeConfig } from "./opencode-config.ts";

const ENDINGS = [".yaml", ".yml", ".json", ".jsonc"];

/** @returns one item for a file as a whole that cannot be read; nothing for a file of another kind. */
export function importedAgents(path: string): readonly AgentFile[] | undefined {
  if (!ENDINGS.includes(extname(path)) || foundAt(path).dialect === "folder") return undefined;
  try {
    const text = readText(path);
    const file = parse(text, path);
    return file.agents.map((agent) => readImported(path, text, file, agent));
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    const { message, fix, line, column } = error;
    const dialect = dialectOf(path);
    return [
      {
        path,
        dialect,
        scope: "path",
        within: null,
        name: basename(path).replace(/\..*$/, ""),
        record: null,
        verdicts: [],
        problem: { message, fix, line, column },
      },
    ];
  }
}

function dialectOf(path: string): ImportedFile["dialect"] {
  if (/^\.ya?ml$/.test(extname(path))) return "docker";
  return /^opencode\.jsonc?$/.test(basename(path)) ? "opencode-config" : "managed";
}

/** @throws FileProblem */
function parse(text: string, path: string): ImportedFile {
  const dialect = dialectOf(path);
  if (dialect === "docker") return readDockerFile(text);
  const values = jsoncObject(text, basename(path));
  if (dialect === "opencode-config" || /opencode/.test(String(values["$schema"])))
    return readOpencodeConfig(values, path);
  if (!("model" in values) || !("name" in values))
    throw new FileProblem(
      "it is no file with an agent that Holdfast knows",
      "name an agent file, opencode.json, a managed agent (with name, model and system), or agent.yaml of Docker",
    );
  return readManagedFile(values);
}
