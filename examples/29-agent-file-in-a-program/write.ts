// The agent file of example 19, run by a program: `node write.ts "A text of at most 8 words about our lamp."`

import { runAgentFile } from "holdfast";

const [request = "A text of at most 8 words about our lamp."] = process.argv.slice(2);
const text = await runAgentFile("writer", request, {
  folder: process.env["PROJECT"] ?? "../19-script-and-skill",
  database: "texts.db",
});
console.log(text);
