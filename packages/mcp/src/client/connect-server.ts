// `connectServer`: a connection to one MCP server by its settings, with their placeholders filled in.
//
// This room (`client/`) and `sign-in/` load the SDK. An agent without MCP servers loads neither of them,
// because that takes as long as starting Node.

import { HoldfastError } from "@holdfast/core";
import { makePrivateFolder, scrubEnvironment, type Redactor } from "@holdfast/system";
import { type ProcessSupervisor } from "@holdfast/system/processes";

import type { McpServer } from "../settings/mcp-server.ts";
import { hostEnvironment } from "@holdfast/workspace";
import { fillPlaceholders, type PlaceholderValues } from "../settings/placeholders.ts";
import { serverTokens, type ServerTokensOptions } from "../sign-in/server-tokens.ts";
import { signInKey } from "../sign-in/sign-in-record.ts";
import { McpConnection } from "./connection.ts";
import { HttpTransport } from "./http-transport.ts";
import { serverFetch } from "./server-fetch.ts";
import { StdioTransport } from "./stdio-transport.ts";

interface WantedServer {
  readonly name: string;
  readonly server: McpServer;
  readonly values: PlaceholderValues;
  /** The variables whose values need not be hidden. */
  readonly shown: ReadonlySet<string>;
  readonly redactor: Redactor;
  readonly key: string;
  readonly supervisor: ProcessSupervisor;
  readonly signIns: Pick<ServerTokensOptions, "store" | "renewals"> | undefined;
}

/**
 * @returns what connects to the server. Its parameter is how long a call without any progress may take.
 * @throws HoldfastError `config_invalid`
 */
export function connectServer({
  name,
  server,
  values,
  shown,
  redactor,
  key,
  supervisor,
  signIns,
}: WantedServer): (callMs: number) => Promise<McpConnection> {
  // A server may repeat a value, and the text that it was put into, such as `Bearer …`.
  const fill = (text: string, place: string): string => {
    let isHidden = false;
    const variable = (wanted: string): string | undefined => {
      const value = values.variable(wanted);
      if (value === undefined || shown.has(wanted)) return value;
      isHidden = true;
      redactor.add(value);
      return value;
    };
    const filled = fillPlaceholders(text, { ...values, variable }, `the MCP server ${name}, ${place}`);
    if (isHidden) redactor.add(filled);
    return filled;
  };
  const fillAll = (field: string, texts: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([one, text]) => [one, fill(text, `${field}.${one}`)]));
  if (server.type === "http") {
    const url = checkedUrl(fill(server.url, "url"), name);
    const headers = fillAll("headers", server.headers);
    const allowsPrivate = server.isUsers === true;
    // A header of the settings is another way to sign in.
    const hasOwn = Object.keys(headers).some((header) => header.toLowerCase() === "authorization");
    const tokens =
      signIns === undefined || hasOwn
        ? undefined
        : serverTokens({
            ...signIns,
            key: signInKey(name, url),
            fetch: serverFetch({ allowsPrivate, refused: () => {} }),
            hide: (secret) => redactor.add(secret),
          });
    return (callMs) =>
      McpConnection.open({
        name,
        callMs,
        open: () => new HttpTransport({ url, headers, allowsPrivate, tokens }),
      });
  }
  const program = {
    argv: [
      fill(server.command, "command"),
      ...server.args.map((text, index) => fill(text, `args.${index}`)),
    ] as const,
    env: scrubEnvironment(hostEnvironment, fillAll("env", server.env)),
    cwd: server.cwd ?? values.folder,
    tag: key,
  };
  if (server.dataFolder !== undefined) makePrivateFolder(server.dataFolder);
  return (callMs) =>
    McpConnection.open({ name, callMs, open: () => new StdioTransport(supervisor, program) });
}

/** @throws HoldfastError `config_invalid`. The text is not shown, as it may have values. */
function checkedUrl(text: string, name: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "")
    return text;
  throw new HoldfastError(
    "config_invalid",
    `the MCP server ${name}: its address is no URL of http or https without a user name; correct its settings`,
  );
}
