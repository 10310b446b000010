import { table } from "@holdfast/terminal/frame/plain-text";
import type { Command } from "@holdfast/terminal/frame/command";
import { listTopics, readTopic } from "../../library/offline-docs.ts";

export const docs: Command = {
  name: "docs",
  takes: [{ name: "TOPIC", is: "the topic", optional: true }],
  description:
    "Shows a document of this installation, as Markdown, without a network. Without TOPIC it lists all topics. The topic `skill` is for coding " +
    "agents: how to write and run agents, on two pages. The files lie in node_modules/holdfast/docs, and llms.txt beside them lists them.",
  options: {},
  examples: [
    ["docs", "all topics"],
    ["docs guide", "the guide"],
    ["docs skill", "what a coding agent should read first"],
  ],

  async run(args, io) {
    const [name] = args.positionals;
    if (name === undefined) {
      const topics = listTopics();
      io.show(
        topics,
        table(topics.map(({ topic, title, about }) => [topic, about === "" ? title : about])).join("\n"),
      );
      return 0;
    }
    const { topic, text } = readTopic(name);
    io.result({ ...topic, text }, text.trimEnd());
    return 0;
  },
};
