// `pageText`: a web page as text that a model reads, with HTML as Markdown.

import { HoldfastError } from "@holdfast/core";
import type { Page } from "./fetch-page.ts";
import { toMarkdown } from "./to-markdown.ts";

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
