// `printedTexts`: the texts of the sources that people read, as the syntax tree has them.

import type { Node, Source, Tree } from "./tidy/tree.ts";

/** Stands for a value that is only known later, and may be a word or a part of one, or nothing. */
export const LATER = "\u2026";

/** The page has texts of its own, which are tested in a browser; the others speak to no user. */
const LEFT_OUT = ["dashboard", "testkit", "simulator", undefined];

export interface PrintedText {
  /** `file:line`. */
  readonly at: string;
  readonly text: string;
  readonly node: Node;
  readonly parent: Node | undefined;
}

/** The sources whose texts people read. */
export function speakingSources({ sources }: Tree): readonly Source[] {
  return sources.filter(({ isTest, packageFolder }) => !isTest && !LEFT_OUT.includes(packageFolder));
}

/** Each whole text: the parts of a sum are one, and a value that is put in stands as `LATER`. */
export function printedTexts(source: Source): readonly PrintedText[] {
  const found: PrintedText[] = [];
  source.walk((node, parent) => {
    if (!isText(node) || (parent?.type === "BinaryExpression" && isText(parent))) return;
    found.push({ at: `${source.file}:${source.lineAt(node.start)}`, text: textOf(node), node, parent });
  });
  return found;
}

function isText({ type, value, operator }: Node): boolean {
  if (type === "Literal") return typeof value === "string";
  return type === "TemplateLiteral" || (type === "BinaryExpression" && operator === "+");
}

function textOf(node: Node): string {
  if (!isText(node)) return LATER;
  if (node.type === "Literal") return node["value"] as string;
  if (node.type === "BinaryExpression") return textOf(node["left"] as Node) + textOf(node["right"] as Node);
  const quasis = node["quasis"] as readonly { readonly value: { readonly cooked: string } }[];
  return quasis.map(({ value }) => value.cooked).join(LATER);
}
