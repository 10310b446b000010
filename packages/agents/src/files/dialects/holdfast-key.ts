// The key `holdfast:` of an agent file: the fields that no other tool knows.

import {
  type AmountLimits,
  type Budget,
  checkBudget,
  defined,
  EFFECT_CLASSES,
  parseDuration,
  PERIODS,
  type JsonSchema,
} from "@holdfast/core";
import { z } from "zod";
import {
  field,
  HONOURED,
  mapped,
  readFields,
  refused,
  type FieldRule,
  type FieldTable,
  type Ruling,
} from "../../format/fields.ts";
import type { AgentDraft } from "../../format/agent-draft.ts";
import { DEMANDS_TEXT } from "../../record/demands.ts";
import { holdfastHooks, holdfastHooksSchema } from "../../hooks/hook-fields.ts";
import { referencesProblem, splitReference } from "../../record/content-references.ts";
import { checkJsonSchema } from "../../format/schema-check.ts";
import { CLAUDE_TOOLS, OWN_TOOLS } from "../../record/tool-names.ts";
import { ruleTools, toolTexts } from "../../format/tool-rules.ts";
import { nameProblem, ofTool, tagsRule, textOrTexts } from "./dialect.ts";
import { subAgentsField } from "./sub-agent-fields.ts";

export const ALL_TOOL_NAMES = { ...CLAUDE_TOOLS, ...OWN_TOOLS };

const amount = z.int().min(1);
const amounts = {
  usd: z.number().positive().max(1_000_000).multipleOf(0.000001).optional().describe("dollars"),
  tokens: amount.optional().describe("tokens of all model calls"),
  steps: amount.optional().describe("tasks"),
  turns: amount.optional().describe("checkpoints"),
};
const budget = z
  .strictObject({
    ...amounts,
    windows: z
      .array(z.strictObject({ ...amounts, per: z.enum(PERIODS) }))
      .optional()
      .describe("limits of what is spent in each run, turn, hour, day or month"),
    tokensPerCall: amount.optional().describe("tokens of one model call"),
    onExhausted: z.enum(["park", "cancel"]).optional().describe("the reaction to a reached limit"),
  })
  .describe(
    "limits of what a session and its children may spend: usd, tokens, tokensPerCall, steps, turns, windows, onExhausted",
  );

type Amounts = { readonly [name in keyof typeof amounts]?: number | undefined };

function limitsOf({ usd, tokens, steps, turns }: Amounts): AmountLimits {
  return defined({
    maxCostMicroUsd: usd === undefined ? undefined : Math.round(usd * 1e6),
    maxTokens: tokens,
    maxSteps: steps,
    maxTurns: turns,
  } satisfies Record<keyof AmountLimits, unknown>);
}

const names = (what: string) =>
  z
    .union([z.string().min(1), z.array(z.string().min(1))])
    .describe(what)
    .transform((value) => (typeof value === "string" ? [value] : value));

const jsonSchema = (what: string) =>
  z.record(z.string(), z.unknown()).describe(`the JSON Schema of the ${what}`);

const RULES: Readonly<Record<string, FieldRule>> = {
  budget: field(budget, ({ windows, tokensPerCall, onExhausted, ...lifetime }, draft) => {
    const others = {
      windows: windows?.map(({ per, ...inWindow }) => ({ per, ...limitsOf(inWindow) })),
      maxTokensPerCall: tokensPerCall,
      onExhausted,
    } satisfies Record<Exclude<keyof Budget, keyof AmountLimits | "ttlMs">, unknown>;
    try {
      draft.budget = checkBudget({ ...limitsOf(lifetime), ...defined(others) });
      return HONOURED;
    } catch (error) {
      return refused((error as Error).message);
    }
  }),
  ttl: field(
    z.string().describe("the time until a session is cancelled, such as 90s, 10m or 1h30m"),
    (value, draft) => {
      try {
        draft.ttlMs = parseDuration(value, "holdfast.ttl");
        return HONOURED;
      } catch (error) {
        return refused((error as Error).message);
      }
    },
  ),
  approvals: field(
    z
      .strictObject({
        allow: textOrTexts.optional(),
        ask: textOrTexts.optional(),
        deny: textOrTexts.optional(),
      })
      .describe("calls of tools that run, are asked for, or are refused, such as deny: [Bash(git push:*)]"),
    (given, draft) => {
      const said: string[] = [];
      // Within a limit of `tools` the later of two rules counts, and `ask` is the stricter.
      for (const decision of ["deny", "allow", "ask"] as const) {
        const ruling = ruleTools(toolTexts(given[decision] ?? []), decision, ALL_TOOL_NAMES, draft);
        if (ruling[0] === "refused") return ruling;
        if (ruling[1] !== undefined) said.push(ruling[1]);
      }
      return mapped(said.join("; ") || "no rule");
    },
  ),
  sandbox: field(z.string().min(1).describe("the name of a sandbox backend"), (value, draft) => {
    draft.sandbox = value;
    return HONOURED;
  }),
  environment: field(names("names of environments"), (value, draft) => {
    draft.environments = value;
    return HONOURED;
  }),
  variables: field(
    z
      .array(
        z.string().regex(/^(?!HOLDFAST_)[A-Za-z_]\w{0,99}$/, "a variable's name has letters, digits and _"),
      )
      .describe("names of variables that its commands get, from its environments and its secrets"),
    (value, draft) => {
      draft.variables = [...new Set(value)];
      return HONOURED;
    },
  ),
  secrets: field(
    z
      .array(z.string().regex(/^[A-Za-z_]\w{0,99}$/, "a secret's name has letters, digits and _"))
      .describe("names of secrets"),
    (value, draft) => {
      draft.secrets = value;
      return HONOURED;
    },
  ),
  input: field(jsonSchema("input; without it the input is a text"), (value, draft) => {
    draft.inputSchema = value;
    return rulingOfSchema(value);
  }),
  output: field(jsonSchema("output; without it the output is a text"), (value, draft) => {
    draft.outputSchema = value;
    return rulingOfSchema(value);
  }),
  tags: tagsRule,
  demands: field(
    z
      .record(z.string().min(1), z.union([z.string(), z.number(), z.boolean()]))
      .describe("labels that a runner must have, by name"),
    (value, draft) => {
      draft.labels = value;
      return ["honoured", DEMANDS_TEXT];
    },
  ),
  effects: field(
    z
      .record(z.string(), z.enum(EFFECT_CLASSES))
      .describe(`effect classes of tools by name: ${EFFECT_CLASSES.join(", ")}`),
    (value, draft) => {
      const unknown = Object.keys(value).find(
        (tool) => !Object.hasOwn(OWN_TOOLS, tool) && !/^(mcp|task)__/.test(tool),
      );
      if (unknown !== undefined)
        return refused(
          `there is no tool ${unknown}; name a tool of Holdfast, mcp__SERVER__TOOL or task__NAME`,
        );
      const keyed = Object.keys(value).find((tool) => value[tool] === "keyed" && !/^(mcp|task)__/.test(tool));
      if (keyed !== undefined)
        return refused(
          `nobody gives ${keyed} a key: keyed is for tools of MCP servers that remove duplicates`,
        );
      draft.effects = value;
      return HONOURED;
    },
  ),
  agents: field(
    z
      .array(z.string())
      .describe(
        "names of agents that the tool delegate may start, or `TOOL:NAME` for the file of a tool; * for all",
      ),
    (value, draft) => {
      const problem = value
        .filter((name) => name !== "*")
        .map((name) => nameProblem(ofTool(name)?.name ?? name))
        .find((text) => text !== undefined);
      if (problem !== undefined) return refused(problem);
      draft.agents = value;
      return HONOURED;
    },
  ),
  subAgents: subAgentsField(ALL_TOOL_NAMES),
  messages: field(
    z.boolean().describe("whether the agents that it starts may send messages to each other"),
    (value, draft) => {
      draft.relaysMessages = value;
      return HONOURED;
    },
  ),
  script: field(
    z.string().min(1).describe("the name of a script that carries out the session in the place of a model"),
    (value, draft) => {
      const problem = referencesProblem([value]);
      if (problem !== undefined) return refused(problem);
      draft.script = splitReference(value).name;
      draft.scripts = [value];
      return mapped("an agent without a model: the script gets the input, and its output is the result");
    },
  ),
  scripts: field(
    z.array(z.string().min(1)).describe("names of scripts that its model may call"),
    (value, draft) => {
      if (draft.script !== undefined)
        return refused("`script` says that the agent has no model, which could call scripts");
      const problem = referencesProblem(value);
      if (problem !== undefined) return refused(problem);
      draft.scripts = [...new Set(value)];
      return HONOURED;
    },
  ),
  tasks: field(
    z.array(z.string().min(1)).describe("files of the project whose tasks are tools, such as src/tasks.ts"),
    (value, draft) => {
      draft.tasks = [...new Set(value)];
      return HONOURED;
    },
  ),
  when: field(
    z
      .record(z.string(), z.strictObject({ after: names("names of tools whose calls must have succeeded") }))
      .describe("tools that can be called only after calls of other tools have succeeded"),
    (value, draft) => {
      const named = Object.entries(value).flatMap(([tool, { after }]) => [tool, ...after]);
      const unknown = named.find(
        (tool) => !Object.hasOwn(OWN_TOOLS, tool) && !/^(mcp|task|script)__/.test(tool),
      );
      if (unknown !== undefined) return refused(`there is no tool ${unknown}; name a tool of Holdfast`);
      const endless = endlessTool(value);
      if (endless !== undefined) return refused(`${endless} would wait for itself`);
      draft.when = value;
      return HONOURED;
    },
  ),
  hooks: field(holdfastHooksSchema, (value, draft) => {
    const hooks = holdfastHooks(value);
    if (typeof hooks === "string") return refused(hooks);
    draft.hooks = [...draft.hooks, ...hooks];
    return HONOURED;
  }),
  fallbackModels: field(
    z
      .array(z.string().min(1))
      .describe("models that are asked when the model cannot be reached or is over its usage limit"),
    (value, draft) => {
      draft.fallbackModels = value;
      return HONOURED;
    },
  ),
  resumeAtReset: field(
    z
      .boolean()
      .describe(
        "whether a session that a usage limit pauses continues without a person when the limit is reset",
      ),
    (value, draft) => {
      draft.resumeAtReset = value;
      return HONOURED;
    },
  ),
  conversation: field(
    z.boolean().describe("whether the agent waits for the next input after its answer"),
    (value, draft) => {
      draft.isConversation = value;
      return HONOURED;
    },
  ),
  workspace: field(
    z.enum(["shared", "worktree", "empty"]).describe("the folder of a session: shared, worktree or empty"),
    (value, draft) => {
      draft.workspace = value;
      return HONOURED;
    },
  ),
};

/**
 * A tool that can be called only after itself. Each tool and each `after` is looked at a few times, however
 * they are connected.
 */
function endlessTool(all: AgentDraft["when"]): string | undefined {
  const ahead = new Map(
    Object.entries(all).map(([tool, { after }]) => [
      tool,
      new Set(after.filter((one) => Object.hasOwn(all, one))),
    ]),
  );
  const followers = new Map([...ahead.keys()].map((tool) => [tool, [] as string[]]));
  for (const [tool, needed] of ahead) for (const one of needed) followers.get(one)?.push(tool);
  const free = [...ahead].filter(([, needed]) => needed.size === 0).map(([tool]) => tool);
  for (let tool; (tool = free.pop()) !== undefined;) {
    ahead.delete(tool);
    for (const one of followers.get(tool) ?? []) {
      ahead.get(one)?.delete(tool);
      if (ahead.get(one)?.size === 0) free.push(one);
    }
  }
  // Each of the rest waits for another of the rest, so the way from any of them ends in a circle.
  const passed = new Set<string>();
  let [tool] = ahead.keys();
  while (tool !== undefined && !passed.has(tool)) {
    passed.add(tool);
    [tool] = ahead.get(tool) ?? [];
  }
  return tool;
}

function rulingOfSchema(schema: JsonSchema): Ruling {
  const problem = checkJsonSchema(schema);
  return problem === undefined ? HONOURED : refused(`it is no JSON Schema: ${problem}`);
}

const TABLE: FieldTable = { rules: RULES, restricting: "all", owner: "under holdfast" };

/** The rule for `holdfast:`. Each field below it has a verdict of its own. */
export const holdfastKey = field(
  z.record(z.string(), z.unknown()).describe("the fields of Holdfast"),
  (value, draft, report) => {
    readFields(value, TABLE, draft, report, ["holdfast"]);
    return HONOURED;
  },
);

/** The schema of the value of `holdfast:`, for editors. */
export const holdfastKeySchema = z
  .strictObject(
    Object.fromEntries(Object.entries(RULES).map(([name, { schema }]) => [name, schema.optional()])),
  )
  .describe("The fields of Holdfast.");
