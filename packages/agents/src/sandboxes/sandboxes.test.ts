// Every sandbox passes one suite. A sandbox that this machine cannot run is skipped by name, with the reason.

import { sandboxConformance } from "../testing/sandbox-conformance.ts";
import { ownSandboxes } from "./sandboxes.ts";

// The remote ones have tests over servers of ours. No test calls a service by a key that a person has in the environment.
for (const backend of ownSandboxes(async () => undefined)) {
  const check = await backend.check();
  sandboxConformance({ backend, unavailable: check.status === "ready" ? undefined : check.reason });
}
