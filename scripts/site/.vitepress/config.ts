// The configuration of VitePress. `scripts/docs.ts` stages the pages first, and passes what it knows in
// HOLDFAST_SITE.
//
// A strict content security policy holds for the output: nothing is inline or from another host. Colours of code
// are classes, and `docs.ts` moves the two scripts of the generator into files.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { transformerStyleToClass } from "@shikijs/transformers";
import { anchorOf } from "../anchors.ts";
import { siteLink } from "../pages.ts";

const site = JSON.parse(readFileSync(process.env["HOLDFAST_SITE"], "utf8"));
const colours = transformerStyleToClass({ classPrefix: "code-" });

const LIGHT = "-light.webp";

/** Page of the repository, by its place on the site. */
const pageAt = new Map(Object.entries(site.pages).map(([page, place]) => [place, page]));

function ownLinks(md) {
  md.core.ruler.push("own-links", ({ tokens, env }) => {
    const page = pageAt.get(env.relativePath);
    if (page === undefined) return;
    for (const token of tokens.flatMap((one) => [one, ...(one.children ?? [])])) {
      const name = token.type === "link_open" ? "href" : token.type === "image" ? "src" : undefined;
      const to = name && token.attrGet(name);
      if (!to || /^[a-z]+:/.test(to)) continue;
      const link = siteLink(page, to, site.files);
      token.attrSet(name, link.href);
      // A file is no page of the site's own navigation.
      if (link.file !== undefined && name === "href") token.attrSet("target", "_blank");
    }
  });
}

/** A picture of the page that is made in light has another one in dark, and a reader sees that of the site's theme. */
function themedPictures(md) {
  md.core.ruler.push("themed-pictures", ({ tokens }) => {
    for (const token of tokens) token.children = token.children?.flatMap(inBothThemes) ?? null;
  });
}

function inBothThemes(token) {
  const src = token.type === "image" ? token.attrGet("src") : "";
  if (!src.endsWith(LIGHT)) return [token];
  return ["light", "dark"].map((theme) => {
    const one = Object.assign(Object.create(Object.getPrototypeOf(token)), token, {
      attrs: [...token.attrs],
    });
    one.attrSet("src", src.replace(LIGHT, `-${theme}.webp`));
    one.attrSet("class", `in-${theme}`);
    return one;
  });
}

/** Each code in a table of errors is a place that one can link to. */
function placesOfCodes(md) {
  md.core.ruler.push("places-of-codes", ({ tokens, env }) => {
    if (env.relativePath !== "errors.md") return;
    tokens.forEach((token, at) => {
      const code = tokens[at + 1]?.children;
      if (token.type === "td_open" && tokens[at - 1].type === "tr_open" && code?.[0]?.type === "code_inline")
        token.attrSet("id", code[0].content);
    });
  });
}

/** The text that the search reads. In it an error code is a part of its own, whose title is the code. */
function searched(text, env, md) {
  const html = md.render(text, env);
  const place = (code) => `<h3 id="${code}">${code} <a href="#${code}"></a></h3>`;
  return html.replaceAll(/<tr>\s*<td id="(\w+)">/g, (row, code) => place(code) + row);
}

export default {
  srcDir: site.from,
  outDir: site.to,
  cacheDir: site.cache,
  base: site.base,
  lang: "en",
  title: "Holdfast",
  description: "Holdfast runs AI agents that must not lose their work.",
  // Otherwise a change of the colours adds a style to the page, which the policy forbids.
  appearance: { disableTransition: false },
  metaChunk: true,
  vite: {
    publicDir: site.public,
    build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 20_000 },
    logLevel: "warn",
  },
  head: [
    ["meta", { "http-equiv": "Content-Security-Policy", content: site.policy }],
    ["link", { rel: "stylesheet", href: `${site.base}code.css` }],
    ["link", { rel: "icon", href: `${site.base}icon.svg`, type: "image/svg+xml" }],
  ],
  markdown: {
    html: false,
    linkify: false,
    languageAlias: { mjs: "js", ndjson: "json" },
    theme: { light: "github-light", dark: "github-dark" },
    codeTransformers: [colours],
    anchor: { slugify: anchorOf },
    config: (md) => [ownLinks, themedPictures, placesOfCodes].forEach((plugin) => plugin(md)),
  },
  themeConfig: {
    nav: site.nav,
    sidebar: site.sidebar,
    outline: [2, 3],
    search: { provider: "local", options: { _render: searched } },
    docFooter: { prev: "Before", next: "Next" },
  },
  buildEnd: ({ outDir }) => writeFileSync(join(outDir, "code.css"), colours.getCSS()),
};
