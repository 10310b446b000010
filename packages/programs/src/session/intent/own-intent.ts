// Takes from this machine what a turn may not take from the record of its session (`takeOwnIntent`). The
// record may come from another machine, in a file or from a coordinator, and it names a program, a permission
// mode and a profile.
//
//   - A turn runs the program that this machine has under the agent's name, or that a profile which it has
//     kept names. The path of the record is never run.
//   - A permission mode that this machine does not offer, a profile that it has not kept, and a missing
//     program are losses. A person decides before a process starts, and the session continues without the
//     mode and the profile.

import { HoldfastError } from "@holdfast/core";

import type { ExternalAgentProtocol, ExternalIntent } from "../external-agent-protocol.ts";
import { isKept } from "./session-profile.ts";

export interface OwnPlace {
  readonly protocol: Pick<ExternalAgentProtocol, "name" | "locate">;
  /** The modes that this machine offers. The first one is the default. */
  readonly permissionModes: readonly [string, ...string[]];
  /** The folder with the profiles that this machine has kept; `undefined` for none. */
  readonly mirrors: string | undefined;
}

/** The rights of a session that its machine gives. */
export type OwnRights = Pick<ExternalIntent, "permissionMode" | "profile">;

export interface OwnIntent {
  /** With the program of this machine. */
  readonly intent: ExternalIntent;
  /** The parts of the record that this machine does not give. */
  readonly losses: readonly string[];
  /** How the session continues after a loss. */
  readonly rights: OwnRights;
}

export function takeOwnIntent(
  { protocol, permissionModes, mirrors }: OwnPlace,
  intent: ExternalIntent,
): OwnIntent {
  const { permissionMode, profile } = intent;
  const losses: string[] = [];
  const isOwn = profile === undefined || isKept(profile, mirrors);
  let { program } = intent;
  try {
    program = protocol.locate(isOwn ? profile : undefined);
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    losses.push(error.message);
  }
  const isOffered = permissionModes.includes(permissionMode);
  if (!isOffered)
    losses.push(
      `the permission mode "${permissionMode}" is not offered on this machine, and "${permissionModes[0]}" takes its place`,
    );
  if (!isOwn)
    losses.push(
      `the profile "${profile.name}" was not taken on this machine, and the session continues without it`,
    );
  return {
    intent: { ...intent, program },
    losses,
    rights: {
      permissionMode: isOffered ? permissionMode : permissionModes[0],
      ...(isOwn && profile !== undefined ? { profile } : {}),
    },
  };
}

/** Losses of a receipt alone have no rights. */
export function withRights(intent: ExternalIntent, rights: OwnRights | undefined): ExternalIntent {
  if (rights === undefined) return intent;
  const { profile: _recorded, ...others } = intent;
  return { ...others, ...rights };
}
