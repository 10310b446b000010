// A program of your own around an agent: node examples/06-research/program.ts "Is it so?" research.db

import { createRuntime, openSqliteStorage } from "holdfast";
import research from "./research.ts";

const [question = "Is it so?", path = "research.db"] = process.argv.slice(2);
const storage = await openSqliteStorage({ path });
const runtime = createRuntime({ storage, agents: [research] });
try {
  await runtime.recover(); // Resume the sessions of an earlier process.
  // The same question is the same session, which resumes after a crash and is not paid again after its end.
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
