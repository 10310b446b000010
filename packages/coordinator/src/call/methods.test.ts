import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { GetHealthRequestSchema, HealthService } from "@holdfast/proto";
import { expect, test } from "vitest";
import { methodsOf } from "./methods.ts";

class Health implements ServiceImpl<typeof HealthService> {
  readonly #status = "ok";

  get() {
    return { status: this.#status };
  }

  getVersion() {
    return { version: "1", now: 0n };
  }
}

test("the methods of a class are found by the contract, and each has its object", () => {
  const methods = methodsOf(HealthService, new Health());
  expect([...methods.keys()]).toEqual(HealthService.methods);
  const get = methods.get(HealthService.method.get)!;
  expect(get(create(GetHealthRequestSchema), {} as HandlerContext)).toEqual({ status: "ok" });
});

test("a method that a service lacks is an error before the first call", () => {
  const lacking = { get: () => ({ status: "ok" }) } as unknown as Health;
  expect(() => methodsOf(HealthService, lacking)).toThrow("the service has no HealthService.getVersion");
  expect([...methodsOf(HealthService, lacking, ["getVersion"]).keys()]).toEqual([HealthService.method.get]);
});
