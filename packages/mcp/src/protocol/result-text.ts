// `resultText`: the result of an MCP tool as the text that a model reads. Other content is named, with its
// size and what became of it.

import type { CallToolResult } from "@modelcontextprotocol/client";

import { isReadImage, mediaBytes, mediaOf, type Media } from "./result-media.ts";

/** @param kept the media that the record of the call keeps; none by default. */
export function resultText(
  { content, structuredContent }: CallToolResult,
  kept: readonly Media[] = [],
): string {
  const left = kept.map(({ data }) => data);
  const parts = content.map((block) => {
    switch (block.type) {
      case "text":
        return block.text;
      case "resource_link":
        return `[link to ${block.uri}: ${[block.name, block.mimeType, block.description].filter(Boolean).join(", ")}]`;
      case "resource":
        if ("text" in block.resource) return block.resource.text;
        return named(`${block.resource.uri}, `, mediaOf(block), left);
      default:
        return named("", mediaOf(block), left);
    }
  });
  if (parts.length > 0) return parts.join("\n");
  return structuredContent === undefined ? "The call has no result." : JSON.stringify(structuredContent);
}

function named(place: string, media: Media | undefined, left: string[]): string {
  if (media === undefined) return "[content of an unknown form]";
  const what = `${place}${media.mimeType}, ${mediaBytes(media)} bytes`;
  const at = left.indexOf(media.data);
  if (at < 0) return `[${what}: left out, because it is too large or no base64]`;
  left.splice(at, 1);
  return isReadImage(media)
    ? `[image: ${what}]`
    : `[${what}: the record of this call keeps it, and you cannot read it]`;
}
