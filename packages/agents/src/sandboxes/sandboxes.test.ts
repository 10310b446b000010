// Every sandbox passes one suite. A sandbox that this machine cannot run is skipped by name, with the reason.

import { sandboxConformance } from "../testing/sandbox-conformance.ts";
import { ownSandboxes } from "./sandboxes.ts";

for (const backend of ownSandboxes()) {
  const check = await backend.check();
  sandboxConformance({ backend, unavailable: check.status === "ready" ? undefined : check.reason });
}
