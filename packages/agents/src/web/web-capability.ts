// `webCapability`: the tool `web_fetch`, by which a model reads a page of the public web.
//
//   - The argument that rules look at is the host. Without a rule each call asks a person.
//   - A page is a GET, which changes nothing: a call that a crash cut off runs again.

import { defined } from "@holdfast/core";
import { defineTask } from "@holdfast/runtime";
import { z } from "zod";

import type { Capability } from "../model-loop/capability.ts";
import { defineTool } from "../model-loop/tools/tool.ts";
import { fetchPage, hostOf, PUBLIC_NETWORK, type Network } from "./fetch-page.ts";
import { pageText } from "./page-text.ts";

interface FetchedPage {
  readonly url: string;
  readonly status: number;
  readonly text: string;
  readonly isCut: boolean;
  readonly movedTo?: string;
}

export function webCapability(network: Network = PUBLIC_NETWORK): Capability<true> {
  const fetchTask = defineTask<{ readonly url: string }, FetchedPage>({
    name: "web_fetch",
    description: "Read a page of the public web",
    effect: "read", // A page is a GET: a call that a crash cut off runs again.
    retry: { nonRetryable: ["invalid_input", "invalid_output", "policy_denied", "limit_exceeded"] },
    run: async ({ url }, { signal }) => {
      const page = await fetchPage(url, signal, network);
      const { status, isCut, movedTo } = page;
      const text = await pageText(page, signal);
      return { url: page.url, status, text, isCut, ...defined({ movedTo }) };
    },
  });
  const tool = defineTool({
    name: "web_fetch",
    description:
      "Read a page of the public web as Markdown. Pages of this machine and network cannot be read.",
    input: z.strictObject({ url: z.string().min(1).describe("http://… or https://…") }),
    isReading: false, // Without a rule each call asks a person.
    subject: ({ url }) => hostOf(url),
    run: async (ctx, { url }) => {
      const page = await ctx.scheduleTask(fetchTask, { url });
      if (page.movedTo !== undefined)
        return `The page has moved to another host: ${page.movedTo}\nCall web_fetch with that address to read it.`;
      const cut = page.isCut ? "\n(the page is longer)" : "";
      return `${page.url} (${page.status})\n\n${page.text === "" ? "(no text)" : page.text}${cut}`;
    },
  });
  return {
    name: "web",
    tasks: [fetchTask],
    prepare: async () => true,
    offer: () => ({ tools: [tool] }),
  };
}
