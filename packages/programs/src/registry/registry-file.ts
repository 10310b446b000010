// `chooseInstall`: an agent of a file in the format of the ACP registry, and what of it can be installed on
// this machine. Pure.
//
// Only what can be pinned is installed: a program in an archive, and an npm package with an exact version.
// Everything else is refused with the reason.

import { HoldfastError, NotFoundError } from "@holdfast/core";
import { z } from "zod";

const args = z.array(z.string().max(4_000)).max(100).default([]);
const env = z.record(z.string().regex(/^[A-Za-z_]\w*$/), z.string().max(4_000)).default({});
const target = z.looseObject({
  archive: z.url(),
  sha256: z
    .string()
    .regex(/^[a-fA-F0-9]{64}$/)
    .optional(),
  cmd: z.string().min(1),
  args,
  env,
});
const packaged = z.looseObject({ package: z.string().min(1), cmd: z.string().min(1).optional(), args, env });
const entry = z.looseObject({
  id: z.string().regex(/^[a-z][a-z0-9-]{0,63}$/),
  name: z.string().min(1).max(200),
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  description: z.string().max(2_000),
  license: z.string().max(200).optional(),
  distribution: z.looseObject({
    binary: z.record(z.string(), target).optional(),
    npx: packaged.optional(),
    uvx: packaged.optional(),
  }),
});
const registry = z.looseObject({ agents: z.array(z.unknown()).max(10_000) });

/** An installation that can be carried out here. */
export type AgentInstall = {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
} & (
  | {
      readonly kind: "binary";
      /** The address of the archive. */
      readonly source: string;
      readonly sha256: string | undefined;
      /** The path of the program in the archive. */
      readonly cmd: string;
    }
  | {
      readonly kind: "npx";
      /** `package@version`. */
      readonly source: string;
      readonly packageName: string;
      readonly cmd: string | undefined;
    }
);

/**
 * @param text the registry's file
 * @param platform such as `linux-x86_64`
 * @throws HoldfastError `config_invalid`, `agent_invalid`; NotFoundError
 */
export function chooseInstall(text: string, id: string, platform: string, at: string): AgentInstall {
  const { agents } = parsed(registry, jsonOf(text, at), at);
  const idOf = (one: unknown): unknown => (one as { readonly id?: unknown } | null)?.id;
  const found = agents.find((one) => idOf(one) === id);
  if (found === undefined) {
    const ids = agents.map(idOf).filter((one) => typeof one === "string");
    throw new NotFoundError("agent_not_found", `the registry has no agent "${id}"`, {
      at,
      expected: `one of ${ids.slice(0, 50).join(", ")}`,
      fix: "correct the name, or name another registry",
    });
  }
  const { distribution, license = "unknown", ...agent } = parsed(entry, found, `${at}, agent "${id}"`);
  const { name, version, description } = agent;
  const common = { id, name, version, description, license };
  const binary = distribution.binary?.[platform];
  if (binary !== undefined) {
    const { archive: source, sha256, cmd } = binary;
    return { ...common, kind: "binary", source, sha256, cmd, args: binary.args, env: binary.env };
  }
  const { npx } = distribution;
  const exact = /^(?<packageName>(?:@[a-z0-9._-]+\/)?[a-z0-9._-]+)@\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/i.exec(
    npx?.package ?? "",
  );
  const packageName = exact?.groups?.["packageName"];
  if (npx !== undefined && packageName !== undefined)
    return {
      ...common,
      kind: "npx",
      source: npx.package,
      packageName,
      cmd: npx.cmd,
      args: npx.args,
      env: npx.env,
    };
  throw new HoldfastError(
    "agent_invalid",
    `the agent "${id}" cannot be installed here: ${whyNot(distribution, platform)}`,
    {
      at,
      expected: `an archive for ${platform}, or an npm package with an exact version`,
      fix: "install the program yourself, and run it by `customAgent` (docs/external-agents.md)",
    },
  );
}

function whyNot({ binary, npx, uvx }: z.output<typeof entry>["distribution"], platform: string): string {
  if (npx !== undefined)
    return `its npm package "${npx.package.slice(0, 200)}" has no exact version, so its content cannot be pinned`;
  if (uvx !== undefined)
    return "it is a Python package (uvx), whose dependencies are chosen at each start and cannot be pinned";
  const platforms = Object.keys(binary ?? {});
  return platforms.length > 0
    ? `it has archives for ${platforms.join(", ")}, and none for ${platform}`
    : "its kind of distribution is unknown";
}

function jsonOf(text: string, at: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HoldfastError("config_invalid", "the registry is no JSON", {
      at,
      expected: 'the format of the ACP registry: {"version": "1.0.0", "agents": […]}',
      fix: "name the file or the address of a registry",
    });
  }
}

function parsed<T>(schema: z.ZodType<T>, value: unknown, at: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new HoldfastError(
    "config_invalid",
    `the registry has another form: ${z.prettifyError(result.error)}`,
    {
      at,
      expected: "the format of the ACP registry",
      fix: "correct the entry, or name another registry",
    },
  );
}
