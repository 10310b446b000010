import { defineAgent, defineTask, NonRetryableError, TaskFailedError, type AgentContext } from "holdfast";
import { z } from "zod";

const request = z.object({
  question: z.string().min(1),
  sources: z.array(z.string()).min(1).max(20).default(["almanac", "archive", "attic"]),
});

const finding = z.object({ source: z.string(), facts: z.array(z.string()) });

/** Stands for a search over the network: one source fails at first, one never answers, and the others are not there. */
const search = defineTask({
  name: "search",
  input: z.object({ question: z.string(), source: z.string() }),
  output: finding, // Checked before it is recorded, because a service may break its promise.
  timeoutMs: 50, // For one attempt.
  retry: { maxAttempts: 3, initialDelayMs: 10 }, // An attempt lost with its process counts, too.
  async run({ question, source }, task) {
    switch (source) {
      case "almanac":
        return { source, facts: [`${question} Perhaps.`] };
      case "archive":
        if (task.attempt === 1) throw new Error("503: try again");
        return { source, facts: [`${question} It is said so.`, "It was said before."] };
      case "attic":
        return new Promise<never>((_, reject) => {
          task.signal.addEventListener("abort", () => reject(new Error("stopped")));
        });
      default:
        throw new NonRetryableError(`there is no source ${source}`); // Another attempt would find none either.
    }
  },
});

const summarise = defineTask({
  name: "summarise",
  run: (findings: readonly z.output<typeof finding>[]) => findings.flatMap(({ facts }) => facts).join(" "),
});

export default defineAgent({
  name: "research",
  input: request,
  tasks: [search, summarise],
  async run(ctx, { question, sources }) {
    // All at once; a source that gives up takes nothing from the others.
    const found = await Promise.all(sources.map((source) => ask(ctx, question, source)));
    const findings = found.filter((one) => one !== undefined);
    return {
      answer: await ctx.scheduleTask(summarise, findings),
      asked: findings.map(({ source }) => source),
      silent: sources.filter((_, i) => found[i] === undefined),
    };
  },
});

async function ask(ctx: Pick<AgentContext, "scheduleTask">, question: string, source: string) {
  try {
    return await ctx.scheduleTask(search, { question, source });
  } catch (error) {
    if (TaskFailedError.is(error)) return undefined;
    throw error;
  }
}
