// Plans and todo lists of external programs: each is an entry of its own kind, with equal statuses whatever
// the program calls them.

import { afterEach, expect, test } from "vitest";
import { sampled } from "@holdfast/testkit/campaign";

import type { IncludedName } from "../included-programs.ts";
import { ExternalSession } from "../testing/external-session.ts";
import { recordText } from "./record-text.ts";

let session: ExternalSession;
afterEach(() => session.dispose());

const plans = async (): Promise<readonly unknown[]> =>
  (await session.entries()).filter(({ role }) => role === "plan").map(({ content }) => content);

test.each<IncludedName>(sampled(["claude-code", "codex", "opencode"]))(
  "each plan of %s is an entry, and a hand-over has the last one alone",
  async (name) => {
    session = new ExternalSession(name);
    await session.converse("plan:first plan:last");
    const read = (status: string) => ({ text: "read", status });
    const write = (status: string) => ({ text: "write", status });
    expect(await plans()).toEqual([
      { steps: [read("in_progress"), write("pending")] },
      { steps: [read("completed"), write("in_progress")] },
    ]);
    const handedOver = recordText(await session.entries());
    expect(handedOver.match(/^plan: .*/gm)).toHaveLength(1);
    expect(handedOver).toMatch(/^plan: .*completed/m);
    expect(handedOver).not.toContain("left out");
  },
);
