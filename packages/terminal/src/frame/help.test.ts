import { describe, expect, test } from "vitest";
import type { Syntax } from "./command.ts";
import { usageOf, usagesOf } from "./help.ts";

const option = (more: object = {}) => ({ help: "", ...more });
const line = (syntax: Pick<Syntax, "takes" | "options">): string => {
  const { takes, options } = syntax;
  return usageOf({ name: "box", options, ...(takes && { takes }) });
};

describe("usage", () => {
  test("a usage line has the arguments in their order, then the options", () => {
    const takes = [
      { name: "NAME", is: "" },
      { name: "VERSION|TAG", is: "", optional: true },
      { name: "FILE", is: "", optional: true, repeats: true },
    ] as const;
    expect(line({ takes, options: { hard: option(), tag: option({ value: "TAG" }) } })).toBe(
      "box NAME [VERSION|TAG] [FILE...] [--hard] [--tag TAG]",
    );
  });

  test("a usage line has an option in the place of the argument that it replaces", () => {
    const takes = [{ name: "ID", is: "", orOption: "last" }] as const;
    expect(line({ takes, options: { last: option(), all: option() } })).toBe("box (ID | --last) [--all]");
    const program = [
      { name: "COMMAND", is: "", optional: true, afterDashes: true, orOption: "url" },
    ] as const;
    expect(line({ takes: program, options: { url: option({ value: "URL" }), user: option() } })).toBe(
      "box [--user] [-- COMMAND | --url URL]",
    );
  });

  test("a usage line groups rivals, and shows which options are needed and which repeat", () => {
    const options = {
      yes: option({ excludes: ["no"] }),
      no: option(),
      run: option({ value: "FILE", excludes: ["signal"], required: true }),
      signal: option({ value: "ID", required: true }),
      key: option({ value: "KEY", repeats: true }),
      agents: option({ value: "FILE", repeats: true, takesMore: true }),
    };
    expect(line({ options })).toBe(
      "box (--run FILE | --signal ID) [--yes | --no] [--key KEY]... [--agents FILE...]",
    );
  });

  test("a usage line stays short: [OPTIONS] stands for many, and those that are needed stay", () => {
    const many = Array.from({ length: 9 }, (_, i) => [`option-${i}`, option({ value: "VALUE" })]);
    const options = { registry: option({ value: "URL", required: true }), ...Object.fromEntries(many) };
    expect(line({ options })).toBe("box --registry URL [OPTIONS]");
  });

  test("each action has a usage line, with its own options", () => {
    const syntax: Syntax = {
      name: "box",
      actions: {
        list: { does: "", options: ["all"] },
        add: { does: "", takes: [{ name: "NAME", is: "the name" }], options: ["tag"] },
      },
      defaultAction: "list",
      options: { all: option(), tag: option({ value: "TAG" }) },
    };
    expect(usagesOf(syntax)).toEqual(["box [list] [--all]", "box add NAME [--tag TAG]"]);
    expect(usageOf(syntax)).toBe("box ACTION [OPTIONS]");
  });
});
