// The tools that the model loop answers itself: questions, the list of steps, the plan, and the output.

import { HoldfastError, type Json, type JsonSchema } from "@holdfast/core";
import { z } from "zod";

import type { ModelTool } from "../../models/model-provider.ts";
import { findProblems } from "../json-schema.ts";
import { defineTool, type Tool } from "./tool.ts";

const text = z.string().trim().min(1);

/** Asks the person that the agent works for. */
export const askUser = defineTool({
  name: "ask_user",
  description:
    "Ask the person you work for a question, and wait for the answer. Ask only what you cannot find out yourself.",
  input: z.strictObject({
    question: text,
    options: z.array(text).max(10).optional().describe("Answers to choose from"),
  }),
  isReading: true,
  run: async (ctx, { question, options }) => {
    const details = options === undefined ? undefined : { options };
    const answer = await ctx.requestInput<Json>({ prompt: question, details }, { answer: "any" });
    return typeof answer === "string" ? answer : JSON.stringify(answer);
  },
});

/** Keeps the list of steps in the state, so that compaction and a crash leave it as it is. */
export const todo = defineTool({
  name: "todo",
  description: "Replace your list of steps. Use it for work of several steps, and keep it up to date.",
  input: z.strictObject({
    todos: z
      .array(z.strictObject({ text, status: z.enum(["pending", "in_progress", "done"]) }))
      .max(100)
      .describe("The whole list, in order"),
  }),
  isReading: true,
  run: async (_ctx, { todos }) => {
    const open = todos.filter(({ status }) => status !== "done").length;
    return { text: `The list has ${todos.length} steps, ${open} of them open.`, update: { todos } };
  },
});

/** For an agent that plans first: until the plan is approved, only tools that read run. */
export const proposePlan = defineTool({
  name: "propose_plan",
  description:
    "Propose a plan to the person you work for. Until the person has approved it, you cannot change anything.",
  input: z.strictObject({
    plan: text.describe("What is to be done and why, step by step, as Markdown"),
  }),
  isReading: true,
  run: async (ctx, { plan }) => {
    const { approved, reason } = await ctx.requestInput({ prompt: "Approve this plan?", details: { plan } });
    const said = reason === undefined ? "" : ` The person says: ${reason}`;
    if (!approved) return `The plan was not approved.${said} Revise it and call propose_plan again.`;
    return { text: `The plan was approved. Carry it out.${said}`, update: { plan } };
  },
});

/** The name of the tool that gives the output of an agent with an output schema. */
export const SUBMIT_OUTPUT = "submit_output";

/**
 * Gives the output of a session whose agent has an output schema. Arguments of models are objects, so that a
 * schema of something else is offered as the property `output`.
 */
export function submitOutput(schema: JsonSchema): Tool {
  const isObject = schema["type"] === "object";
  const offered: ModelTool = {
    name: SUBMIT_OUTPUT,
    description: "Give the result of your work. Call it once, when the work is done.",
    inputSchema: isObject ? schema : { type: "object", properties: { output: schema }, required: ["output"] },
  };
  return {
    offered,
    isReading: true,
    subjectKind: "text",
    prepare: (input) => {
      const output = (isObject ? input : (input as { readonly output?: unknown }).output) as Json;
      const problems = findProblems(schema, output);
      if (problems !== undefined)
        throw new HoldfastError("invalid_input", `the output does not match its schema:\n${problems}`);
      return { subject: null, schedule: async () => ({ text: "Received.", isError: false, output }) };
    },
  };
}
