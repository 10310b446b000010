// The side of a child in the local stack, or of a runner: what it is given by its supervisor, and what it
// reports.
//
//   - Addresses and tokens come over the inherited channel. They are in no argument, variable or file that a
//     process of an agent could read.
//   - The channel closes with the supervisor. The child notices at once, and ends as after SIGTERM.

import { UsageError } from "@holdfast/core";
import type { WantedSecrets } from "@holdfast/system";
import type { Arguments } from "@holdfast/terminal/frame/command";
import { reportedError, type ReportedError } from "@holdfast/terminal/frame/command-error";

/** The things that a child is given. */
export interface HandOver {
  /** The URLs of several coordinators in the order in which they are tried. */
  readonly url: string | readonly string[];
  readonly token: string;
  /** Values of the secrets that its agents declare. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** The messages of a supervisor. */
export type Order =
  | ({ readonly type: "hand_over" } & HandOver)
  /** The runner may take sessions from now on. */
  | { readonly type: "begin" }
  /** A new runner with newer code takes the new sessions from now on. */
  | { readonly type: "supersede" };

/** The messages of a child. */
export type Report =
  | {
      readonly type: "listening";
      readonly url: string;
      readonly storage: string;
      readonly adminTokenFile: string;
    }
  /** The files whose change is to be loaded: what was imported, and the configuration. Also sent before a failure. */
  | { readonly type: "files"; readonly files: readonly string[] }
  | {
      readonly type: "loaded";
      readonly agents: readonly string[];
      readonly secrets: WantedSecrets;
    }
  | { readonly type: "registered"; readonly runnerId: string }
  | { readonly type: "started" }
  /** The coordinator knows that the runner is superseded. */
  | { readonly type: "superseded" }
  | { readonly type: "failed"; readonly error: ReportedError };

export interface SupervisorLink {
  readonly handedOver: Promise<HandOver>;
  readonly begin: Promise<void>;
  readonly superseded: Promise<void>;
  /** Resolves when the supervisor has ended. */
  readonly gone: Promise<void>;
  report(report: Report): void;
  /** Reports an error that ends this process. */
  failed(error: unknown): void;
}

/** @throws UsageError when nothing supervises this process. */
export function supervisorLink(args: Arguments): SupervisorLink | undefined {
  const option = ["supervised", "for-trials"].find((name) => args.has(name));
  if (option === undefined) return undefined;
  if (process.send === undefined)
    throw new UsageError("no supervisor has started this process", {
      at: `--${option}`,
      expected: "a process that `holdfast local start`, or a runner, started",
      fix: "leave the option out",
    });
  const handedOver = Promise.withResolvers<HandOver>();
  const begin = Promise.withResolvers<void>();
  const superseded = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  process.on("message", (message) => {
    const order = message as Order;
    switch (order.type) {
      case "hand_over":
        return handedOver.resolve(order);
      case "begin":
        return begin.resolve();
      case "supersede":
        return superseded.resolve();
    }
  });
  process.on("disconnect", () => gone.resolve());
  if (!process.connected) gone.resolve();
  const report = (message: Report): void => {
    if (process.connected) process.send?.(message, undefined, undefined, () => {});
  };
  return {
    handedOver: handedOver.promise,
    begin: begin.promise,
    superseded: superseded.promise,
    gone: gone.promise,
    report,
    failed(error) {
      report({ type: "failed", error: reportedError(error) });
    },
  };
}
