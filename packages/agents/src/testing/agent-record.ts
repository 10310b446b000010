// The agent record that tests of the model loop change (`RECORD`): an agent with all built-in tools and no
// restriction.

import type { AgentRecord } from "../record/agent-record.ts";
import { newDraft } from "../format/agent-draft.ts";

export const RECORD: AgentRecord = {
  ...newDraft("helper", "You help."),
  description: "Helps.",
  skills: [],
  source: { path: "/helper.md", dialect: "holdfast", scope: "path", hash: "0123456789abcdef" },
};
