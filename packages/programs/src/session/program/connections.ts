// `Connections`: the ways from the program of a session to Holdfast, which are the tools of the session and the
// gateway with its keys. They last as long as the program, which may be kept for the next turn.
//
//   - Calls and requests belong to the turn at work. Between two turns they are refused.
//   - A later turn has them again only where they would be opened in the same way.

import { HoldfastError } from "@holdfast/core";

import type { ExternalAgentProtocol, ExternalIntent } from "../external-agent-protocol.ts";
import { openModelGateway } from "../keys/model-gateway.ts";
import type { KeyAccess, ModelGateway } from "../keys/program-keys.ts";
import type { PendingCalls } from "../way-back/pending-calls.ts";
import { openWayBack, type OpenedWayBack, type WayBack } from "../way-back/way-back.ts";
import { wayBackTools, type Offered } from "../way-back/way-back-tools.ts";

/** The turn that calls and requests are part of. */
interface ConnectedTurn {
  readonly calls: Pick<PendingCalls, "carryOut">;
  /** Rejects with a HoldfastError for a request to a model that may not be sent. */
  readonly admit: () => Promise<void>;
}

/** All that the connections of a program are opened by. */
export interface Wanted {
  readonly intent: ExternalIntent;
  readonly offered: Offered;
  /** Absent for an agent that is no program of this machine. */
  readonly access: KeyAccess | undefined;
}

export class Connections {
  readonly wayBack: WayBack;
  readonly gateway: ModelGateway | undefined;
  readonly #wanted: string;
  readonly #close: () => Promise<void>;
  readonly #at: { turn: ConnectedTurn | undefined };

  private constructor(
    wanted: string,
    at: { turn: ConnectedTurn | undefined },
    wayBack: OpenedWayBack,
    gateway: Awaited<ReturnType<typeof openModelGateway>>,
  ) {
    this.#wanted = wanted;
    this.#at = at;
    this.wayBack = wayBack;
    this.gateway = gateway;
    this.#close = async () => {
      wayBack.close();
      await gateway?.close();
    };
  }

  static async open(
    wanted: Wanted,
    run: { readonly sessionId: string; readonly runId: string },
    turn: ConnectedTurn,
  ): Promise<Connections> {
    const at: { turn: ConnectedTurn | undefined } = { turn };
    const wayBack = await openWayBack(
      (call, gone) =>
        at.turn?.calls.carryOut(call, gone) ?? Promise.resolve({ text: NO_TURN.message, isError: true }),
      wayBackTools(wanted.offered),
    );
    const gateway =
      wanted.access &&
      (await openModelGateway(wanted.access, run, () => at.turn?.admit() ?? Promise.reject(NO_TURN)));
    return new Connections(keyOf(wanted), at, wayBack, gateway);
  }

  fit(wanted: Wanted): boolean {
    return this.#wanted === keyOf(wanted);
  }

  /** Connects the next turn, or none. */
  connect(turn: ConnectedTurn | undefined): void {
    this.#at.turn = turn;
  }

  close(): Promise<void> {
    return this.#close();
  }
}

/** The connections of the programs that wait for the next turn of their sessions. */
export class KeptConnections {
  readonly #protocol: Pick<ExternalAgentProtocol, "endWaiting">;
  /** By the tags of the sessions. */
  readonly #kept = new Map<string, Connections>();

  constructor(protocol: Pick<ExternalAgentProtocol, "endWaiting">) {
    this.#protocol = protocol;
  }

  /** Connects a turn: with the program that waits for it where that fits, and otherwise a new one. */
  async open(tag: string, ...[wanted, run, turn]: Parameters<typeof Connections.open>): Promise<Connections> {
    const waiting = this.#kept.get(tag);
    this.#kept.delete(tag);
    if (waiting?.fit(wanted) === true) {
      waiting.connect(turn);
      return waiting;
    }
    if (waiting !== undefined) {
      // A program without connections here, such as a warm executor, knows what its next turn needs.
      await this.#protocol.endWaiting?.(tag);
      await waiting.close();
    }
    return Connections.open(wanted, run, turn);
  }

  /** The turn is over. @param left of its agent: absent where its program has ended. */
  async leave(tag: string, connections: Connections, left: Promise<unknown> | undefined): Promise<void> {
    connections.connect(undefined);
    if (left === undefined) return connections.close();
    this.#kept.set(tag, connections);
    void left.then(() => {
      if (this.#kept.get(tag) !== connections) return; // A later turn has them.
      this.#kept.delete(tag);
      void connections.close();
    });
  }
}

const NO_TURN = new HoldfastError("run_terminal", "no turn of this session is under way", {
  fix: "work only while a turn is under way",
});

/** The keys of a program are those of its adapter and of the profile in its intent. */
function keyOf({ intent, offered }: Wanted): string {
  return JSON.stringify([intent, offered]);
}
