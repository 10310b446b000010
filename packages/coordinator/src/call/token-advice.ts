// `tokenFor` advises a caller which kind of token a call needs, and how to get one.

import type { Caller } from "./caller.ts";

type Kind = Exclude<Caller["kind"], "none">;

const WAYS: Readonly<Record<Kind, string>> = {
  user: "`holdfast token create NAME` makes one",
  metrics: "`holdfast token create NAME --kind metrics` makes one",
  admin:
    "the coordinator's first start writes one to the file admin-token beside its data, and `holdfast token create NAME --kind admin` makes more",
  registration: "`holdfast token create NAME --kind registration` makes one",
  runner: "a runner is given one when it registers",
  job: "a runner makes one for the agent it runs",
};

/** The kinds of token that may make a call, and how to get the first of them that people receive. */
export function tokenFor(callers: ReadonlySet<string>): { readonly expected: string; readonly fix: string } {
  const kinds = (Object.keys(WAYS) as Kind[]).filter((kind) => callers.has(kind));
  const [first] = kinds;
  return first === undefined
    ? { expected: "nobody", fix: "no token may call this method" }
    : { expected: `a token of kind ${kinds.join(" or ")}`, fix: WAYS[first] };
}

/** The advice for a caller without a valid token. */
export const ANOTHER_TOKEN =
  "have an admin make one: `holdfast token create NAME` for a user, with `--kind registration` for a runner, once";
