// `DrivenSession`: the state of one session that the parts of its driver share. `session-driver.ts` says what
// each phase allows.

import type {
  HoldfastError,
  Kernel,
  OpenTask,
  Session,
  SessionPatch,
  SessionSnapshot,
  SessionState,
} from "@holdfast/core";
import type { Driven, DriverWorld } from "./driver-environment.ts";
import { PendingDeliveries } from "./pending-deliveries.ts";
import type { SessionClaim } from "./session-claim.ts";
import type { Departure } from "./session-outcome.ts";
import { SessionWeight } from "./session-weight.ts";
import type { SliceMember } from "../loop/slice-loop.ts";
import type { EventDraft, NoteDraft } from "../tasks/drafts.ts";
import type { TaskSession } from "../tasks/task-session.ts";

/** The work that a driver has in progress. */
export type Phase =
  | { readonly type: "still" | "slice" | "over" }
  | {
      readonly type: "commit";
      /** Whether a slice is wanted once the batch is answered. */
      isWoken: boolean;
      /** K6. Whether the batch keeps the outcomes of a refused one. If it is refused as well, they are lost. */
      readonly isSalvage: boolean;
    };

export const STILL: Phase = { type: "still" };
export const SLICE: Phase = { type: "slice" };
export const OVER: Phase = { type: "over" };

/** A step that comes before the agent's own work. */
export type Opening = "recover" | "fork" | "start";

/** A driver, as its parts know it. */
export interface DriverOfSession extends Driven, SliceMember {
  /** Something arrived for the session. */
  poke(): void;
  /**
   * Stop driving, leaving the session as its last commit left it.
   *
   * @param isHardCancel whether a hard cancel has ended the session.
   */
  abandon(error?: HoldfastError, isHardCancel?: boolean): void;
  depart(departure: Departure): void;
  /** The checkpoint with this state is committed. */
  nextTurn(state: SessionState): void;
}

/** A session as it was loaded, with its first kernel. */
interface Loaded {
  readonly snapshot: SessionSnapshot;
  readonly claim: SessionClaim;
  readonly kernel: Kernel;
}

export class DrivenSession implements TaskSession {
  readonly sessionId: string;
  readonly session: Session;
  readonly driver: DriverOfSession;
  readonly claim: SessionClaim;
  readonly pending = new PendingDeliveries();
  readonly weight: SessionWeight;
  readonly openings = new Set<Opening>(["start"]);
  kernel: Kernel;
  phase: Phase = STILL;
  /** How many events were delivered since the last commit. */
  deliveries = 0;
  /** session-driver-5. The patch of the last commit. */
  drainTo: SessionPatch | undefined;
  /** After a recovery the row may be out of date, so it is compared even if nothing was done. */
  isRowStale: boolean;
  readonly #world: DriverWorld;

  constructor(world: DriverWorld, driver: DriverOfSession, { snapshot, claim, kernel }: Loaded) {
    this.#world = world;
    this.driver = driver;
    this.session = snapshot.session;
    this.sessionId = snapshot.session.sessionId;
    this.claim = claim;
    this.kernel = kernel;
    this.weight = new SessionWeight(snapshot);
    this.isRowStale = snapshot.records.length > 0;
  }

  get isOver(): boolean {
    return this.phase.type === "over";
  }

  get token(): number | undefined {
    return this.claim.token;
  }

  openTask(id: number): OpenTask | undefined {
    return this.isOver ? undefined : this.kernel.open.get(id)?.task;
  }

  deliver(event: EventDraft): void {
    this.pending.add(event);
    this.wake();
  }

  note(note: NoteDraft): void {
    this.pending.note(note);
    this.wake();
  }

  pause(note: NoteDraft, patch: SessionPatch): boolean {
    if (this.kernel.turn.cancel !== undefined) return false;
    this.drainTo ??= patch; // session-driver-5.
    this.note(note);
    return true;
  }

  wake(): void {
    this.#world.loop.wake(this.driver);
  }

  asked(waits: boolean): void {
    this.#world.asked(this.driver, this.session.payers, waits);
  }
}
