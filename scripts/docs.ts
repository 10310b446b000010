// `npm run docs`: builds the site of the documents into `dist/docs`, checks every link, and reports broken ones.
//
//   npm run docs                      static files with an offline search, for any web server
//   npm run docs -- --base /holdfast/ the same for a server that has the site below this path
//   npm run docs -- --serve           shows the site on this machine until Ctrl-C
//
//   - The generator is VitePress, with packages of its own in `scripts/site`. The set-up of a checkout does not
//     install them; this command does.
//   - The pages are the documents as they are. `site/pages.ts` says where a link of the repository leads on
//     the site.
//   - A page loads nothing from another host, and has no inline script or style: its policy forbids them.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { brokenLinks, inlineParts } from "./site/check-site.ts";
import { withExampleSources } from "./site/example-sources.ts";
import { LISTS, NAVIGATION, pagesBelow, siteLink, sitePages } from "./site/pages.ts";
import { serve } from "./site/serve.ts";
import { trackedFiles } from "./site/tracked-files.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TOOLS = join(ROOT, "scripts", "site");
const STAGE = join(TOOLS, "dist"); // Pages find the packages of the generator from there.
const OUT = join(ROOT, "dist", "docs");

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:", // The icons of the theme are addresses of data in its style sheet.
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const { values } = parseArgs({
  options: { base: { type: "string", default: "/" }, serve: { type: "boolean", default: false } },
});
const begin = performance.now();
install();
const files = trackedFiles(ROOT);
const pages = sitePages(files);
stage();
vitepress();
separateInlineParts();
const broken = brokenLinks(OUT, values.base);
const inline = inlineParts(OUT);
const seconds = Math.round((performance.now() - begin) / 1_000);
for (const link of broken) console.error(`broken: ${link}`);
for (const part of inline) console.error(`inline: ${part}`);
console.log(`dist/docs: ${pages.size} pages, ${broken.length} broken links, ${seconds} s`);
if (broken.length + inline.length > 0) process.exitCode = 1;
else if (values.serve) console.log(`${await serve(OUT, values.base, POLICY)} until Ctrl-C`);

/** The packages of the generator, when its lockfile has changed since the last time. */
function install(): void {
  const lock = createHash("sha256")
    .update(readFileSync(join(TOOLS, "package-lock.json")))
    .digest("hex");
  const stamp = join(TOOLS, "node_modules", ".holdfast-setup");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
  writeFileSync(stamp, lock);
}

/** Lays out the pages, their pictures and the files that they link to. */
function stage(): void {
  rmSync(STAGE, { recursive: true, force: true });
  for (const [page, place] of pages) write(join("pages", place), textOf(page));
  for (const file of files.filter((path) => /^docs\/.*\.(svg|png|webp)$/.test(path)))
    copy(file, join("pages", file));
  copy("scripts/site/icon.svg", "public/icon.svg");
  for (const page of pages.keys()) {
    if (page in LISTS) continue;
    for (const file of linkedFiles(page)) copy(file, join("public", file));
  }
  const site = {
    from: join(STAGE, "pages"),
    public: join(STAGE, "public"),
    cache: join(TOOLS, "node_modules", ".cache", "vitepress"),
    to: OUT,
    base: values.base,
    policy: POLICY,
    files,
    pages: Object.fromEntries(pages),
    ...menus(),
  };
  write("site.json", JSON.stringify(site));
}

function textOf(page: string): string {
  const list = LISTS[page];
  if (list !== undefined) {
    const link = (one: string) => `- [${titleOf(one)}](${posix.relative(dirname(page), one)})`;
    const rows = pagesBelow(page, files).map(link);
    return `# ${list.title}\n\n${rows.join("\n")}\n`;
  }
  // Remarks for people who edit a document would be shown as text, because pages have no HTML.
  const text = readFileSync(join(ROOT, page), "utf8").replaceAll(/^<!--.*?-->\n/gms, "");
  return page.startsWith("examples/") ? withExampleSources(ROOT, page, text, files) : text;
}

function linkedFiles(page: string): readonly string[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  return [...text.matchAll(/(?<!!)\[[^\]]*\]\((?![a-z]+:)([^\s()]+)\)/g)].flatMap(([, href]) => {
    const { file } = siteLink(page, href!, files);
    return file === undefined ? [] : [file];
  });
}

/** The navigation as VitePress takes it: the sections on top, and the groups of each at the side. */
function menus() {
  const item = (page: string) => ({
    text: titleOf(page),
    link: `/${pages.get(page)!.replace(/(index)?\.md$/, "")}`,
  });
  const itemOfGroup = (page: string) => {
    const below = pagesBelow(page, files).map(item);
    return below.length === 0 ? item(page) : { ...item(page), collapsed: true, items: below };
  };
  const sidebar = NAVIGATION.map(({ text, groups }) => ({
    text,
    items: groups.map((group) => ({
      text: group.text,
      collapsed: true,
      items: group.pages.map(itemOfGroup),
    })),
  }));
  const nav = NAVIGATION.map(({ text, groups }) => ({ text, link: item(groups[0]!.pages[0]!).link }));
  return { nav, sidebar };
}

function titleOf(page: string): string {
  const title = LISTS[page]?.title ?? /^# (.+)$/m.exec(readFileSync(join(ROOT, page), "utf8"))?.[1];
  if (title === undefined) throw new Error(`${page} has no heading, which is its name in the navigation`);
  return title.replaceAll("`", "");
}

function vitepress(): void {
  rmSync(OUT, { recursive: true, force: true });
  run(process.execPath, [join(TOOLS, "node_modules", "vitepress", "bin", "vitepress.js"), "build", "."], {
    HOLDFAST_SITE: join(STAGE, "site.json"),
    NODE_ENV: "production",
  });
}

/**
 * VitePress writes two small scripts into each page, which become files. Its inline styles say what
 * `theme/style.css` says, or what its program sets in any case.
 */
function separateInlineParts(): void {
  for (const name of readdirSync(OUT, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".html")) continue;
    const html = readFileSync(join(OUT, name), "utf8")
      .replaceAll(/ style="(?:position:relative;|--vp-vh:0px;)?"/g, "")
      .replaceAll(/<script id="[\w-]+">(.*?)<\/script>/gs, (_, code: string) => {
        const file = `inline-${createHash("sha256").update(code).digest("hex").slice(0, 8)}.js`;
        writeFileSync(join(OUT, file), code);
        return `<script src="${values.base}${file}"></script>`;
      });
    writeFileSync(join(OUT, name), html);
  }
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(STAGE, path)), { recursive: true });
  writeFileSync(join(STAGE, path), text);
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(join(STAGE, to)), { recursive: true });
  cpSync(join(ROOT, from), join(STAGE, to));
}

function run(command: string, args: readonly string[], env: Record<string, string> = {}): void {
  const { status, error } = spawnSync(command, args, {
    cwd: TOOLS,
    env: { ...process.env, ...env },
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) throw error ?? new Error(`${command} ${args.join(" ")} ended with ${status}`);
}
