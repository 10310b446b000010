// `dataFolder`: where the data of a user is.

import { userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { HoldfastError } from "@holdfast/core";
import type { Environment } from "../processes/environment.ts";

/**
 * The user's data folder, as XDG says. It is never in the current folder: a project, which may be a clone,
 * would hold what its user trusts.
 *
 * @throws HoldfastError `config_invalid` for a user without a home folder.
 */
export function dataFolder({ env }: { readonly env: Environment }): string {
  const { XDG_DATA_HOME: xdg, HOME: given } = env;
  if (xdg !== undefined && isAbsolute(xdg)) return join(xdg, "holdfast");
  const home = given !== undefined && isAbsolute(given) ? given : homeOfUser();
  if (home !== undefined) return join(home, ".local", "share", "holdfast");
  throw new HoldfastError(
    "config_invalid",
    "your user has no home folder, so there is no folder for your data",
    {
      at: "HOME",
      got: given === undefined ? "no value" : `"${given}"`,
      expected: "the absolute path of a folder that is yours",
      fix: "set HOME or XDG_DATA_HOME to such a folder, outside of projects",
    },
  );
}

/** The home folder that the system knows. */
function homeOfUser(): string | undefined {
  try {
    const { homedir } = userInfo();
    return isAbsolute(homedir) ? homedir : undefined;
  } catch {
    return undefined; // A container whose user has no entry.
  }
}
