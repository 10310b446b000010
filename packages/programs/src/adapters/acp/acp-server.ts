// The tools of a session as an MCP server of the Agent Client Protocol (`serverOf`). Every agent accepts a
// server over standard streams.

import type { Fields } from "../../session/fields.ts";
import type { WayBack } from "../../session/way-back/way-back.ts";
import { WAY_BACK } from "../../session/way-back/way-back-tools.ts";

export function serverOf({ command, args, env }: WayBack): Fields {
  const variables = Object.entries(env).map(([name, value]) => ({ name, value }));
  return { name: WAY_BACK, command, args, env: variables };
}
