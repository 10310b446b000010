// `resultMedia`: the images, sounds and other files in the result of an MCP tool.
//
// The output of the call's task keeps them, and storage makes blobs of large outputs. Images go on to the
// model.
//
// All media of a result together have a limit. The text of the result says what was left out.

import type { CallToolResult } from "@modelcontextprotocol/client";

import { MCP_LIMITS } from "./limits.ts";

export interface Media {
  readonly mimeType: string;
  /** Base64. */
  readonly data: string;
}

type Block = CallToolResult["content"][number];

/** The file in one block; `undefined` for text and links. */
export function mediaOf(block: Block): Media | undefined {
  switch (block.type) {
    case "image":
    case "audio":
      return { mimeType: block.mimeType, data: block.data };
    case "resource": {
      const { resource } = block;
      if (!("blob" in resource) || typeof resource.blob !== "string") return undefined;
      return { mimeType: resource.mimeType ?? "application/octet-stream", data: resource.blob };
    }
    case "text":
    case "resource_link":
      return undefined;
  }
}

/** The first ones that fit. */
export function resultMedia({ content }: Pick<CallToolResult, "content">): readonly Media[] {
  let left: number = MCP_LIMITS.mediaChars;
  return content.flatMap((block) => {
    const media = mediaOf(block);
    if (media === undefined || !isBase64(media.data) || media.data.length > left) return [];
    left -= media.data.length;
    return [media];
  });
}

/** The types of images that models read. */
const READ_IMAGES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function isReadImage({ mimeType }: Media): boolean {
  return READ_IMAGES.has(mimeType);
}

/** The bytes of base64. */
export function mediaBytes({ data }: Media): number {
  return Math.floor((data.replace(/=+$/, "").length * 3) / 4);
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}
