// A release of which each part has its place: compiling where the processors are, signing where the key is.
// The one that asks for both may run anywhere.

import { createHash } from "node:crypto";
import { defineAgent, remote } from "holdfast";

interface Built {
  readonly archive: string;
  /** The process that did it. */
  readonly by: number;
}

export const compile = defineAgent({
  name: "compile",
  run: async (ctx, version: string) =>
    ctx.run("compile", (): Built => ({ archive: `release-${version}.tar`, by: process.pid })),
});

export const sign = defineAgent({
  name: "sign",
  run: async (ctx, archive: string) =>
    ctx.run("sign", () => ({
      signature: createHash("sha256").update(archive).digest("hex").slice(0, 12),
      by: process.pid,
    })),
});

export const release = defineAgent({
  name: "release",
  run: async (ctx, version: string) => {
    const compiling = ctx.spawnAgent(remote(compile), version, { labels: { processors: "many" } });
    const built = await ctx.waitForChild(compiling);
    const signing = ctx.spawnAgent(remote(sign), built.archive, { labels: { key: "release" } });
    const signed = await ctx.waitForChild(signing);
    return { ...built, signature: signed.signature, signedBy: signed.by };
  },
});
