// The extension that Pi loads (`-e`): it asks the host before each call of a tool, because Pi itself has no
// permissions. It also offers the tools of the session, whose calls it passes to the host. It points the
// providers at the gateway that holds their keys.
//
// It imports nothing, because Pi loads it with a loader of its own. A handler that fails blocks the call.

interface Context {
  readonly ui: { input(title: string, placeholder: string): Promise<string | undefined> };
}

interface Pi {
  on(
    event: "tool_call",
    handler: (
      event: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown },
      context: Context,
    ) => Promise<{ readonly block: true; readonly reason: string } | undefined>,
  ): void;
  /** Changes the address alone of a provider that Pi knows. */
  registerProvider(name: string, config: { readonly baseUrl: string }): void;
  registerTool(tool: {
    readonly name: string;
    readonly label: string;
    readonly description: string;
    readonly parameters: unknown;
    readonly execute: (id: string, input: unknown, ...rest: readonly unknown[]) => Promise<unknown>;
  }): void;
}

interface SessionTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: unknown;
}

export default function gate(pi: Pi): void {
  pi.on("tool_call", async ({ toolCallId, toolName, input }, { ui }) => {
    const asked = JSON.stringify({ toolCallId, tool: toolName, input });
    const answer = await ui.input("holdfast:permission", asked);
    if (answer === "allow") return undefined;
    return { block: true, reason: answer ?? "The call was not allowed." };
  });
  const urls = JSON.parse(process.env["HOLDFAST_MODEL_URLS"] ?? "{}") as Readonly<Record<string, string>>;
  for (const [name, baseUrl] of Object.entries(urls)) pi.registerProvider(name, { baseUrl });
  const tools = JSON.parse(process.env["HOLDFAST_SESSION_TOOLS"] ?? "[]") as readonly SessionTool[];
  for (const { name, description, inputSchema } of tools)
    pi.registerTool({
      name,
      label: name,
      description,
      parameters: inputSchema,
      async execute(_id, input, ...rest) {
        // Versions of Pi give the context at different places.
        const context = rest.find(
          (one) => typeof (one as Partial<Context> | undefined)?.ui?.input === "function",
        );
        const asked = JSON.stringify({ tool: name, input });
        const answer = await (context as Context).ui.input("holdfast:call", asked);
        const { text, isError } = JSON.parse(answer ?? "{}") as { text?: string; isError?: boolean };
        if (isError !== false) throw new Error(text ?? "The session did not answer.");
        return { content: [{ type: "text", text }], details: {} };
      },
    });
}
