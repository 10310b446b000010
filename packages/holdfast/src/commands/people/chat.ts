import { SCRIPTED_OPTIONS, withScriptedModel } from "../../run/starting/scripted-model.ts";
import { GRACE_OPTION, type Command, ENV_OPTION, ENV_REF_OPTION } from "@holdfast/terminal/frame/command";
import { startChat } from "../../chat/start-chat.ts";

export const chat: Command = {
  name: "chat",
  takes: [
    {
      name: "AGENT",
      is: "the agent",
      orOption: "session",
      ifMissing: "run `holdfast agents list` to see all agents",
    },
    { name: "TEXT", is: "the text", optional: true, ifMore: "put the text in quotes" },
  ],
  description:
    "Starts a conversation, streams the answers, shows each tool call on a line, and asks for approvals in place. A line is the next " +
    "message; while the agent works, it steers the agent. Ctrl-C interrupts the agent, twice leaves; so do /exit and the end of the input. " +
    "The session stays, and `holdfast chat --session ID` continues it, also after a crash. On a terminal @PATH in a message sends " +
    "that file of the project with it. Without a terminal each line of standard input is one message, and standard output has the answers alone.",
  options: {
    session: {
      help: "continue this session; with AGENT, start it under this id if there is none",
      value: "ID",
    },
    budget: {
      help: "what the conversation may spend, in units of usd, tokens, steps, turns, in all or per window (0.50usd/day)",
      value: "LIMITS",
    },
    "resume-at-reset": {
      help: "when a model's usage limit pauses the new conversation, it continues by itself at the reset",
    },
    worktree: {
      help: "the new conversation works in a git worktree of its own (`holdfast diff ID`, `holdfast merge ID`)",
    },
    env: ENV_OPTION,
    "env-ref": ENV_REF_OPTION,
    grace: GRACE_OPTION,
    sandbox: {
      help: "the sandbox that the new conversation works in (`holdfast doctor` lists them)",
      value: "NAME",
    },
    profile: {
      help: "for external agents: a profile of ~/.holdfast/profiles, or of .holdfast/profiles of the project",
      value: "NAME",
    },
    scripted: { help: SCRIPTED_OPTIONS.scripted.help },
    replies: { ...SCRIPTED_OPTIONS.replies, excludes: ["scripted"] },
  },
  examples: [
    ["chat reviewer", "a conversation"],
    [`chat reviewer "look at the last commit"`, "with its first message"],
    ["chat --session ses_019a", "go on where it stopped"],
    ["chat reviewer --budget 1.00usd < questions.txt", "one message a line"],
  ],

  async run(args, io) {
    return withScriptedModel(args, io, () => startChat(args, io));
  },
};
