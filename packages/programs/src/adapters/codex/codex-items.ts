// The items of a Codex turn as calls of tools and their results, in our names for tools. Pure.

import type { PermissionRequest } from "../../session/external-agent-protocol.ts";
import { fieldsOf, listOf, recordedResult, textOr, type Fields } from "../../session/fields.ts";

/** Codex wraps every command in a shell. Rules and people read the inner one, where no quoting can mislead them. */
export function innerCommand(command: string): string {
  const [, quoted, word] =
    /^(?:\/[\w/]+\/)?(?:ba|z)?sh -lc (?:'([^']*)'|([\w./:@%+=-]+))$/.exec(command) ?? [];
  return quoted ?? word ?? command;
}

/** @returns `undefined` for an item that is no call of a tool. */
export function codexCallOf(item: Fields): Pick<PermissionRequest, "tool" | "input"> | undefined {
  switch (item["type"]) {
    case "commandExecution":
      return { tool: "shell", input: { command: innerCommand(textOr(item["command"], "")) } };
    case "fileChange": {
      const changes = listOf(item["changes"]);
      const paths = changes.map(({ path }) => textOr(path, ""));
      const patch = changesText(changes);
      // A person who is asked for the call sees by the patch what would change.
      const shown = changes.some(({ diff }) => textOr(diff, "") !== "") ? { patch } : {};
      return {
        tool: "edit_file",
        input: { ...(paths.length === 1 ? { path: paths[0] } : { paths }), ...shown },
      };
    }
    case "mcpToolCall":
      return {
        tool: `mcp__${textOr(item["server"], "")}__${textOr(item["tool"], "")}`,
        input: fieldsOf(item["arguments"]),
      };
    case "collabAgentToolCall": {
      const { prompt, receiverThreadIds } = item;
      const agents =
        Array.isArray(receiverThreadIds) && receiverThreadIds.length > 0 ? { agents: receiverThreadIds } : {};
      const tool = textOr(item["tool"], "agent").replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return { tool, input: { ...(typeof prompt === "string" ? { prompt } : {}), ...agents } };
    }
    case "subAgentActivity":
      return { tool: "sub_agent", input: { agent: textOr(item["agentPath"], ""), activity: item["kind"] } };
    case "webSearch":
      return { tool: "web_search", input: { query: textOr(item["query"], "") } };
    default:
      return undefined;
  }
}

export function codexResultOf(item: Fields): { readonly text: string; readonly isError: boolean } {
  const { status, exitCode, aggregatedOutput, changes, result, error } = item;
  const isError =
    status === "failed" || status === "declined" || (typeof exitCode === "number" && exitCode !== 0);
  if (typeof aggregatedOutput === "string")
    return {
      text: recordedResult(
        exitCode === 0 ? aggregatedOutput : `${aggregatedOutput}\n(exit code ${String(exitCode)})`,
      ),
      isError,
    };
  if (Array.isArray(changes)) return { text: recordedResult(changesText(listOf(changes))), isError };
  // The last messages of sub-agents that a call has waited for.
  const said = Object.values(fieldsOf(item["agentsStates"]))
    .map((state) => textOr(fieldsOf(state)["message"], ""))
    .filter((message) => message !== "");
  if (said.length > 0) return { text: recordedResult(said.join("\n\n")), isError };
  const given = error ?? result;
  return {
    text: given === undefined || given === null ? textOr(status, "") : recordedResult(JSON.stringify(given)),
    isError,
  };
}

function changesText(changes: readonly Fields[]): string {
  return changes.map((change) => `${textOr(change["path"], "")}\n${diffOf(change)}`).join("\n");
}

const MARKS: Readonly<Record<string, string>> = { add: "+", delete: "-" };

/** For a new or deleted file Codex gives the content in the place of a patch. */
function diffOf({ kind, diff }: Fields): string {
  const text = textOr(diff, "");
  const mark = MARKS[textOr(fieldsOf(kind)["type"], textOr(kind, ""))];
  if (mark === undefined || text === "") return text;
  return text.replace(/\n$/, "").replaceAll(/^/gm, mark);
}
