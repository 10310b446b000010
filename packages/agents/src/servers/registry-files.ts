// `readRegistryFile`: a server of a registry of folders, `mcp-servers/ID/mcp-server.json`. References of
// agents name it by its id.
//
// The configuration is headers (decision 62). A required key without a default is a header with a
// placeholder, and a session without a value for it does not start.

import { basename, dirname } from "node:path";
import { z } from "zod";
import type { AgentDraft } from "../format/agent-draft.ts";
import type { FieldReport } from "../format/field-report.ts";
import { field, HONOURED, ignored, mapped, readFields, refused, type FieldTable } from "../format/fields.ts";
import { takeServers } from "../format/mcp-servers.ts";

const value = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const schema = z.record(
  z.string(),
  z.looseObject({ required: z.boolean().default(false), default: value.optional() }),
);

/** Adds the server to the draft. */
export function readRegistryFile(
  path: string,
  values: Readonly<Record<string, unknown>>,
  draft: AgentDraft,
  report: FieldReport,
): void {
  const id = basename(dirname(path));
  const server = { url: "", headers: {} as Record<string, string> };
  readFields(values, tableOf(id, server), draft, report);
  if (!Object.hasOwn(values, "url")) report.add(["url"], "refused", "it is missing");
  if (report.verdicts.some(({ verdict }) => verdict === "refused")) return;
  takeServers([[id, { type: "http", ...server }]], "mcp-servers", draft, report);
}

function tableOf(id: string, server: { url: string; readonly headers: Record<string, string> }): FieldTable {
  return {
    restricting: "all",
    owner: "of a server in mcp-servers",
    rules: {
      id: field(z.string().describe("the name of the folder"), (given) =>
        given === id ? HONOURED : refused(`the folder of the server is ${id}; give both one name`),
      ),
      name: field(z.string(), () => ignored("it is for people")),
      description: field(z.string(), () => ignored("it is for people")),
      url: field(z.string().describe("an address"), (given) => {
        server.url = given;
        return HONOURED;
      }),
      config_schema: field(schema.describe("keys of the configuration"), (given) => {
        for (const [key, { required, default: preset }] of Object.entries(given))
          if (preset !== undefined) server.headers[key] = preset;
          // The placeholder refuses a session that has no value for it.
          else if (required) server.headers[key] = `\${${key.replaceAll(/\W/g, "_")}}`;
        return mapped("headers; a required one needs a value");
      }),
      default_config: field(z.record(z.string(), value).describe("values by key"), (given) => {
        Object.assign(server.headers, given);
        return mapped("headers");
      }),
    },
  };
}
