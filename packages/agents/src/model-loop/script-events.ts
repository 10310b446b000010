// The events of a script's call as entries of the session: `script_started` and `script_finished`, joined by
// the id of the tool call.
//
// The start is recorded with the task that runs the script, and so before the script can run.

import type { Json } from "@holdfast/core";
import { EVENT_ROLE } from "../models/model-provider.ts";
import type { ScriptCall } from "../tasks/script-calls.ts";
import type { ToolContext } from "./tools/tool.ts";

export interface StartedScript {
  /** The id of the tool call. */
  readonly call: string;
  readonly script: string;
  /** The hash of its content. */
  readonly version: string;
}

export function reportStart(ctx: ToolContext, started: StartedScript, args: Json): void {
  ctx.appendEntry({ role: EVENT_ROLE, content: { type: "script_started", ...started, arguments: args } });
}

/** @param end an exit code, or a text about an end without one. */
export function reportEnd(ctx: ToolContext, started: StartedScript, end: number | string): void {
  const outcome = typeof end === "number" ? { exitCode: end } : { ended: end };
  ctx.appendEntry({ role: EVENT_ROLE, content: { type: "script_finished", ...started, ...outcome } });
}

/** A call in a command line of the shell, whose arguments stand in the command. */
export function reportScriptCall(
  ctx: ToolContext,
  call: string,
  { script, version, exitCode }: ScriptCall,
): void {
  const started = { call, script, version };
  ctx.appendEntry({ role: EVENT_ROLE, content: { type: "script_started", ...started } });
  reportEnd(ctx, started, exitCode ?? "cut off");
}
