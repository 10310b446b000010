import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { defineAgent } from "holdfast";

/** Builds, asks a person, and publishes. Either runner continues it when the other one is killed. */
export default defineAgent({
  name: "release",
  async run(ctx, { version, buildMs = 1_000 }: { version: string; buildMs?: number }) {
    const built = await ctx.run("build", async () => {
      await pause(buildMs);
      return { archive: `release-${version}.tar`, by: hostname() };
    });
    const { approved } = await ctx.requestInput({ prompt: `Publish ${built.archive}?` });
    if (!approved) return { ...built, published: false };
    return { ...built, published: await ctx.run("publish", () => true) };
  },
});
