// `toMarkdown`: HTML as Markdown, however hostile the page is.
//
//   to-markdown-1. The page is converted in a thread with limits of time and memory, because some pages take minutes: elements
//       inside of each other without end. Such a page becomes its text without structure.

import { Worker } from "node:worker_threads";

/** The part of a page that is converted. */
const HTML_CHARS_MAX = 1_000_000;
const CONVERT_MS = 20_000;
const MEMORY_MIB = 256;

export async function toMarkdown(html: string, signal: AbortSignal, ms = CONVERT_MS): Promise<string> {
  const page = html.slice(0, HTML_CHARS_MAX);
  const markdown = await convert(page, signal, ms);
  signal.throwIfAborted();
  return markdown ?? withoutTags(page);
}

/** @returns `undefined` for a page that exceeds a limit. */
function convert(html: string, signal: AbortSignal, ms: number): Promise<string | undefined> {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./markdown-thread.${extension}`, import.meta.url), {
    workerData: html,
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
  });
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const giveUp = (): void => resolve(undefined);
  const timer = setTimeout(giveUp, ms);
  signal.addEventListener("abort", giveUp, { once: true });
  worker.once("message", resolve);
  worker.once("error", giveUp);
  worker.once("exit", giveUp);
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
    void worker.terminate();
  });
}

function withoutTags(html: string): string {
  return html
    .replaceAll(/<[^<>]{0,1000}>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
