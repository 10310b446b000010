// `reloadWhenReplaced`: loads the page again when its server has another version of it.
//
//   - The files of screens have names made of their content. After an upgrade of the server, the name that an
//     open page knows is gone. The page then reloads at the address where it is.
//   - A file that is gone after the reload, too, causes no further reload. `isReplaced` recognises the error,
//     and the screen says what to do.

const KEY = "reloaded-at";
const AGAIN_MS = 60_000;

/** The words of Chromium, Firefox and Safari for a script that cannot be loaded. */
const MISSING = /dynamically imported module|importing a module script failed/i;

export function isReplaced(error: unknown): boolean {
  return error instanceof Error && MISSING.test(error.message);
}

export function reloadWhenReplaced(): void {
  addEventListener("vite:preloadError", () => {
    // A file that is gone after the reload, too, causes no further reload.
    if (Date.now() - Number(sessionStorage.getItem(KEY) ?? 0) < AGAIN_MS) return;
    sessionStorage.setItem(KEY, String(Date.now()));
    location.reload();
  });
}
