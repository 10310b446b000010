// `followSharedDrafts`: passes on the texts that models are writing in other processes over the same storage.
// They are asked for while somebody reads.

import { type Clock, repeat, type SharedDrafts } from "@holdfast/core";
import type { Drafts } from "./drafts.ts";

/** While a text is being written, and while none is. */
const [WRITING_MS, QUIET_MS] = [250, 1_000];
const UNREAD_MS = 60_000;

/** @returns ends it. */
export function followSharedDrafts(drafts: Drafts, watch: SharedDrafts["watch"], clock: Clock): () => void {
  let after = 0;
  let isWriting = false;
  const asking = repeat({
    clock,
    isIdle: true,
    async look() {
      isWriting = false;
      const watched = drafts.watched();
      if (watched.length === 0) return;
      const news = await watch(watched, after);
      after = news.next;
      isWriting = news.drafts.length > 0;
      for (const { sessionId, draft } of news.drafts)
        drafts.show(sessionId, { task: BigInt(draft.task), text: draft.text });
    },
    pauseMs: () => (drafts.watched().length === 0 ? UNREAD_MS : isWriting ? WRITING_MS : QUIET_MS),
    restMs: () => WRITING_MS,
  });
  drafts.onRead = () => asking.hurry();
  return () => asking.close();
}
