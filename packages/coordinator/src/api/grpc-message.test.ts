// The text of an error, as a stock gRPC client shows it.

import { toBinary, type DescMethod } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { SessionService } from "@holdfast/proto";
import { afterEach, expect, test } from "vitest";
import { Refusal } from "../call/refusal.ts";
import { sampleOf } from "./testing/sample.ts";
import { startStubApi, type StubApi } from "./testing/stub-api.ts";

const TEXT = 'the agent "Grüße, 世界" has 100% of a+b; c/d? e&f=#1 @ 5:00, %2C stays\nsecond line';

let api: StubApi;
let client: Client;
afterEach(async () => {
  client.close();
  await api.close();
});

async function open(): Promise<void> {
  api = await startStubApi(() => Promise.reject(new Refusal("conflict", TEXT)));
  client = new Client(`127.0.0.1:${api.port}`, credentials.createInsecure());
}

function errorOf(desc: DescMethod, token: string): Promise<ServiceError> {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const path = `/${desc.parent.typeName}/${desc.name}`;
  const bytes = (): Buffer => Buffer.from(toBinary(desc.input, sampleOf(desc.input)));
  return new Promise((resolve, reject) => {
    if (desc.methodKind === "server_streaming") {
      const stream = client.makeServerStreamRequest(path, bytes, () => undefined, undefined, metadata);
      stream.on("data", () => {}).once("error", (error) => resolve(error as ServiceError));
      stream.once("end", reject);
    } else
      client.makeUnaryRequest(
        path,
        bytes,
        () => undefined,
        undefined,
        metadata,
        (error) => (error === null ? reject(new Error("it was answered")) : resolve(error)),
      );
  });
}

test.each([SessionService.method.get, SessionService.method.watch])(
  "a stock client shows the error of $name as plain text",
  async (desc) => {
    await open();
    expect((await errorOf(desc, "admin")).details).toBe(TEXT);
  },
);

test("a stock client shows what the gates refuse as plain text", async () => {
  await open();
  const missing = { ...SessionService.method.get, name: "Missing" } as DescMethod;
  const { details } = await errorOf(missing, "admin");
  expect(details).toBe("the method does not exist");
  expect((await errorOf(SessionService.method.get, "nobody")).details).not.toContain("%");
});
