// Transcripts of `holdfast runner --ipc`: lines of both directions, which a test plays against a real runner.
//
// A line of a transcript has a request or another text of the host, or a message of the runner. The messages
// after a line of the host are those that it leads to. Times, versions and paths are replaced by values that
// stay the same. Rows of a session that is at work are left out, because how many of them there are depends
// on the machine.

import type { IpcTestHost, Message } from "./ipc-host.ts";

export type TranscriptLine =
  | { readonly host: Message }
  | { readonly hostText: string }
  | { readonly runner: Message };

const TIMES = ["at", "createdAt", "updatedAt", "endedAt", "durationMs", "expiresAt"];
const AT_WORK = ["submitted", "working"];

/** The message as a transcript has it; nothing when it has none. */
function scrubbed(message: Message): Message | undefined {
  if (message["type"] === "session" && AT_WORK.includes(message["session"].status)) return undefined;
  const text = JSON.stringify(message, (key, value: unknown) => {
    if (TIMES.includes(key) && typeof value === "number") return 0;
    if (key === "holdfast") return "0.0.0";
    if (key === "place") return { type: "database", at: "holdfast.db" };
    return key === "file" ? undefined : value;
  });
  return JSON.parse(text) as Message;
}

/** Plays the host's lines. @returns the transcript as it was this time, each block in the order of the given one. */
export async function playTranscript(
  transcript: readonly TranscriptLine[],
  host: IpcTestHost,
): Promise<TranscriptLine[]> {
  const played: TranscriptLine[] = [];
  let seen = 0;
  const received = (): Message[] =>
    host.messages
      .slice(seen)
      .map(scrubbed)
      .filter((message) => message !== undefined);
  let expected: Message[] = [];
  const flush = async (): Promise<void> => {
    await host.process.until(() => received().length >= expected.length, JSON.stringify(expected));
    played.push(...byTopic(received()).map((runner) => ({ runner })));
    seen = host.messages.length;
    expected = [];
  };
  for (const line of transcript) {
    if ("runner" in line) {
      expected.push(line.runner);
      continue;
    }
    await flush();
    played.push(line);
    if ("hostText" in line) host.write(line.hostText);
    else host.send(line.host);
  }
  await flush();
  return played;
}

/** Answers in their order, then the messages of each session in theirs: between them there is no order. */
function byTopic(messages: readonly Message[]): Message[] {
  return messages.toSorted((a, b) => topicOf(a).localeCompare(topicOf(b)));
}

function topicOf({ sessionId }: Message): string {
  return (sessionId as string | undefined) ?? "";
}
