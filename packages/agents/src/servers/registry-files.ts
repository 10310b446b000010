// `readRegistryFile`: a server of a registry of folders, `mcp-servers/ID/mcp-server.json`. References of
// agents name it by its id.
//
// The configuration is headers (decision 62). A required key without a default is a header with a
// placeholder, and a session without a value for it does not start. The value of a sensitive key is no literal,
// neither here nor in the configuration that an agent gives.

import { basename, dirname } from "node:path";
import { z } from "zod";
import type { AgentDraft } from "../format/agent-draft.ts";
import type { FieldReport } from "../format/field-report.ts";
import { field, HONOURED, ignored, mapped, readFields, refused, type FieldTable } from "../format/fields.ts";
import { literalAmong } from "../format/literal-secret.ts";
import { takeServers } from "../format/mcp-servers.ts";

const value = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const schema = z.record(
  z.string(),
  z.looseObject({
    required: z.boolean().default(false),
    sensitive: z.boolean().default(false),
    default: value.optional(),
  }),
);

/** Adds the server to the draft. */
export function readRegistryFile(
  path: string,
  values: Readonly<Record<string, unknown>>,
  draft: AgentDraft,
  report: FieldReport,
): void {
  const id = basename(dirname(path));
  const server = { url: "", headers: {} as Record<string, string>, sensitive: [] as string[] };
  readFields(values, tableOf(id, server), draft, report);
  if (!Object.hasOwn(values, "url")) report.add(["url"], "refused", "it is missing");
  const { sensitive, ...settings } = server;
  const secret = literalAmong(settings.headers, sensitive);
  if (secret !== undefined)
    report.add(
      ["config_schema", secret],
      "refused",
      `it is sensitive, and its value is written out: write \${${variableOf(secret)}}, and give it a value by an environment or as a secret`,
    );
  if (report.verdicts.some(({ verdict }) => verdict === "refused")) return;
  takeServers([[id, { type: "http", ...settings }]], "mcp-servers", draft, report);
  const taken = draft.mcpServers[id];
  if (sensitive.length > 0 && typeof taken === "object" && "url" in taken)
    draft.mcpServers = { ...draft.mcpServers, [id]: { ...taken, sensitive } };
}

/** The variable that a placeholder for a key names. */
function variableOf(key: string): string {
  return key.replaceAll(/\W/g, "_");
}

interface RegistryServer {
  url: string;
  readonly headers: Record<string, string>;
  readonly sensitive: string[];
}

function tableOf(id: string, server: RegistryServer): FieldTable {
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
        for (const [key, { required, sensitive, default: preset }] of Object.entries(given)) {
          if (sensitive) server.sensitive.push(key);
          if (preset !== undefined) server.headers[key] = preset;
          // The placeholder refuses a session that has no value for it.
          else if (required) server.headers[key] = `\${${variableOf(key)}}`;
        }
        return mapped("headers; a required one needs a value");
      }),
      default_config: field(z.record(z.string(), value).describe("values by key"), (given) => {
        Object.assign(server.headers, given);
        return mapped("headers");
      }),
    },
  };
}
