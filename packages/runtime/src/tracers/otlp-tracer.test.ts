// The packages of OpenTelemetry, in versions that any project may have.

import { expect, test } from "vitest";
import { refuseOld } from "./otlp-tracer.ts";

test("packages that are too old are named with the version that was found, and the others are not", () => {
  const versions: Readonly<Record<string, string>> = {
    "@opentelemetry/api": "1.9.0",
    "@opentelemetry/resources": "2.0.1",
    "@opentelemetry/sdk-trace": "3.1.0",
  };
  expect(() => refuseOld((name) => versions[name])).toThrow(
    expect.objectContaining({
      code: "config_invalid",
      got: "@opentelemetry/api 1.9.0, @opentelemetry/resources 2.0.1",
      expected: "@opentelemetry/api 1.10.0 or newer, @opentelemetry/resources 3.1.0 or newer",
      fix: expect.stringContaining("npm install @opentelemetry/api@latest @opentelemetry/resources@latest`"),
    }),
  );
  expect(() => refuseOld(() => undefined)).not.toThrow();
});
