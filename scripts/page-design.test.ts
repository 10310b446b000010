// The design of the page: one file has its tokens, and everything else names them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SOURCES = join(ROOT, "packages/dashboard/src");
const TOKENS = readFileSync(join(SOURCES, "design/tokens.css"), "utf8");
const PAGE = readFileSync(join(ROOT, "docs/internals/page-design.md"), "utf8");

const VALUE = /#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch)a?\(|(?<![\w.-])\d*\.?\d+(?:px|rem|em|vh|vw|ms|s)\b/gi;
/** A class with a value of its own, such as `text-[13px]`, or with a colour that is no token. */
const OWN_VALUE =
  /[\w-]+-\[[^\]"'`]*(?:#[0-9a-f]{3}|\d(?:px|rem|em|vh|vw|ms|s|%))[^\]"'`]*\]|\b(?:black|white)\/\d+|(?<=["'` ])rounded(?=["'` ])/gi;

function sources(...endings: readonly string[]): readonly (readonly [path: string, text: string])[] {
  return readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
    .filter((path) => endings.some((ending) => path.endsWith(ending)))
    .map((path) => [path, readFileSync(join(SOURCES, path), "utf8")] as const);
}

test("no style sheet but the tokens has a colour, a size or a time", () => {
  const found = sources(".css")
    .filter(([path]) => path !== "design/tokens.css")
    .flatMap(([path, text]) =>
      [...withoutComments(text).matchAll(VALUE)].map(([value]) => `${path}: ${value}`),
    );
  expect(found).toEqual([]);
});

test("no class of a screen has a colour, a size or a time of its own", () => {
  const found = sources(".tsx").flatMap(([path, text]) =>
    [...text.matchAll(OWN_VALUE)].map(([value]) => `${path}: ${value}`),
  );
  expect(found).toEqual([]);
});

test("the page of the design names every colour, every size of a text and every radius", () => {
  const names = [...TOKENS.matchAll(/^ {2}(--(?:color|text|radius|time)-[\w-]+?):/gm)].map(
    ([, name]) => name!,
  );
  expect(names.length).toBeGreaterThan(30);
  const missing = names.filter(
    (name) => !name.includes("--line-height") && !PAGE.includes(`\`${name.slice("--".length)}\``),
  );
  expect(missing).toEqual([]);
});

const TEXTS = ["text", "soft", "accent", "good", "warn", "bad", "busy"];
const STATES = ["accent", "good", "warn", "bad", "busy"];

test.each(["light", "dark"] as const)("every text can be read on every ground, in %s", (theme) => {
  const pairs = [
    ...["ground", "panel", "raised"].flatMap((ground) => TEXTS.map((text) => [text, ground] as const)),
    ...STATES.flatMap((state) => [state, "text"].map((text) => [text, `${state}-ground`] as const)),
    ["on-accent", "accent"] as const,
  ];
  const weak = pairs
    .map(([text, ground]) => ({
      text,
      ground,
      contrast: contrast(colour(text, theme), colour(ground, theme)),
    }))
    .filter(({ contrast: found }) => found < 4.5);
  expect(weak).toEqual([]);
  const edges = ["ground", "panel"].map((ground) => contrast(colour("edge", theme), colour(ground, theme)));
  expect(Math.min(...edges)).toBeGreaterThanOrEqual(3);
});

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[^]*?\*\//g, "");
}

function colour(name: string, theme: "light" | "dark"): readonly number[] {
  const [, light, dark] =
    new RegExp(`--color-${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(TOKENS) ?? [];
  const value = theme === "light" ? light : dark;
  expect(value, `--color-${name}, ${theme}`).toBeDefined();
  return [1, 3, 5].map((at) => Number.parseInt(value!.slice(at, at + 2), 16) / 255);
}

/** The ratio of WCAG 2. */
function contrast(one: readonly number[], other: readonly number[]): number {
  const [light, dark] = [one, other]
    .map((colours) => {
      const [red = 0, green = 0, blue = 0] = colours.map((part) =>
        part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    })
    .sort((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}
