// The dialog that forks a session at a place of its journal, also with another input.
//
// A press makes one fork, however often its answer is lost: the page chooses the id of the fork.

import { forkChoices, type ForkChoice, type JournalRow } from "@holdfast/proto/view";
import { useState, type FormEvent, type RefObject } from "react";
import { ApiError, call } from "../../api/client.ts";
import type { Session } from "../../api/types.ts";
import { Button, Command, Problem } from "../../parts/parts.tsx";
import { json } from "../../parts/text.ts";
import { sessionPath, useAbout, useRequest, useRequestKey } from "../../parts/use-session.ts";

interface ForkProps {
  readonly ref: RefObject<HTMLDialogElement | null>;
  readonly session: Session;
  readonly rows: readonly JournalRow[];
  readonly at: number;
  readonly onForked: (sessionId: string) => void;
}

export function ForkDialog(props: ForkProps) {
  const { ref } = props;
  const { choices, choice, setChosen, input, setInput, problem, tasks, setTasks, fork, isBusy, error } =
    useFork(props);
  return (
    <dialog
      ref={ref}
      aria-label="Fork the session"
      className="m-auto w-full max-w-screen sm:max-w-xl rounded-lg border border-line bg-panel p-5 text-text backdrop:bg-veil"
    >
      <form onSubmit={(event) => void fork(event)} noValidate className="space-y-3">
        <h2 className="font-semibold">Fork the session</h2>
        <AboutForks />
        <label className="block">
          The fork begins
          <select
            value={choice.at}
            onChange={(event) => setChosen(Number(event.target.value))}
            className={FIELD}
          >
            {choices.map((each) => (
              <option key={each.at} value={each.at}>
                {placeText(each)}
              </option>
            ))}
          </select>
        </label>
        <ForkInput choice={choice} input={input} problem={problem} onChange={setInput} />
        <label className="block">
          Tasks without an outcome there
          <select
            value={tasks}
            onChange={(event) => setTasks(event.target.value === "cancel" ? "cancel" : "rerun")}
            className={FIELD}
          >
            <option value="rerun">are done again</option>
            <option value="cancel">are cancelled</option>
          </select>
        </label>
        {error === undefined ? null : <Problem error={error} />}
        <div className="flex gap-2">
          <Button type="submit" kind="main" isDisabled={isBusy}>
            Fork
          </Button>
          <Button onClick={() => ref.current?.close()}>Close</Button>
        </div>
      </form>
    </dialog>
  );
}

const FIELD = "w-full rounded-md border border-line bg-ground px-2 py-1.5";

/** The fork that a person describes, and the request that makes it. */
function useFork({ ref, session, rows, at, onForked }: ForkProps) {
  const choices = forkChoices(rows, at);
  const [chosen, setChosen] = useState<number>();
  const choice = choices.find((each) => each.at === chosen) ?? choices[0]!;
  const before = session.input === undefined ? "" : json(session.input);
  const [input, setInput] = useState(before);
  const [tasks, setTasks] = useState<"rerun" | "cancel">("rerun");
  const [problem, setProblem] = useState<string>();
  const { run, isBusy, error } = useRequest();
  const { key, renew } = useRequestKey(JSON.stringify([choice.at, tasks, input]));
  const isEdited = choice.takesInput && input !== before;
  const fork = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const value = isEdited ? read(input) : undefined;
    setProblem(value?.problem);
    if (value?.problem !== undefined) return;
    const newSessionId = `ses_${key}`; // The page chooses the id, so a press makes one fork.
    await run(async () => {
      await call<Session>("POST", sessionPath(session.sessionId, "fork"), {
        at: choice.at,
        tasks,
        newSessionId,
        ...(value === undefined ? {} : { input: value.value }),
      }).catch((thrown: unknown) => {
        if (!(thrown instanceof ApiError && thrown.code === "session_exists")) throw thrown;
      });
      renew();
      ref.current?.close();
      onForked(newSessionId);
    });
  };
  return { choices, choice, setChosen, input, setInput, problem, tasks, setTasks, fork, isBusy, error };
}

function AboutForks() {
  const isLocal = useAbout()?.isLocal ?? true;
  return (
    <p className="text-soft">
      The fork is a new session with this journal, state and conversation up to a place, and continues
      independently. This session does not change.
      {isLocal ? (
        <>
          {" "}
          It runs when a process resumes it: <Command>holdfast resume ID</Command>
        </>
      ) : null}
    </p>
  );
}

function ForkInput(props: {
  readonly choice: ForkChoice;
  readonly input: string;
  readonly problem: string | undefined;
  readonly onChange: (input: string) => void;
}) {
  const { choice, input, problem, onChange } = props;
  return (
    <>
      {choice.takesInput ? (
        <label className="block">
          Input, as JSON
          <textarea
            value={input}
            rows={6}
            spellCheck={false}
            aria-invalid={problem !== undefined}
            onChange={(event) => onChange(event.target.value)}
            className={`${FIELD} font-mono text-sm`}
          />
        </label>
      ) : (
        <p className="text-soft">
          Its input stays the same there, because the agent has acted on it. It can be changed at a checkpoint
          and at the beginning.
        </p>
      )}
      {problem === undefined ? null : (
        <p role="alert" className="text-bad">
          {problem}
        </p>
      )}
    </>
  );
}

function placeText({ at, place }: ForkChoice): string {
  switch (place) {
    case "beginning":
      return "at the beginning, with nothing done";
    case "checkpoint":
      return `behind the checkpoint, record ${at - 1}`;
    case "record":
      return `behind record ${at - 1}`;
  }
}

function read(text: string): { readonly value?: unknown; readonly problem?: string } {
  if (text.trim() === "") return { problem: "the input is empty: write JSON, such as null" };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: `the input is no JSON: ${error instanceof Error ? error.message : ""}` };
  }
}
