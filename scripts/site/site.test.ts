import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { brokenLinks, inlineParts } from "./check-site.ts";
import { NAVIGATION, navigationFaults, siteLink, sitePages } from "./pages.ts";
import { trackedFiles } from "./tracked-files.ts";

const FILES = trackedFiles(fileURLToPath(new URL("../..", import.meta.url)));

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "holdfast-site-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("the navigation has every document of docs once, and nothing else", () => {
  expect(FILES.filter((file) => /^docs\/.*\.md$/.test(file)).length).toBeGreaterThan(100);
  expect(navigationFaults(FILES)).toEqual([]);
});

test("a page that the navigation lacks, has twice or makes up is a fault", () => {
  const twice = [
    ...NAVIGATION,
    { text: "More", groups: [{ text: "More", pages: ["docs/guide.md", "docs/gone.md"] }] },
  ];
  expect(navigationFaults([...FILES, "docs/new.md"], twice)).toEqual([
    "docs/new.md is not in the navigation",
    "docs/gone.md is no page",
    "docs/guide.md is in the navigation twice",
  ]);
});

test("two pages never have the same place", () => {
  const places = [...sitePages(FILES).values()];
  expect(new Set(places).size).toBe(places.length);
});

test.each([
  ["docs/guide.md", "api.md#sizes", { href: "./api.md#sizes" }],
  ["docs/guide.md", "#test-it", { href: "#test-it" }],
  ["docs/guide.md", "../examples/04-approval", { href: "./examples/04-approval.md" }],
  ["docs/guide.md", "../README.md", { href: "./index.md" }],
  ["docs/decisions/README.md", "../../ARCHITECTURE.md", { href: "../architecture.md" }],
  ["examples/16-executors/README.md", "../../docs/executors.md", { href: "../executors.md" }],
  ["ARCHITECTURE.md", "docs/internals", { href: "./internals/index.md" }],
  [
    "docs/config.md",
    "config.schema.json",
    { href: "./docs/config.schema.json", file: "docs/config.schema.json" },
  ],
])("a link of %s to %s leads to its place on the site", (page, href, expected) => {
  expect(siteLink(page, href, FILES)).toEqual(expected);
});

test("a link to what the site does not have is refused with both names", () => {
  expect(() => siteLink("docs/guide.md", "gone.md", FILES)).toThrow(
    "docs/guide.md links to gone.md, which the site does not have",
  );
});

test("broken links of a built site are found, also to a place in a page", () => {
  write(
    "index.html",
    '<a href="/site/a/b.html#here"></a><a href="/site/a/b.html#gone"></a><img src="/site/x.png">',
  );
  write(
    "a/b.html",
    '<h2 id="here"></h2><a href="../index.html"></a><a href="./"></a><a href="https://example.org"></a>',
  );
  expect(brokenLinks(folder, "/site/")).toEqual([
    "index.html links to /site/a/b.html#gone",
    "index.html links to /site/x.png",
    "a/b.html links to ./",
  ]);
});

test("a script, a style and a handler in a page are found, and files are not", () => {
  write("good.html", '<script src="/a.js"></script><link rel="stylesheet" href="/a.css"><p>style="x"</p>');
  expect(inlineParts(folder)).toEqual([]);
  write("bad.html", '<script>1</script><p style="color:red"></p><style></style><b onclick="x()"></b>');
  expect(inlineParts(folder)).toHaveLength(4);
});

function write(name: string, text: string): void {
  mkdirSync(join(folder, name, ".."), { recursive: true });
  writeFileSync(join(folder, name), text);
}
