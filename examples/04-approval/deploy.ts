import { defineAgent } from "holdfast";

export default defineAgent({
  name: "deploy",
  async run(ctx, input?: { readonly version: string }) {
    const version = input?.version ?? "1.0.0";
    const checks = await ctx.run("run-checks", () => ({ passed: 128, failed: 0 }));

    // A person answers, or somebody takes the request back. It may take a minute or a month: meanwhile no
    // process is needed.
    const { key, value } = await ctx.select({
      answered: ctx.requestInput({ prompt: `Deploy ${version}?`, details: checks }),
      withdrawn: ctx.waitForSignal<{ readonly by?: string } | undefined>("withdraw"),
    });
    if (key === "withdrawn") return { deployed: false, reason: `withdrawn by ${value?.by ?? "somebody"}` };
    if (!value.approved) return { deployed: false, reason: value.reason ?? "not approved" };

    await ctx.run("deploy", () => `deployed ${version}`);
    return { deployed: true, version };
  },
});
