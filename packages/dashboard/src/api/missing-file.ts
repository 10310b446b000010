// `reloadForMissingFiles`: loads the page again when a file of it is missing.
//
//   - The files of screens have names made of their content. After an upgrade of the server, the name that an
//     open page knows is gone. The page then reloads at the address where it is.
//   - A file is missing as well while the server is away. A reload would then leave the page for an error of
//     the browser, so the page waits until the server answers. A browser may keep the failure of a file, so
//     the reload is needed even then.
//   - A file that is gone after the reload, too, causes no further reload. `isMissingFile` recognises the
//     error, and the screen says what to do.

const KEY = "reloaded-at";
const AGAIN_MS = 60_000;
const WAIT_MS = 1_000;

/** The words of Chromium, Firefox and Safari for a script that cannot be loaded. */
const MISSING = /dynamically imported module|importing a module script failed/i;

export function isMissingFile(error: unknown): boolean {
  return error instanceof Error && MISSING.test(error.message);
}

export function reloadForMissingFiles(): void {
  let isWaiting = false;
  addEventListener("vite:preloadError", () => {
    if (isWaiting) return;
    isWaiting = true;
    void untilAnswer().then((wasAway) => {
      isWaiting = false;
      // A file that is gone after the reload, too, causes no further reload.
      if (!wasAway && Date.now() - Number(sessionStorage.getItem(KEY) ?? 0) < AGAIN_MS) return;
      sessionStorage.setItem(KEY, String(Date.now()));
      location.reload();
    });
  });
}

/** @returns whether the server was away first. */
async function untilAnswer(): Promise<boolean> {
  for (let wasAway = false; ; wasAway = true) {
    const isThere = await fetch(location.href, { method: "HEAD", cache: "no-store" }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isThere) return wasAway;
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  }
}
