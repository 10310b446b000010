import { setTimeout as pause } from "node:timers/promises";
import { defineAgent } from "holdfast";

/** The parts that a crash must not repeat. Replace `writeSection` by a call of your model. */
export const first = defineAgent({
  name: "first-agent",
  async run(ctx, topic: string = "agents that survive a crash") {
    const outline = await ctx.run("outline", () => ["why", "how", "what next"]);
    const sections: string[] = [];
    for (const title of outline) {
      // Recorded when it is done. A resumed session gets the recorded text, and writes nothing twice.
      sections.push(await ctx.run(`write ${title}`, () => writeSection(topic, title)));
    }
    return sections.join("\n");
  },
});

export default first;

async function writeSection(topic: string, title: string): Promise<string> {
  console.log(`writing "${title}" …`);
  await pause(Number(process.env["SECTION_MS"] ?? 3_000)); // Kill the process here: kill -9
  return `${title}: a section about ${topic}`;
}
