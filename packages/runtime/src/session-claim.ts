// Under what a driver commits: the claim of a stored session, or what stores a new one together with its first batch.
//
// From the first commit on there is a token and nothing else; a refusal is told as the error it is to whoever drove the session.

import {
  HoldfastError,
  type Change,
  type ChangeResult,
  type FirstBatch,
  type SealedSegment,
  type SessionPatch,
} from "@holdfast/core";

/** Store a session together with the first batch of its agent. Calls one of the two, once. */
export type Creator = (
  first: FirstBatch,
  onCreated: (token: number) => void,
  onError: (error: HoldfastError) => void,
) => void;

/** Submit a change to storage. Calls one of the two, once. */
export type Submit = (
  change: Change,
  onResult: (result: ChangeResult) => void,
  onError: (error: HoldfastError) => void,
) => void;

/** What of a segment is stored. */
type Batch = Pick<SealedSegment, "firstSeq" | "records" | "entries" | "consumed">;

export class SessionClaim {
  readonly #sessionId: string;
  readonly #submit: Submit;
  #claim: number | Creator;

  constructor(sessionId: string, claim: number | Creator, submit: Submit) {
    this.#sessionId = sessionId;
    this.#claim = claim;
    this.#submit = submit;
  }

  /** Of the claim, once there is one. */
  get token(): number | undefined {
    return typeof this.#claim === "number" ? this.#claim : undefined;
  }

  /** Submit what is to be stored with the row it makes. Calls one of the two, once. */
  commit(
    { firstSeq, records, entries, consumed }: Batch,
    patch: SessionPatch | undefined,
    onResult: (result: ChangeResult) => void,
    onError: (error: HoldfastError) => void,
  ): void {
    const session = patch === undefined ? {} : { session: patch };
    if (typeof this.#claim === "function") {
      const onCreated = (token: number): void => {
        this.#claim = token;
        onResult({ status: "committed", inbox: 0 });
      };
      this.#claim({ records, entries, ...session }, onCreated, onError);
      return;
    }
    const sessionId = this.#sessionId;
    const token = this.#claim;
    this.#submit(
      { type: "commit_batch", sessionId, token, firstSeq, records, entries, consumed, ...session },
      onResult,
      onError,
    );
  }
}

/** Why a commit that was answered with anything but `committed` was refused. */
export function refusalOf(sessionId: string, result: ChangeResult): HoldfastError {
  if (result.status === "fenced") {
    return new HoldfastError("session_claimed", `session ${sessionId} was claimed by another process`, {
      fix: "it goes on there; nothing of this process was committed after that",
    });
  }
  // Somebody ended or cancelled it meanwhile: the journal says what is so.
  const reason = result.status === "invalid" ? result.reason : result.status;
  return new HoldfastError("session_ended", `session ${sessionId} refused a commit: ${reason}`);
}
