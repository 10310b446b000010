// `pageText`: a web page as text that a model reads, with HTML as Markdown (`toMarkdown`), however hostile
// the page is.
//
// HTML is converted in a thread with limits of time and memory, because some pages take minutes: elements
// inside of each other without end. Such a page becomes its text without structure.

import { clearTimeout, setTimeout } from "node:timers";
import { HoldfastError } from "@holdfast/core";
import { Worker } from "node:worker_threads";
import type { Page } from "./fetch-page.ts";

/** The part of the text that is recorded. A model reads less. */
const TEXT_CHARS_MAX = 200_000;

export async function pageText({ type, charset, body, url }: Page, signal: AbortSignal): Promise<string> {
  if (body.length === 0) return "";
  const isHtml = type === "text/html" || type === "application/xhtml+xml";
  const isText =
    isHtml || type === "" || type.startsWith("text/") || /[/+](json|xml|javascript|yaml)$/.test(type);
  if (!isText || body.subarray(0, 4_096).includes(0))
    throw new HoldfastError("invalid_output", `${url} is no text: it is ${type === "" ? "binary" : type}`, {
      fix: "look for a page with text",
    });
  const text = decode(body, charset);
  const shown = isHtml ? await toMarkdown(text, signal) : text;
  return shown.length <= TEXT_CHARS_MAX ? shown : `${shown.slice(0, TEXT_CHARS_MAX)}\n(the page is longer)`;
}

function decode(body: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return new TextDecoder().decode(body); // A charset that nobody knows.
  }
}

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
