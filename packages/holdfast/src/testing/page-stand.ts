// `PageStand`: the page in a real browser, over a coordinator or a local database, for tests of its screens.
//
//   - `trouble` holds every script error, every refusal of the page's policy, and every request to elsewhere.
//   - Where `HOLDFAST_PAGE_PICTURES` names a folder, `check` leaves a picture of each screen there, for
//     people who look at them.

import { appendFileSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import { startCoordinator, tokenIn, call } from "./coordinator-process.ts";
import { Project } from "./holdfast-process.ts";

const AGENTS = new URL("./page-agents.ts", import.meta.url).pathname;
const PICTURES = process.env["HOLDFAST_PAGE_PICTURES"];
const PHONE = { width: 390, height: 800 };
const DESK = { width: 1200, height: 800 };

/** Figures of the page for the evidence of its campaign, which names their file. */
export function noteFigures(figures: string): void {
  console.log(figures);
  const file = process.env["HOLDFAST_PAGE_FIGURES"];
  if (file !== undefined) appendFileSync(file, `${figures}\n`);
}

export interface OpenCoordinator {
  readonly url: string;
  readonly admin: string;
  /** The file with the admin's token. */
  readonly adminTokenFile: string;
  /** One call of the API by the admin. */
  readonly ask: (path: string, body?: unknown) => Promise<any>; // oxlint-disable-line typescript/no-explicit-any -- a test says its type.
}

/** The beginnings of texts that are wider than their place, where nobody means to scroll sideways. */
export const BEYOND_THE_EDGE = `[...document.querySelectorAll("*")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1 && !each.matches("input, textarea, .overflow-x-auto"))
  .filter((each) => each === document.documentElement || /auto|scroll/.test(getComputedStyle(each).overflowX))
  .map((each) => each.tagName + " " + each.className + ": " + each.innerText.slice(0, 100))`;

export class PageStand {
  readonly project: Project;
  readonly page: Page;
  readonly trouble: string[] = [];

  /** The address of the server that was opened last. */
  #origin = "";

  static async open(browser: Browser, project = new Project({ fromSources: true })): Promise<PageStand> {
    return new PageStand(await browser.newPage({ viewport: DESK, reducedMotion: "reduce" }), project);
  }

  private constructor(page: Page, project: Project) {
    this.page = page;
    this.project = project;
    page.setDefaultTimeout(30_000);
    page.on("pageerror", (error) => this.trouble.push(String(error)));
    page.on("request", (request) => {
      if (!request.url().startsWith("http://127.0.0.1:")) this.trouble.push(request.url());
    });
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) this.trouble.push(message.text());
    });
  }

  async close(): Promise<void> {
    await this.page.close();
    await this.project.dispose();
  }

  /** `holdfast ui` over the project's database, signed in. @returns its address. */
  async openLocal(): Promise<string> {
    const ui = this.project.start(["ui", "--json"]);
    await ui.says('"listening"');
    const { url } = JSON.parse(ui.stdout) as { readonly url: string };
    await this.page.goto(url);
    await this.#goToInbox();
    this.#origin = new URL(url).origin;
    return this.#origin;
  }

  /** Opens a link to a view of the page that was opened. */
  async follow(path: string): Promise<void> {
    await this.page.goto(`${this.#origin}/ui/${path}`);
  }

  /** A coordinator, signed in as its admin. */
  async openCoordinator(): Promise<OpenCoordinator> {
    const coordinator = await startCoordinator(this.project);
    const admin = tokenIn(coordinator);
    const { url, adminTokenFile } = coordinator;
    this.#origin = url;
    await this.page.goto(`${url}/ui/`);
    await this.signIn(admin);
    await this.#goToInbox();
    return { url, admin, adminTokenFile, ask: (path, body) => call(url, admin, path, body) };
  }

  /** From the home screen of a server without a question. */
  async #goToInbox(): Promise<void> {
    await this.page.getByText("Nothing waits for you.").waitFor();
    await this.page.keyboard.press("i");
    await this.page.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
  }

  async signIn(token: string): Promise<void> {
    await this.page.getByLabel("Token").fill(token);
    await this.page.keyboard.press("Enter");
  }

  /** A runner of the agents in `page-agents.ts`, unless `args` name others. */
  async startRunner({ url, ask }: OpenCoordinator, name: string, ...args: string[]): Promise<void> {
    const { secret } = await ask("tokens", { kind: "registration", name });
    const agents = args.includes("--agents") ? [] : ["--agents", AGENTS];
    const runner = this.project.start(["runner", "-c", url, "--name", name, ...agents, ...args], {
      env: { HOLDFAST_TOKEN: secret },
    });
    await runner.says("waiting for runs");
  }

  /** The screen as it is passes axe in light, in dark, and at a phone's width, where nothing hangs over its edge. */
  async check(name: string): Promise<void> {
    const { page } = this;
    for (const [kind, colorScheme, size] of [
      ["light", "light", DESK],
      ["dark", "dark", DESK],
      ["phone", "light", PHONE],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(size);
      expect(await this.violations(), `${name}, ${kind}`).toEqual([]);
      if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, `${name}-${kind}.png`) });
      const over = await page.evaluate<readonly string[]>(BEYOND_THE_EDGE);
      expect(over, `${name}, ${kind}: beyond the edge`).toEqual([]);
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize(DESK);
  }

  /** The violations of any rule that axe finds: of WCAG and of good practice. */
  async violations(): Promise<unknown[]> {
    await this.page.evaluate(axe.source);
    const found = await this.page.evaluate<{
      readonly violations: readonly {
        readonly id: string;
        readonly nodes: readonly { readonly html: string }[];
      }[];
    }>("axe.run({ resultTypes: ['violations'] })");
    return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 200))]);
  }
}
