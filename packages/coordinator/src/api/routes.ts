// Which method a path of REST means.

import { Refusal } from "../call/refusal.ts";
import { METHODS, type Method, type Rule } from "./contract.ts";

export interface Route {
  readonly method: Method;
  readonly rule: Rule;
  /** Fields that stand in the path, by their names in the contract, and what stands there. */
  readonly params: readonly (readonly [field: string, value: string])[];
}

interface Template {
  readonly method: Method;
  readonly rule: Rule;
  readonly segments: readonly string[];
}

const TEMPLATES: readonly Template[] = METHODS.flatMap((method) =>
  method.rules.map((rule) => ({ method, rule, segments: rule.path.slice(1).split("/") })),
);

/** However it is written; what cannot be read is, too, so that nobody learns by it what is there. */
export function isUnderV1(path: string): boolean {
  const [first = ""] = path.slice(1).split("/");
  try {
    return decode(first) === "v1" && path.length > first.length + 1;
  } catch {
    return true;
  }
}

/**
 * A HEAD is a GET of which only the head is sent.
 *
 * @throws Refusal `not_found`, or `method_not_allowed` with what is.
 */
export function findRoute(verb: string, path: string): Route {
  const segments = path.slice(1).split("/").map(decodeSegment);
  const matches = TEMPLATES.flatMap((template) => {
    const params = match(template.segments, segments);
    return params === undefined ? [] : [{ method: template.method, rule: template.rule, params }];
  });
  // A path that is written out is meant before one that only fits: it has fewer parameters.
  const found = matches
    .filter(
      ({ rule, method }) =>
        rule.verb === verb || (verb === "HEAD" && rule.verb === "GET" && !method.isStream),
    )
    .toSorted((a, b) => a.params.length - b.params.length)[0];
  if (found !== undefined) return found;
  if (matches.length === 0)
    throw new Refusal("not_found", "the path does not exist", {
      fix: "see `/openapi.json` for the paths",
    });
  const allowed = [...new Set(matches.map(({ rule }) => rule.verb))].toSorted().join(", ");
  throw new Refusal("method_not_allowed", `${verb} is not a method of this path`, {
    expected: allowed,
    headers: { Allow: allowed },
  });
}

function match(template: readonly string[], segments: readonly string[]): [string, string][] | undefined {
  if (template.length !== segments.length) return undefined;
  const params: [string, string][] = [];
  for (const [index, expected] of template.entries()) {
    const segment = segments[index]!;
    if (!expected.startsWith("{")) {
      if (expected !== segment) return undefined;
    } else if (segment === "") {
      return undefined;
    } else {
      params.push([expected.slice(1, -1), segment]);
    }
  }
  return params;
}

function decodeSegment(segment: string): string {
  const text = decode(segment);
  if (text.includes("\0")) throw badPath();
  return text;
}

/** A part of a URL as it was meant. @throws Refusal `bad_path`. */
export function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw badPath();
  }
}

function badPath(): Refusal {
  const expected = "percent signs followed by two hexadecimal digits, in UTF-8 and without NUL";
  return new Refusal("bad_path", "the path or the query cannot be decoded", { expected });
}
