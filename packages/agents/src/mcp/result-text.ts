// `resultText`: the result of an MCP tool as the text that a model reads. Other content is named, with its size.

import type { CallToolResult } from "@modelcontextprotocol/client";

export function resultText({ content, structuredContent }: CallToolResult): string {
  const parts = content.map((block) => {
    switch (block.type) {
      case "text":
        return block.text;
      case "resource_link":
        return `[link to ${block.uri}]`;
      case "resource":
        return "text" in block.resource
          ? block.resource.text
          : `[${block.resource.uri}: ${block.resource.blob.length} characters of base64 left out]`;
      default:
        return `[${block.type} of ${block.mimeType}: ${block.data.length} characters of base64 left out]`;
    }
  });
  if (parts.length > 0) return parts.join("\n");
  return structuredContent === undefined ? "The call has no result." : JSON.stringify(structuredContent);
}
