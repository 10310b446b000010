// `listTopics`, `readTopic`: the documents that are in the package, for people and coding agents without a
// network.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { didYouMean, HoldfastError, NotFoundError } from "@holdfast/core";

export interface Topic {
  readonly topic: string;
  readonly title: string;
  readonly about: string;
  readonly path: string;
}

/** The topic of `SKILL.md`: all of Holdfast on two pages, for coding agents. */
const SKILL = "skill";

export function listTopics(): readonly Topic[] {
  const { docs, skill } = folders();
  const files = readdirSync(docs).filter((name) => name.endsWith(".md"));
  return [
    topicOf(SKILL, skill),
    ...files.toSorted().map((name) => topicOf(name.replace(/\.md$/, ""), join(docs, name))),
  ];
}

/** @throws NotFoundError that names the nearest topic. */
export function readTopic(name: string): { readonly topic: Topic; readonly text: string } {
  const topics = listTopics();
  const wanted = name
    .toLowerCase()
    .replace(/^docs\//, "")
    .replace(/\.md$/, "");
  const topic = topics.find((one) => one.topic === wanted);
  if (topic !== undefined) return { topic, text: readFileSync(topic.path, "utf8") };
  const names = topics.map((one) => one.topic);
  throw new NotFoundError("not_found", `there is no topic ${name}${didYouMean(wanted, names)}`, {
    got: name,
    expected: names.join(", "),
    fix: "`holdfast docs` lists the topics with their titles",
  });
}

/** Beside the built code of the published package, or in the repository. */
function folders(): { readonly docs: string; readonly skill: string } {
  const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  const places = [
    { docs: at("../docs"), skill: at("../SKILL.md") },
    { docs: at("../../../../docs"), skill: at("../../SKILL.md") },
  ];
  const found = places.find(({ docs, skill }) => existsSync(docs) && existsSync(skill));
  if (found !== undefined) return found;
  throw new HoldfastError("file_not_found", "the documents of this installation are not there", {
    at: places[0]!.docs,
    fix: "install holdfast again",
  });
}

function topicOf(topic: string, path: string): Topic {
  const text = readFileSync(path, "utf8").replace(/^---\n[^]*?\n---\n/, "");
  const title = /^# (.+)$/m.exec(text)?.[1] ?? topic;
  const paragraph = text.split(/\n\n+/).find((part) => /^[A-Z`*[]/.test(part.trim())) ?? "";
  return { topic, title, about: firstSentence(paragraph), path };
}

function firstSentence(paragraph: string): string {
  const line = paragraph
    .replaceAll(/\s+/g, " ")
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .replaceAll("**", "");
  return /^.*?[.:](?= |$)/.exec(line)?.[0].replace(/:$/, ".") ?? line.trim();
}
