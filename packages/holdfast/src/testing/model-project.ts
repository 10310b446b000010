// `ModelProject`: a project whose agents ask a scripted model, with a home folder outside of it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  startScriptedModelServer,
  type Conversation,
  type Reply,
  type ScriptedModelServer,
} from "@holdfast/testkit";
import { Project, type ProjectOptions } from "./holdfast-process.ts";

export class ModelProject extends Project {
  readonly home: string;
  /** The variables of every command, beside those of all tests. */
  readonly variables: NonNullable<ProjectOptions["env"]>;
  readonly server: ScriptedModelServer;
  /** The model's reply. A test sets it before it runs an agent. */
  script: (conversation: Conversation) => Reply = () => ({ text: "Done." });

  /** @param env more variables of every command */
  static async open(env: ProjectOptions["env"] = {}): Promise<ModelProject> {
    const server = await startScriptedModelServer({ script: (conversation) => project.script(conversation) });
    const project = new ModelProject(mkdtempSync(join(tmpdir(), "holdfast-home-")), server, env);
    return project;
  }

  private constructor(home: string, server: ScriptedModelServer, env: ProjectOptions["env"]) {
    const variables = {
      HOME: home,
      XDG_DATA_HOME: undefined,
      HOLDFAST_SCRIPTED_MODEL_URL: server.url,
      ...env,
    };
    super({ env: variables });
    this.variables = variables;
    this.home = home;
    this.server = server;
  }

  override async dispose(): Promise<void> {
    await super.dispose();
    await this.server.close();
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** How many replies of the model a conversation has. */
export function repliesOf({ messages }: Conversation): number {
  return messages.filter(({ role }) => role === "assistant").length;
}
