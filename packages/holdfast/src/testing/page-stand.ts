// `PageStand`: the page of `holdfast ui` over a project, in a browser that records everything that goes wrong.

import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import type { Project } from "./holdfast-process.ts";

export class PageStand {
  readonly page: Page;
  /** Everything that the page asked for from elsewhere, and everything that went wrong in it. */
  readonly trouble: string[] = [];
  readonly #origin: string;

  private constructor(page: Page, origin: string) {
    this.page = page;
    this.#origin = origin;
    page.setDefaultTimeout(30_000);
    page.on("pageerror", (error) => this.trouble.push(String(error)));
    page.on("request", (request) => {
      if (!request.url().startsWith("http://127.0.0.1:")) this.trouble.push(request.url());
    });
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) this.trouble.push(message.text());
    });
  }

  /** Starts `holdfast ui`, and signs in. */
  static async open(project: Project, browser: Browser): Promise<PageStand> {
    const ui = project.start(["ui", "--json"]);
    await ui.says('"listening"');
    const { url } = JSON.parse(ui.stdout) as { readonly url: string };
    const stand = new PageStand(
      await browser.newPage({ viewport: { width: 1200, height: 800 } }),
      new URL(url).origin,
    );
    await stand.page.goto(url);
    await stand.page.getByText("Nothing waits for you").waitFor();
    return stand;
  }

  /** Opens a link to a view of the page. */
  async follow(path: string): Promise<void> {
    await this.page.goto(`${this.#origin}/ui/${path}`);
  }

  /** The violations of WCAG A and AA that axe finds. */
  async violations(): Promise<unknown[]> {
    await this.page.evaluate(axe.source);
    const found = await this.page.evaluate<{
      readonly violations: readonly {
        readonly id: string;
        readonly nodes: readonly { readonly html: string }[];
      }[];
    }>(`axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })`);
    return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 200))]);
  }
}
