// The work of a session at this moment, in one line: the call under way or the steps that run, and for how long.
// Tokens and cost so far stand beside it, and the button that stops it.

import { type CallView, costText, stepsText, THINKING, viewCall } from "@holdfast/proto/view";
import type { LiveState } from "../api/live-session.ts";
import { call } from "../api/client.ts";
import { isEnded, type Session } from "../api/types.ts";
import { CallWords } from "../parts/reading/call-words.tsx";
import { Button, Problem, useNow } from "../parts/parts.tsx";
import { brief, duration } from "../parts/text.ts";
import { sessionPath, useRequest } from "../parts/use-session.ts";

export function NowLine({ live }: { readonly live: LiveState }) {
  const { session, progress, timeline } = live;
  const now = useNow(1_000);
  const { run, isBusy, error } = useRequest();
  if (session === undefined || isEnded(session) || session.status === "paused") return null;
  const doing = doingOf(live);
  if (doing === undefined) return null;
  const { inputTokens, outputTokens } = progress.spent;
  const tokens = inputTokens + outputTokens;
  const isCancelling = session.status === "cancelling";
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-t border-line bg-panel px-3 py-1.5 text-sm">
      <p
        className="flex min-w-0 flex-1 basis-60 items-baseline gap-2"
        role="group"
        aria-label="What it does now"
      >
        <span aria-hidden className="pulse text-busy">
          ●
        </span>
        <span className="min-w-0 truncate font-medium">
          {isCancelling ? "is being cancelled" : (doing.text ?? <CallWords call={doing.call} />)}
        </span>
        <span className="shrink-0 text-soft">{duration(Math.max(0, now - doing.since))}</span>
      </p>
      <span className="text-soft">
        {tokens === 0
          ? ""
          : [`${tokens.toLocaleString()} tokens`, costText(timeline.usage)]
              .filter((one) => one !== "")
              .join(", ")}
      </span>
      {isCancelling ? null : (
        <Button isDisabled={isBusy} onClick={() => void run(() => stop(session))}>
          Stop
        </Button>
      )}
      {error === undefined ? null : <Problem error={error} />}
    </div>
  );
}

/** The signal by which a conversation ends its turn and waits for the next message. */
const INTERRUPT = "interrupt";

/** An agent that hears an interrupt ends its turn. Any other one is paused, and continues when it is unpaused. */
async function stop({ sessionId, waits }: Session): Promise<void> {
  if (waits.some(({ type, name }) => type === "signal" && name === INTERRUPT))
    await call("POST", sessionPath(sessionId, "signals"), { name: INTERRUPT });
  else await call("POST", sessionPath(sessionId, "pause"));
}

type Doing = { readonly since: number } & (
  | { readonly text: string; readonly call?: undefined }
  | { readonly text?: undefined; readonly call: CallView }
);

function doingOf({ session, work, progress, writing }: LiveState): Doing | undefined {
  const { steps, since = Date.now() } = progress;
  if (steps.length === 0) return undefined;
  if (writing.size > 0) return { text: "writing", since };
  const { openCall } = work;
  if (openCall !== undefined) return { call: viewCall(openCall.name, openCall.input), since };
  // The steps of a conversation are no words of the work.
  return { text: session!.entryCount > 0 ? THINKING : brief(stepsText(steps), 200), since };
}
