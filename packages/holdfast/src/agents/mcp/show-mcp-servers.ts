// `holdfast mcp list`, `show`, `add` and `remove`. No command takes or shows the value of a secret.

import { dirname } from "node:path";
import {
  addMcpServer,
  isTrusted,
  mcpPlace,
  readMcpFiles,
  removeMcpServer,
  trustContent,
  type AgentPlaces,
  type McpFile,
  type McpPlace,
} from "@holdfast/agents";
import { describeServer, McpServers, signInKey, type DescribedServer } from "@holdfast/mcp";
import { defined, didYouMean, NotFoundError } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { count, cutTo, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { signInStore } from "@holdfast/machine/sign-in-store";
import { signedIn } from "./mcp-sign-in.ts";
import { baseValuesOf } from "./base-values.ts";
import { agentPlaces, shownPath } from "../agent-places.ts";

const REASON_CHARS = 300;

type Settings = McpFile["servers"][string];

/** A server of a file that can be used, or a file that cannot. */
interface ListedServer {
  readonly name: string;
  readonly file: McpFile;
  readonly status: "usable" | "hidden" | "untrusted" | "unapproved" | "refused";
  readonly reason: string;
  readonly server: Settings | undefined;
}

export async function listServers(args: Arguments, io: Io): Promise<number> {
  const places = agentPlaces(io);
  const listed = listedServers(places);
  const checked = args.has("check") ? await checkAll(listed, places) : new Map<string, DescribedServer>();
  const signIns = listed.some(({ server }) => server?.type === "http")
    ? await signedIn(places)
    : new Set<string>();
  const rows = listed.map(({ name, status, reason, file, server }) => [
    plainLine(name, 40),
    stateText(checked.get(name), status),
    server === undefined ? "" : server.type === "http" ? "address" : "program",
    isSignedIn(name, server, signIns) ? "signed in" : "",
    shownPath(file.path, io),
    plainLine(checkedReason(checked.get(name)) ?? reason, REASON_CHARS),
  ]);
  const lines = table([["NAME", "STATUS", "KIND", "SIGN-IN", "FILE", ""], ...rows]);
  const text =
    rows.length === 0
      ? "no MCP servers: `holdfast mcp add NAME -- COMMAND` adds one"
      : lines.map((line) => cutTo(line, io.results.columns, io.results.symbols.cut)).join("\n");
  io.show(
    listed.map((one) => ({
      ...jsonOf(one),
      isSignedIn: isSignedIn(one.name, one.server, signIns),
      ...(args.has("check") ? { check: checked.get(one.name) ?? null } : {}),
    })),
    text,
  );
  const isFailed = [...checked.values()].some(({ status }) => status === "failed");
  return isFailed ? 1 : 0;
}

/** The servers of all files with their sign-ins, for the page. */
export async function serverReport(io: Io): Promise<readonly object[]> {
  const places = agentPlaces(io);
  const listed = listedServers(places);
  const hasAddress = listed.some(({ server }) => server?.type === "http");
  const signIns = hasAddress ? await signedIn(places) : new Set<string>();
  return listed.map((one) => ({
    ...jsonOf(one),
    isSignedIn: isSignedIn(one.name, one.server, signIns),
  }));
}

export async function showServer(name: string, args: Arguments, io: Io): Promise<number> {
  const places = agentPlaces(io);
  const listed = listedServers(places);
  const found = listed.find((one) => one.name === name && one.status === "usable");
  if (found?.server === undefined) throw notThere(name, listed);
  const checked = args.has("check") ? (await checkAll([found], places)).get(name) : undefined;
  const { server, file } = found;
  const fields = server.type === "http" ? server.headers : server.env;
  const rows = [
    ["file", shownPath(file.path, io)],
    server.type === "http"
      ? ["address", plainLine(server.url, 500)]
      : ["program", [server.command, ...server.args].map((word) => plainLine(word, 500)).join(" ")],
    ...Object.entries(fields).map(([field, value]) => [
      server.type === "http" ? "header" : "variable",
      `${plainLine(field, 100)}: ${plainLine(value, 200)}`,
    ]),
    ...toolRows(checked),
  ];
  io.show({ ...jsonOf(found), server, ...defined({ check: checked }) }, table(rows).join("\n"));
  return checked?.status === "failed" ? 1 : 0;
}

function toolRows(checked: DescribedServer | undefined): readonly (readonly string[])[] {
  if (checked === undefined) return [];
  if (checked.status === "failed") return [["check", plainLine(checked.reason, 1_000)]];
  const { version, tools, leftOut } = checked;
  return [
    ["check", `reached, MCP ${version}, ${count(tools.length, "tool")}`],
    ...tools.map(({ tool, effect, description }) => [
      "tool",
      `${plainLine(tool, 64)} (${effect}) ${plainLine(description, 80)}`,
    ]),
    ...leftOut.map((one) => ["left out", plainLine(one, 200)]),
  ];
}

export function addServer(name: string, command: readonly string[], args: Arguments, io: Io): number {
  const { usage } = args;
  const places = agentPlaces(io);
  const url = args.text("url");
  const [program, ...rest] = command;
  if ((url === undefined) === (program === undefined))
    throw refuse("a server is a program or an address", usage, {
      got: url === undefined ? "neither" : "both",
      fix: "give a command after --, or an address with --url",
    });
  const fields = (option: string): Record<string, string> =>
    Object.fromEntries(args.texts(option).map((text) => divided(text, option, usage)));
  if (url !== undefined && args.has("env"))
    throw refuse("--env is for programs", usage, { fix: "use --header" });
  if (program !== undefined && args.has("header"))
    throw refuse("--header is for addresses", usage, { fix: "use --env" });
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url))
    throw refuse("--url needs an address of http or https", usage, { got: url.slice(0, 200) });
  const place = mcpPlace(places, args.has("user") ? "user" : "project");
  changeServers(place, places, () =>
    addMcpServer(
      place,
      name,
      url === undefined
        ? { type: "stdio", command: program ?? "", args: rest, env: fields("env") }
        : { type: "http", url, headers: fields("header") },
    ),
  );
  io.show({ name, ...place }, `${name} is in ${shownPath(place.path, io)}`);
  const status = statusOf(place, places);
  if (status === "unapproved")
    io.note(
      `${io.notes.symbols.warn} other servers of the file have changed since you trusted this project: \`${io.call("agents trust")}\``,
    );
  if (status === "untrusted")
    io.note(`${io.notes.symbols.warn} you have not trusted this project: \`${io.call("agents trust")}\``);
  return 0;
}

/** Changes a file. The user's own change of a content that is trusted keeps the trust. */
function changeServers(place: McpPlace, places: AgentPlaces, change: () => void): void {
  const { project, trustFile } = places;
  const before = statusOf(place, places);
  change();
  if (place.scope === "project" && before !== "unapproved" && isTrusted(trustFile, project))
    trustContent(trustFile, project, place.path);
}

function statusOf({ path }: McpPlace, places: AgentPlaces): McpFile["status"] | undefined {
  return readMcpFiles(places).find((file) => file.path === path)?.status;
}

function divided(text: string, option: string, usage: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  // The text is not shown: it may be a value.
  throw refuse(`--${option} needs NAME=VALUE`, usage, { fix: `such as --${option} 'NAME=\${API_TOKEN}'` });
}

export function removeServer(name: string, args: Arguments, io: Io): number {
  const places = agentPlaces(io);
  const place = mcpPlace(places, args.has("user") ? "user" : "project");
  changeServers(place, places, () => removeMcpServer(place, name));
  io.show({ name, ...place }, `${name} is removed from ${shownPath(place.path, io)}`);
  return 0;
}

function listedServers(places: AgentPlaces): readonly ListedServer[] {
  const seen = new Set<string>();
  return readMcpFiles(places).flatMap((file): ListedServer[] => {
    const { status, servers, problem, verdicts } = file;
    if (status !== "loaded") {
      const since =
        status === "unapproved" ? "its servers have changed since you trusted this project; " : "";
      const reason = problem ?? `${since}read it, and then run \`holdfast agents trust\``;
      return [{ name: "(all)", file, status, reason, server: undefined }];
    }
    const usable = Object.entries(servers).map(([name, server]): ListedServer => {
      const isHidden = seen.has(name);
      seen.add(name);
      const reason = isHidden ? "another file before it has the name" : "";
      return { name, file, status: isHidden ? "hidden" : "usable", reason, server };
    });
    const refused = verdicts
      .filter(({ verdict }) => verdict === "refused")
      .map(({ field, text }): ListedServer => ({
        name: field.split(".").slice(1).join("."),
        file,
        status: "refused",
        reason: text,
        server: undefined,
      }));
    return [...usable, ...refused];
  });
}

/** Starts each server, and ends them all. */
async function checkAll(
  listed: readonly ListedServer[],
  places: AgentPlaces,
): Promise<ReadonlyMap<string, DescribedServer>> {
  const servers = new McpServers({
    variable: (name) => places.env[name],
    signIns: signInStore(dirname(places.trustFile), { env: places.env }),
  });
  try {
    const found = listed.flatMap(({ name, server, status }) =>
      server === undefined || status !== "usable" ? [] : [{ name, server, folder: places.project }],
    );
    const results = await Promise.all(
      found.map(async (one) => {
        const own = await baseValuesOf(one.server, places);
        return [one.name, await describeServer(servers, { ...one, own })] as const;
      }),
    );
    return new Map(results);
  } finally {
    await servers.close();
  }
}

function isSignedIn(name: string, server: Settings | undefined, signIns: ReadonlySet<string>): boolean {
  return server?.type === "http" && signIns.has(signInKey(name, server.url));
}

function stateText(checked: DescribedServer | undefined, status: ListedServer["status"]): string {
  return checked?.status ?? status;
}

function checkedReason(checked: DescribedServer | undefined): string | undefined {
  if (checked === undefined) return undefined;
  return checked.status === "failed"
    ? checked.reason
    : `MCP ${checked.version}, ${count(checked.tools.length, "tool")}`;
}

function jsonOf({ name, status, reason, file: { path, scope }, server }: ListedServer): object {
  return { name, status, reason, path, scope, type: server?.type ?? null };
}

function notThere(name: string, listed: readonly ListedServer[]): NotFoundError {
  const usable = listed.flatMap((one) => (one.status === "usable" ? [one.name] : []));
  const untrusted = listed.find(({ status }) => status === "untrusted" || status === "unapproved");
  return new NotFoundError(
    "not_found",
    `there is no MCP server ${plainLine(name, 80)}${didYouMean(name, usable)}`,
    {
      fix:
        untrusted === undefined
          ? "run `holdfast mcp list` to see all servers"
          : `read ${untrusted.file.path}, and then run \`holdfast agents trust\``,
    },
  );
}
