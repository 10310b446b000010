// `brokenLinks`, `inlineParts`: the checks of a built site. Each link leads to a file, and to its place in a page.
// No page has a script or a style that a strict content security policy forbids.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** @param base the path below which a server has the site, with a slash at both ends. */
export function brokenLinks(folder: string, base: string): readonly string[] {
  const pages = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".html"),
  );
  const texts = new Map(pages.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  const places = new Map([...texts].map(([name, text]) => [name, new Set(valuesOf(text, "id"))]));
  return [...texts].flatMap(([page, text]) =>
    [...new Set([...valuesOf(text, "href"), ...valuesOf(text, "src")])]
      .filter((link) => !/^(https?|data|mailto):/.test(link))
      .filter((link) => !leadsSomewhere(link, page))
      .map((link) => `${page} links to ${link}`),
  );

  function leadsSomewhere(link: string, page: string): boolean {
    const [path = "", anchor = ""] = link.split("#");
    const absolute = posix.join(base, page);
    const to = decodeURI(path === "" ? absolute : posix.resolve(posix.dirname(absolute), path));
    if (!`${to}/`.startsWith(base)) return false;
    const file = to.slice(base.length);
    const found = [file, posix.join(file, "index.html")].find(
      (name) => /\.\w+$/.test(name) && existsSync(join(folder, name)),
    );
    if (found === undefined) return false;
    return anchor === "" || !places.has(found) || places.get(found)!.has(decodeURIComponent(anchor));
  }
}

function valuesOf(html: string, attribute: "href" | "id" | "src"): readonly string[] {
  return [...html.matchAll(new RegExp(`\\s${attribute}="([^"]*)"`, "g"))].map(([, value = ""]) =>
    value.replaceAll("&amp;", "&"),
  );
}

/** Pages with a part that the policy of the site forbids. */
export function inlineParts(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".html"))
    .flatMap((page) => {
      const html = readFileSync(join(folder, page), "utf8");
      const found =
        html.match(/<style\b|<script(?![^>]*\ssrc=)[^>]*>|<[a-z][^>]*\s(?:style|on[a-z]+)="[^>]*>/gi) ?? [];
      return found.map((part) => `${page} has ${part.slice(0, 80)}`);
    });
}
