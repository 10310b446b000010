// The extension that Pi loads (`-e`): it asks the host before each call of a tool. Pi itself has no permissions.
//
// It imports nothing, because Pi loads it with a loader of its own. A handler that fails blocks the call.

interface Pi {
  on(
    event: "tool_call",
    handler: (
      event: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown },
      context: { readonly ui: { input(title: string, placeholder: string): Promise<string | undefined> } },
    ) => Promise<{ readonly block: true; readonly reason: string } | undefined>,
  ): void;
}

export default function gate(pi: Pi): void {
  pi.on("tool_call", async ({ toolCallId, toolName, input }, { ui }) => {
    const asked = JSON.stringify({ toolCallId, tool: toolName, input });
    const answer = await ui.input("holdfast:permission", asked);
    if (answer === "allow") return undefined;
    return { block: true, reason: answer ?? "The call was not allowed." };
  });
}
