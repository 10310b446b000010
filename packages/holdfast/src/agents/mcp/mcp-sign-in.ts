// `holdfast mcp login` and `logout`: the sign-in of a person to an MCP server at an address.

import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { fillPlaceholders, signInKey } from "@holdfast/mcp";
import { readMcpFiles, type AgentPlaces } from "@holdfast/agents";
import { didYouMean, NotFoundError, UsageError } from "@holdfast/core";
import { withoutKeys } from "@holdfast/system";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { askFor, canAsk } from "@holdfast/terminal/secrets/supplied-secrets";
import { signInStore } from "@holdfast/machine/sign-in-store";
import { baseValuesOf } from "./base-values.ts";
import { agentPlaces } from "../agent-places.ts";

interface Address {
  readonly url: string;
  readonly allowsPrivate: boolean;
}

export async function login(name: string, args: Arguments, io: Io): Promise<number> {
  const places = agentPlaces(io);
  const { url, allowsPrivate } = await addressOf(name, places);
  const stop = new AbortController();
  const { signInToServer } = await import("@holdfast/mcp/sign-in");
  const issuer = await signInToServer({
    name,
    url,
    allowsPrivate,
    clientId: args.text("client-id"),
    store: signInStore(dirname(places.trustFile), {
      env: io.env,
      askPassphrase: canAsk(io) ? () => askFor("Passphrase of the encrypted secrets: ", io) : undefined,
    }),
    show: (address) => {
      io.note(`open this address to sign in to ${name}: ${address}`);
      if (!args.has("no-browser") && canAsk(io)) openBrowser(address);
    },
    signal: stop.signal,
  });
  io.show({ name, issuer }, `signed in to ${name} at ${plainLine(issuer, 200)}`);
  return 0;
}

export async function logout(name: string, io: Io): Promise<number> {
  const places = agentPlaces(io);
  const { url } = await addressOf(name, places);
  const isDeleted = await signInStore(dirname(places.trustFile), { env: io.env }).delete(
    signInKey(name, url),
  );
  if (!isDeleted)
    throw new NotFoundError("not_found", `nobody has signed in to the MCP server ${name}`, {
      fix: "run `holdfast mcp list` to see the sign-ins",
    });
  io.show({ name }, `the sign-in to ${name} is deleted`);
  return 0;
}

/** The addresses of servers that somebody has signed in to, as keys of secrets. */
export async function signedIn(places: AgentPlaces): Promise<ReadonlySet<string>> {
  return new Set(await signInStore(dirname(places.trustFile), { env: places.env }).names());
}

async function addressOf(name: string, places: AgentPlaces): Promise<Address> {
  const files = readMcpFiles(places);
  const servers = Object.assign(
    {},
    ...files.toReversed().map((file) => file.servers),
  ) as (typeof files)[0]["servers"];
  const found = Object.hasOwn(servers, name) ? servers[name] : undefined;
  if (found === undefined)
    throw new NotFoundError(
      "not_found",
      `there is no MCP server ${plainLine(name, 80)}${didYouMean(name, Object.keys(servers))}`,
      {
        fix: "run `holdfast mcp list` to see all servers; those of an agent file are added with `holdfast mcp add`",
      },
    );
  if (found.type !== "http")
    throw new UsageError(`the MCP server ${name} is a program, and nobody signs in to it`, {
      fix: "give it its secrets by placeholders in `env`",
    });
  const own = await baseValuesOf(found, places);
  const base = new Map(Object.entries({ ...own.values, ...own.secrets }));
  const values = {
    variable: (variable: string) => base.get(variable) ?? places.env[variable],
    sessionId: "",
    folder: places.project,
  };
  return {
    url: fillPlaceholders(found.url, values, `the MCP server ${name}`),
    allowsPrivate: found.isUsers === true,
  };
}

/** A system without a browser does nothing: the address is shown, too. */
function openBrowser(address: string): void {
  const program = process.platform === "darwin" ? "open" : "xdg-open";
  const child = spawn(program, [address], {
    stdio: "ignore",
    detached: true,
    env: withoutKeys(process.env), // It may run for days.
  });
  child.on("error", () => {});
  child.unref();
}
