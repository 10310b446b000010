// Every sandbox passes one suite, and one line says how many of its tests ran. A sandbox that this machine
// cannot run is skipped by name, with the reason. Where the parts of a
// sandbox are there and it does not work, a test fails.

import { hostEnvironment } from "../workspace/host-environment.ts";
import { debianImage } from "../testing/debian-image.ts";
import { sandboxConformance } from "../testing/sandbox-conformance.ts";
import { ownSandboxes } from "./sandboxes.ts";

// Where an engine runs, its image is made of Debian's packages.
const image = hostEnvironment["HOLDFAST_SANDBOX_IMAGE"] ?? debianImage();
if (image !== undefined) hostEnvironment["HOLDFAST_SANDBOX_IMAGE"] = image;

// The remote ones have tests over servers of ours. No test calls a service by a key that a person has in the
// environment.
for (const backend of ownSandboxes({ keys: async () => undefined }))
  sandboxConformance({ backend, check: await backend.check() });
