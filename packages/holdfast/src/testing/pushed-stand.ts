// `PushedStand`: a coordinator in this process, the command that pushes files to it, and runner processes with
// policies of their own.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import {
  startScriptedModelServer,
  type Conversation,
  type Reply,
  type ScriptedModelServer,
} from "@holdfast/testkit";
import { expect, vi } from "vitest";
import { openFleet, type Fleet } from "./fleet.ts";
import { PATIENCE } from "./fleet-sessions.ts";
import { Project, type HoldfastProcess } from "./holdfast-process.ts";

export class PushedStand {
  readonly project = new Project();
  readonly fleet: Fleet;
  readonly #server: ScriptedModelServer;
  #policies = 0;

  private constructor(fleet: Fleet, server: ScriptedModelServer) {
    this.fleet = fleet;
    this.#server = server;
    mkdirSync(this.project.path("work"));
  }

  /** @param script the replies of the model. */
  static async open(script: (asked: Conversation) => Reply): Promise<PushedStand> {
    return new PushedStand(await openFleet(), await startScriptedModelServer({ script }));
  }

  async close(): Promise<void> {
    await this.project.dispose();
    await this.fleet.close();
    await this.#server.close();
  }

  /** @returns the absolute path of the file. */
  write(path: string, text: string): string {
    const file = this.project.path(path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  /** An agent file with the number in its prompt. @returns its path. */
  agent(name: string, number: string, fields = "", description = "Helps."): string {
    const head = `---\nname: ${name}\ndescription: ${description}\n${fields}---\n`;
    return this.write(`${name}.md`, `${head}You are ${name}, number ${number}.\n`);
  }

  /** As the admin, or with another token. @returns the standard output of a command that succeeds. */
  async done(args: readonly string[], token = this.fleet.adminToken): Promise<string> {
    const { code, stdout, stderr } = await this.project.finish([...args], { env: this.#env(token) });
    expect(code, `${args.join(" ")}: ${stderr}`).toBe(0);
    return stdout;
  }

  /** @param token absent for a runner of this name that was started before. */
  async runner(
    policy: object,
    token = "",
    options: readonly string[] = ["--name", "box"],
  ): Promise<HoldfastProcess> {
    const file = this.write(`policy-${this.#policies++}.json`, JSON.stringify(policy));
    const args = ["-c", this.fleet.url, "-p", "work", "--policy", file, ...options];
    const env = { ...this.#env(token), HOLDFAST_SCRIPTED_MODEL_URL: this.#server.url };
    const started = this.project.start(["runner", ...args], { env, stdin: "" });
    await started.says("waiting for runs");
    return started;
  }

  async approve(sessionId: string): Promise<void> {
    await vi.waitFor(async () => {
      const response = await fetch(`${this.fleet.url}/v1/sessions/${sessionId}/answer`, {
        method: "POST",
        headers: { authorization: `Bearer ${this.fleet.adminToken}`, "content-type": "application/json" },
        body: JSON.stringify({ answer: { approved: true } }),
      });
      expect(response.ok, `the answer was refused with ${response.status}`).toBe(true);
    }, PATIENCE);
  }

  #env(token: string) {
    return { HOLDFAST_TOKEN: token, HOLDFAST_URL: this.fleet.url, HOME: this.project.path("home") };
  }
}
