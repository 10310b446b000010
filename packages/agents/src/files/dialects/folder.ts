// The dialect of a folder with `agent.json`, `agent.system-prompt.md` and `agent.mcp.json` (`agents/NAME/`).

import { join } from "node:path";
import { existsSync } from "node:fs";
import { z } from "zod";
import type { AgentHook } from "../../record/agent-record.ts";
import { DEMANDS_TEXT, demandsOf, demandsValue } from "../../record/demands.ts";
import { field, HONOURED, ignored, mapped, refused } from "../../format/fields.ts";
import { FileProblem, readJson, readText, type ParsedFile } from "../../format/front-matter.ts";
import { mcpServerValue, takeServers } from "../../format/mcp-servers.ts";
import { checkJsonSchema } from "../../format/schema-check.ts";
import { capabilityFiles, joinTexts, readCapabilities } from "./capability-folders.ts";
import { descriptionRule, listSkills, nameRule, tagsRule, type Dialect } from "./dialect.ts";

/** The files of the folder form. Each may be missing but the first. */
const FOLDER_FILES = ["agent.json", "agent.system-prompt.md", "agent.mcp.json", ".disabled"] as const;

const NO_MODEL = "an agent of the type procedural has no model that could use it";

const schema = (what: "inputSchema" | "outputSchema") =>
  field(z.record(z.string(), z.unknown()).describe("a JSON Schema"), (value, draft) => {
    if (what === "inputSchema" && draft.script !== undefined)
      return refused("the parameters of the script check the input; write the schema into script.json");
    const problem = checkJsonSchema(value);
    if (problem !== undefined) return refused(`it is no JSON Schema: ${problem}`);
    draft[what] = value;
    return mapped(what === "inputSchema" ? "holdfast.input" : "holdfast.output");
  });

/** The capabilities of an agent, once their folders were read. */
const merged = z.strictObject({ names: z.array(z.string()), scripts: z.array(z.string()) });

const hook = z.strictObject({
  type: z.literal("agent"),
  agent_name: z.string().min(1),
  on_error: z.enum(["block", "continue"]).default("continue"),
  timeout_seconds: z.number().positive().max(600).default(300),
});
const hooks = z.strictObject({ on_run_start: hook.optional(), on_run_finish: hook.optional() });

function hookOf(
  point: string,
  { agent_name: name, on_error: onError, timeout_seconds: seconds }: z.output<typeof hook>,
): AgentHook {
  return {
    point: point === "on_run_start" ? "on_run_start" : "on_run_finish",
    tools: null,
    run: { type: "agent", name },
    timeoutMs: seconds * 1_000,
    onError,
    claudeEvent: null,
  };
}

export const folder: Dialect = {
  name: "folder",
  promptField: "system_prompt",
  table: {
    restricting: ["parameters_schema", "output_schema", "demands", "hooks"],
    owner: "of an agent's folder",
    rules: {
      name: nameRule,
      description: descriptionRule,
      type: field(
        z.enum(["autonomous", "procedural"]).describe("autonomous or procedural"),
        (value, draft) => {
          if (value === "autonomous") return HONOURED;
          draft.script = ""; // The field script follows, and `readFolder` has seen it.
          return mapped("an agent without a model (holdfast.script)");
        },
      ),
      parameters_schema: schema("inputSchema"),
      output_schema: schema("outputSchema"),
      demands: field(demandsValue, (value, draft) => {
        draft.labels = demandsOf(value);
        return mapped(`holdfast.demands, honoured ${DEMANDS_TEXT}; a tag is a label that is true`);
      }),
      mcpServers: field(
        z.record(z.string(), mcpServerValue).describe("MCP servers by name"),
        (value, draft, report) => {
          if (draft.script !== undefined) return refused(NO_MODEL);
          return takeServers(Object.entries(value), "mcpServers", draft, report);
        },
      ),
      skills: field(z.array(z.string()).describe("names of skills"), (value, draft) =>
        draft.script === undefined ? listSkills(value, draft) : refused(NO_MODEL),
      ),
      capabilities: field(merged.describe("names of capabilities"), ({ names, scripts }, draft) => {
        if (draft.script !== undefined) return refused(NO_MODEL);
        draft.scripts = [...scripts];
        const parts = scripts.length === 0 ? "" : `; scripts: ${scripts.join(", ")}`;
        return mapped(`${names.join(", ") || "none"}${parts}`);
      }),
      tags: tagsRule,
      hooks: field(hooks.describe("agents at on_run_start and on_run_finish"), (value, draft) => {
        if (draft.script !== undefined) return refused(NO_MODEL);
        draft.hooks = Object.entries(value).flatMap(([point, given]) =>
          given === undefined ? [] : [hookOf(point, given)],
        );
        return mapped("holdfast.hooks");
      }),
      script: field(z.string().min(1).describe("the name of a script"), (value, draft) => {
        if (draft.script === undefined) return ignored("only an agent of the type procedural has a script");
        draft.script = value;
        draft.scripts = [value];
        return mapped("holdfast.script: the script gets the input, and its output is the result");
      }),
    },
  },
};

/** Reads the files of the folder as one. @throws FileProblem */
export function readFolder(path: string): ParsedFile {
  const [main, prompt, servers, disabled] = FOLDER_FILES.map((name) => join(path, name)) as [
    string,
    string,
    string,
    string,
  ];
  if (existsSync(disabled))
    throw new FileProblem("the agent is switched off by the file .disabled", "remove the file");
  const values = readJson(main);
  if ("system_prompt" in values)
    throw new FileProblem(
      "agent.json has the field system_prompt",
      "put the prompt into agent.system-prompt.md",
    );
  const { mcpServers, ...others } = existsSync(servers) ? readJson(servers) : {};
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new FileProblem(
      `agent.mcp.json has the unknown field "${unknown}"`,
      "leave it out; the servers are in mcpServers",
    );
  if (values["type"] === "procedural" && values["script"] === undefined)
    throw new FileProblem(
      "agent.json has the type procedural and no script",
      "name the script in the field script, or leave the type out",
    );
  const names = capabilityNames(values);
  const own = existsSync(prompt) ? readText(prompt).trim() : "";
  const given = (mcpServers ?? {}) as Readonly<Record<string, unknown>>;
  const { texts, servers: all, scripts } = readCapabilities(path, names ?? [], given);
  return {
    values: {
      ...values,
      ...(mcpServers === undefined && Object.keys(all).length === 0 ? {} : { mcpServers: all }),
      ...(names === undefined ? {} : { capabilities: { names, scripts } }),
    },
    body: joinTexts([own, ...texts]),
    lineOf: () => null,
    repaired: [],
  };
}

/** @returns nothing for a value that is no list of names, which the field's own rule refuses. */
function capabilityNames({ capabilities }: Readonly<Record<string, unknown>>): readonly string[] | undefined {
  const names = z.array(z.string()).safeParse(capabilities);
  return names.success ? names.data : undefined;
}

/** All files that an agent's folder is read from. Each may be missing. */
export function filesOfFolder(path: string): readonly string[] {
  const own = FOLDER_FILES.map((name) => join(path, name));
  const names = capabilityNames(readJson(join(path, FOLDER_FILES[0]))) ?? [];
  return [...own, ...capabilityFiles(path, names)];
}
