import { create } from "@bufbuild/protobuf";
import { StartRequestSchema } from "@holdfast/proto";
import { describe, expect, it } from "vitest";
import type { FieldError } from "../call/refusal.ts";
import { readBody } from "./json-read.ts";

describe("json-read-3: a repeated key", () => {
  // Before, the place of the first value was read as the kind of the last one. The search ran beyond the text
  // and filled the memory.
  it.each(['{"budget":0,"budget":{}}', '{"budget":{},"budget":0}', '{"budget":{"maxTokens":1},"budget":{}}'])(
    "%s is reported once at its place, whatever types the values have",
    (text) => {
      const errors: FieldError[] = [];
      readBody(StartRequestSchema, create(StartRequestSchema), Buffer.from(text), errors);
      expect(errors).toContainEqual({ pointer: "/budget", code: "duplicate", message: "is given twice" });
      expect(errors.filter(({ code }) => code === "duplicate")).toHaveLength(1);
    },
  );
});
