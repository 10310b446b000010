// The session on whose behalf the orchestrator's tools are called, over a real fleet.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { defineAgent } from "@holdfast/runtime";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openFleet } from "../testing/fleet.ts";

const greet = defineAgent<{ prompt: string }, string>({
  name: "greet",
  run: async (_ctx, { prompt }) => `hello ${prompt}`,
});
const hold = defineAgent({ name: "hold", run: async (ctx) => ctx.waitForSignal("go") });

test(
  "sessions of every mode are below the session that the header names, and only a callback ends with it",
  ofCampaign,
  async () => {
    const fleet = await openFleet();
    await fleet.runner({ agents: [greet, hold], graceMs: 0 });
    const headers = { authorization: `Bearer ${fleet.adminToken}`, "content-type": "application/json" };
    const post = async (path: string, body: object) => {
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      return (await fetch(`${fleet.url}/v1/sessions${path}`, init)).json() as Promise<Record<string, string>>;
    };
    const { sessionId: parent = "" } = await post("", { agent: "hold" });
    const client = new Client({ name: "test", version: "1" });
    const requestInit = { headers: { ...headers, "x-agent-session-id": parent } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${fleet.url}/mcp`), { requestInit }));
    const call = async (name: string, args: Record<string, unknown> = {}) => {
      const { structuredContent, content } = await client.callTool({ name, arguments: args });
      return (structuredContent ?? content) as Record<string, string>;
    };
    const begin = (agent: string, mode: string) =>
      call("start_agent_session", { agent_name: agent, parameters: { prompt: "you" }, mode });
    try {
      const waited = await begin("greet", "sync");
      expect(waited).toMatchObject({ status: "finished", result: "hello you" });
      const [polled, called] = [await begin("hold", "async_poll"), await begin("hold", "async_callback")];
      const listed = (await call("list_agent_sessions"))["sessions"] as unknown as readonly Record<
        string,
        string
      >[];
      const below = listed.filter((one) => one["parent_session_id"] === parent);
      expect(new Set(below.map((one) => one["session_id"]))).toEqual(
        new Set([waited, polled, called].map((one) => one["session_id"])),
      );
      await post(`/${parent}/signals`, { name: "go" });
      const statusOf = async ({ session_id }: Record<string, string>) =>
        (await call("get_agent_session_status", { session_id }))["status"];
      await expect.poll(() => statusOf(called), { timeout: 30_000 }).toBe("finished");
      expect(await statusOf(polled)).toBe("running");
      expect(JSON.stringify(await begin("greet", "sync"))).toContain("it can have no child");
    } finally {
      await client.close();
      await fleet.close();
    }
  },
);
