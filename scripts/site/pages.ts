// `sitePages`, `NAVIGATION`: the pages of the site, and where a reader finds them.
//
//   - A page is a document of the repository. Its place on the site depends on its path alone.
//   - Links stay those of the repository. `siteLink` says where each leads on the site, and refuses a link
//     that leads nowhere.
//   - A page stands in the navigation once. Decisions and examples are listed from their folders.

import { posix } from "node:path";

/** The page that a reader sees first. It is no document, because it says what the site is. */
const HOME = "scripts/site/home.md";

/** Documents outside of `docs`, by their places on the site. */
const OTHERS: Readonly<Record<string, string>> = {
  [HOME]: "index.md",
  "ARCHITECTURE.md": "architecture.md",
  "CHANGELOG.md": "changelog.md",
  "CONTRIBUTING.md": "contributing.md",
  "GLOSSARY.md": "glossary.md",
  "RELIABILITY.md": "reliability.md",
  "bench/README.md": "benchmarks.md",
};

const EXAMPLE = /^examples\/([^/]+)\/README\.md$/;
const DECISION = /^docs\/decisions\/\d.*\.md$/;

/** Lists of pages that the site makes, by their places: the folder that each stands for. */
export const LISTS: Readonly<Record<string, { readonly title: string; readonly pages: RegExp }>> = {
  examples: { title: "Examples", pages: EXAMPLE },
  "docs/internals": { title: "How the parts work", pages: /^docs\/internals\/.*\.md$/ },
};

export interface Group {
  readonly text: string;
  /** Paths in the repository. A folder stands for its list. */
  readonly pages: readonly string[];
}

export interface Section {
  readonly text: string;
  readonly groups: readonly Group[];
}

const docs = (...names: string[]): readonly string[] => names.map((name) => `docs/${name}.md`);

/** The questions of a reader, in the order in which they come. */
export const NAVIGATION: readonly Section[] = [
  {
    text: "Get started",
    groups: [
      {
        text: "By task",
        pages: docs("start-coding-agent", "start-agent", "start-agent-file", "start-fleet"),
      },
      { text: "In order", pages: [...docs("guide"), "examples"] },
    ],
  },
  {
    text: "Concepts",
    groups: [
      { text: "Concepts", pages: [...docs("concepts", "states"), "GLOSSARY.md", ...docs("comparison")] },
    ],
  },
  {
    text: "How-to",
    groups: [
      { text: "Coding agents", pages: docs("external-agents", "agents", "hooks", "orchestrator") },
      { text: "Agents without code", pages: docs("agent-files", "models", "mcp", "skills", "scripts") },
      { text: "Programs", pages: docs("frameworks", "executors", "ipc", "a2a") },
      { text: "Where it runs", pages: docs("local", "deploy", "environments", "versions") },
      { text: "Files and isolation", pages: docs("workspaces", "sandboxes") },
      { text: "Watch it", pages: docs("page", "tracing") },
    ],
  },
  {
    text: "Reference",
    groups: [
      { text: "Interfaces", pages: docs("api", "api-reference", "commands", "config", "protocol") },
      { text: "Formats", pages: docs("journal-format", "session-format") },
      {
        text: "Evidence",
        pages: ["RELIABILITY.md", "bench/README.md", ...docs("local-proof"), "CHANGELOG.md"],
      },
    ],
  },
  {
    text: "Troubleshooting",
    groups: [{ text: "Troubleshooting", pages: docs("troubleshooting", "errors") }],
  },
  {
    text: "Contribute",
    groups: [
      { text: "Start here", pages: ["ARCHITECTURE.md", "CONTRIBUTING.md"] },
      { text: "How the parts work", pages: ["docs/internals"] },
      { text: "Decisions", pages: ["docs/decisions/README.md"] },
    ],
  },
];

/**
 * The places of all pages on the site, by their paths in the repository.
 *
 * @param files of the repository.
 */
export function sitePages(files: readonly string[]): ReadonlyMap<string, string> {
  const pages = new Map<string, string>();
  for (const file of files) {
    const place = placeOf(file);
    if (place !== undefined) pages.set(file, place);
  }
  for (const folder of Object.keys(LISTS)) pages.set(folder, `${folder.replace(/^docs\//, "")}/index.md`);
  return pages;
}

function placeOf(file: string): string | undefined {
  if (OTHERS[file] !== undefined) return OTHERS[file];
  const example = EXAMPLE.exec(file)?.[1];
  if (example !== undefined) return `examples/${example}.md`;
  if (!/^docs\/.*\.md$/.test(file)) return undefined;
  return file.replace(/^docs\//, "").replace(/(^|\/)README\.md$/, "$1index.md");
}

/** The pages of a list or of the decisions, which are not named one by one. */
export function pagesBelow(page: string, files: readonly string[]): readonly string[] {
  const pages = page === "docs/decisions/README.md" ? DECISION : LISTS[page]?.pages;
  return pages === undefined ? [] : files.filter((file) => pages.test(file)).toSorted();
}

/** Pages that the navigation has not exactly once, and names in it that are no pages. */
export function navigationFaults(
  files: readonly string[],
  navigation: readonly Section[] = NAVIGATION,
): readonly string[] {
  const pages = [...sitePages(files).keys()].filter((page) => page !== HOME);
  const named = navigation
    .flatMap(({ groups }) => groups)
    .flatMap((group) => group.pages)
    .flatMap((page) => [page, ...pagesBelow(page, files)]);
  return [
    ...pages.filter((page) => !named.includes(page)).map((page) => `${page} is not in the navigation`),
    ...named.filter((page) => !pages.includes(page)).map((page) => `${page} is no page`),
    ...pages
      .filter((page) => named.indexOf(page) !== named.lastIndexOf(page))
      .map((page) => `${page} is in the navigation twice`),
  ];
}

export interface SiteLink {
  /** Relative to the place of the page that has the link. */
  readonly href: string;
  /** The file that the site has to serve for it, unless it leads to a page. */
  readonly file?: string;
}

/**
 * Where a link of a page leads on the site.
 *
 * @param href as it stands in the document, not to another host.
 */
export function siteLink(page: string, href: string, files: readonly string[]): SiteLink {
  const [path = "", anchor] = href.split("#");
  if (path === "") return { href };
  const pages = sitePages(files);
  const to = posix.join(posix.dirname(page), path).replace(/\/$/, "");
  const here = posix.dirname(pages.get(page)!);
  const behind = anchor === undefined ? "" : `#${anchor}`;
  const place =
    pages.get(to) ?? pages.get(`${to}/README.md`) ?? (to === "README.md" ? "index.md" : undefined);
  if (place !== undefined) return { href: relative(here, place) + behind };
  if (!files.includes(to)) throw new Error(`${page} links to ${href}, which the site does not have`);
  return { href: relative(here, to) + behind, file: to };
}

function relative(from: string, to: string): string {
  const path = posix.relative(from, to);
  return path.startsWith(".") ? path : `./${path}`;
}
