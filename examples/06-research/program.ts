// A program of your own around an agent: node examples/06-research/program.ts "Is it so?" research.db

import { createRuntime, openSqliteStorage } from "holdfast";
import research from "./research.ts";

const [question = "Is it so?", path = "research.db"] = process.argv.slice(2);
const storage = await openSqliteStorage({ path });
const runtime = createRuntime({ storage, agents: [research] });
try {
  await runtime.recover(); // Go on with what an earlier process left.
  // The same question is the same session: asked again after a crash, it goes on; asked again after its end, it is not paid again.
  const sessionId = question.replace(/\W+/g, "-").replace(/^-+|-+$/g, "") || "research";
  const session = await runtime.start(
    research,
    { question, sources: ["almanac", "archive", "attic"] },
    { sessionId },
  );
  console.log(JSON.stringify(await session.result()));
} finally {
  await runtime.close();
  await storage.close();
}
