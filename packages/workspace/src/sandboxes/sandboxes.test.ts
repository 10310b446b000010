// Every sandbox passes one suite. A sandbox that this machine cannot run is skipped by name, with the reason.

import { hostEnvironment } from "../workspace/host-environment.ts";
import { debianImage } from "../testing/debian-image.ts";
import { sandboxConformance } from "../testing/sandbox-conformance.ts";
import { ownSandboxes } from "./sandboxes.ts";

// Where an engine runs, its image is made of Debian's packages.
const image = hostEnvironment["HOLDFAST_SANDBOX_IMAGE"] ?? debianImage();
if (image !== undefined) hostEnvironment["HOLDFAST_SANDBOX_IMAGE"] = image;

// The remote ones have tests over servers of ours. No test calls a service by a key that a person has in the
// environment.
for (const backend of ownSandboxes({ keys: async () => undefined })) {
  const check = await backend.check();
  sandboxConformance({ backend, unavailable: check.status === "ready" ? undefined : check.reason });
}
