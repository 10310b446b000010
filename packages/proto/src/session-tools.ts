// `SESSION_TOOLS`: the tools by which an agent starts sessions of others and gets their results, as the
// earlier orchestrator named them.
//
// Two backends carry them out: the sessions of a coordinator, for clients of MCP, and the children of a
// session, for coding agents and executors. A model reads the same words in all of them.

import { z } from "zod";

/** The most characters of JSON in the input of a session. */
export const INPUT_CHARS = 100_000;
const YEAR_SECONDS = 31_536_000;

const sessionId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/);
const fitting = (value: unknown): boolean => JSON.stringify(value ?? null).length <= INPUT_CHARS;
const tooLong = { error: `expected at most ${INPUT_CHARS} characters of JSON` };
const parameters = z.record(z.string(), z.unknown()).refine(fitting, tooLong);
const mode = z
  .enum(["sync", "async_poll", "async_callback"])
  .default("sync")
  .describe(
    "sync waits for the result. async_poll answers at once; ask for the status later. async_callback answers at once, and the calling session is resumed with the result.",
  );
const key = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/)
  .optional()
  .describe(
    "Repeating a call with its key never does the work twice. Give each of several equal calls a key of its own.",
  );

export const SESSION_TOOLS = {
  list_agent_blueprints: {
    description: "List the agents that can be started.",
    input: z.strictObject({}),
    readsOnly: true,
  },
  list_agent_sessions: {
    description: "List the sessions that you may read, with their status.",
    input: z.strictObject({
      cursor: z.string().max(1_000).optional().describe("next_cursor of the page before"),
    }),
    readsOnly: true,
  },
  start_agent_session: {
    description:
      'Let another agent do a piece of work in a session of its own. It knows nothing of this conversation. If a session makes this call, the new session is paid from its budget and ends with it. Most agents take `{"prompt": "…"}` as parameters; with `"conversation": true` some take further prompts. The session continues although this call ends.',
    input: z.strictObject({
      parameters: parameters.optional(),
      input: z
        .unknown()
        .refine(fitting, tooLong)
        .optional()
        .describe("the whole input in the place of parameters, for an agent that takes no object"),
      agent_name: z.string().min(1).max(200).optional().describe("list_agent_blueprints lists the agents"),
      project_dir: z
        .string()
        .min(1)
        .max(1_000)
        .optional()
        .describe("the folder to work in, for executors and agents with this parameter"),
      mode,
      timeout_seconds: z
        .int()
        .min(1)
        .max(YEAR_SECONDS)
        .optional()
        .describe("the session is cancelled after this time"),
      idempotency_key: key,
    }),
  },
  resume_agent_session: {
    description: "Send the next prompt to a conversation whose turn is finished.",
    input: z.strictObject({
      session_id: sessionId,
      parameters: parameters.describe('such as {"prompt": "…"}'),
      mode,
      idempotency_key: key,
    }),
  },
  get_agent_session_status: {
    description: "The status of a session: running, finished or not_existent.",
    input: z.strictObject({ session_id: sessionId }),
    readsOnly: true,
  },
  get_agent_session_result: {
    description: "The result of a session whose turn is finished.",
    input: z.strictObject({ session_id: sessionId }),
    readsOnly: true,
  },
  delete_all_agent_sessions: {
    description: "Delete the ended sessions that you started by these tools.",
    input: z.strictObject({}),
  },
} as const satisfies Readonly<
  Record<string, { readonly description: string; readonly input: z.ZodObject; readonly readsOnly?: true }>
>;

/** The name of one of the tools. */
export type SessionToolName = keyof typeof SESSION_TOOLS;

/** The checked input of one of the tools. */
export type SessionToolInput<Name extends SessionToolName> = z.output<(typeof SESSION_TOOLS)[Name]["input"]>;
