// `withDeclaredEffect`: the context of a tool whose effect class an agent file declares.
//
// The author's word counts more than the tool's own, and more than what a model says of one call.

import { matchesName } from "../../record/tool-names.ts";
import { defined, type EffectClass, type TaskOptions } from "@holdfast/core";
import type { AgentRecord } from "../../record/agent-record.ts";
import type { ToolContext } from "./tool.ts";

/** How often a call that may be repeated is tried, lost attempts counted. */
const REPEATS_MAX = 100;

/** The class that an agent file declares for a tool, by its name or by a pattern such as `mcp__github__*`. */
export function declaredEffect({ effects }: AgentRecord, tool: string): EffectClass | undefined {
  return effects[tool] ?? Object.entries(effects).find(([name]) => matchesName(name, tool))?.[1];
}

/** A context whose tasks have this class. */
export function withDeclaredEffect(ctx: ToolContext, effect: EffectClass | undefined): ToolContext {
  if (effect === undefined) return ctx;
  return new Proxy(ctx, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const method = value.bind(target) as (...args: readonly unknown[]) => unknown;
      if (name !== "scheduleTask") return method;
      return (task: Scheduled, input: unknown, options: TaskOptions = {}) =>
        method(task, input, optionsOf(task, options, effect));
    },
  });
}

interface Scheduled {
  readonly retry?: TaskOptions["retry"];
}

function optionsOf(
  task: Scheduled,
  { retry: asked, ...options }: TaskOptions,
  effect: EffectClass,
): TaskOptions {
  if (effect === "once") return { ...options, effect };
  const retry = asked ?? task.retry;
  if (retry?.maxAttempts !== 1) return { ...options, effect, ...defined({ retry: asked }) };
  return { ...options, effect, retry: { ...retry, maxAttempts: REPEATS_MAX } };
}
