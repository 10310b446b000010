/** Next calls it once, before the first request. */
export async function register(): Promise<void> {
  if (process.env["NEXT_RUNTIME"] === "nodejs") await import("./runtime.ts");
}
