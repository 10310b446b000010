// `startGeminiServer`: as much of Google's API for models as Gemini CLI needs, with the replies of `scriptedReply`.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toError } from "@holdfast/core";
import type { Conversation, ConversationMessage, Reply } from "@holdfast/testkit";
import { scriptedReply } from "./scripted-reply.ts";

export interface GeminiServer {
  readonly url: string;
  readonly requests: readonly { readonly body: unknown }[];
  close(): Promise<void>;
}

interface Part {
  readonly text?: string;
  readonly functionCall?: { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
  readonly functionResponse?: { readonly name: string; readonly response: unknown };
}

interface Request {
  readonly contents?: readonly { readonly role?: string; readonly parts?: readonly Part[] }[];
  readonly tools?: readonly { readonly functionDeclarations?: readonly { readonly name: string }[] }[];
}

export async function startGeminiServer(): Promise<GeminiServer> {
  const requests: { readonly body: unknown }[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = JSON.parse(Buffer.concat(chunks).toString() || "{}") as Request;
      requests.push({ body });
      const isStream = request.url?.includes(":streamGenerateContent") === true;
      const answer = JSON.stringify(
        request.url?.includes(":countTokens") === true
          ? { totalTokens: 10 }
          : encoded(scriptedReply(read(body))),
      );
      response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
      response.end(isStream ? `data: ${answer}\n\n` : answer);
    })().catch((error: unknown) => {
      response.writeHead(400, { "content-type": "application/json" });
      const { message } = toError(error);
      response.end(JSON.stringify({ error: { code: 400, message, status: "INVALID_ARGUMENT" } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function read({ contents = [], tools = [] }: Request): Conversation {
  const messages = contents.map(({ role, parts = [] }): ConversationMessage => {
    const isResult = parts.some(({ functionResponse }) => functionResponse !== undefined);
    const spoken = role === "model" ? "assistant" : "user";
    return {
      role: isResult ? "tool" : spoken,
      text: parts.map(({ text = "" }) => text).join("\n"),
      toolCalls: [],
      toolResults: [],
    };
  });
  const names = tools.flatMap(({ functionDeclarations = [] }) =>
    functionDeclarations.map(({ name }) => name),
  );
  const offered = names.map((name) => ({ name, description: "", schema: {} }));
  return { model: "gemini", system: "", messages, tools: offered };
}

function encoded({ text, toolCalls = [] }: Reply): object {
  const parts: Part[] = toolCalls.map(({ name, input }) => ({ functionCall: { name, args: { ...input } } }));
  if (text !== undefined) parts.push({ text });
  return {
    candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  };
}
