import { didYouMean } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { parseArguments } from "./arguments.ts";
import type { Syntax } from "./command.ts";

const RUN: Syntax = {
  name: "run",
  takes: [{ name: "FILE", is: "the file", optional: true, repeats: true }],
  options: { input: { help: "", value: "JSON", excludes: ["park"] }, park: { help: "", short: "p" } },
};
const parse = (...words: string[]) => parseArguments(words, RUN);

/** A command with actions. */
const BOX: Syntax = {
  name: "box",
  actions: {
    list: { does: "", options: ["all"] },
    add: {
      does: "",
      takes: [
        { name: "NAME", is: "the name", ifMissing: "give one" },
        { name: "TEXT", is: "the text", optional: true, ifMore: "put the text in quotes" },
      ],
      options: ["tag"],
    },
    start: { does: "", options: ["agents"] },
    stop: { does: "", takes: [{ name: "ID", is: "the id (or --all)", orOption: "all" }], options: ["all"] },
  },
  defaultAction: "list",
  options: {
    all: { help: "" },
    tag: { help: "", value: "TAG" },
    agents: { help: "", value: "FILE", repeats: true, takesMore: true },
  },
  lacks: { db: "leave it out" },
};
const box = (...words: string[]) => parseArguments(words, BOX);

describe("arguments", () => {
  test("a second file after one option is refused with the way to name it", () => {
    expect(box("start", "--agents", "a.ts", "b.ts").texts("agents")).toEqual(["a.ts", "b.ts"]);
    expect(() => box("start", "--agents", "a.ts", "--json", "b.ts")).toThrow(
      expect.objectContaining({ fix: expect.stringContaining("name --agents again") }),
    );
    expect(() => box("start", "b.ts")).toThrow(expect.not.objectContaining({ fix: expect.anything() }));
  });

  test("a line without an action has the default one, and each action its own arguments and usage", () => {
    expect(box()).toMatchObject({ action: "list", positionals: [], usage: "box [list] [--all]" });
    expect(box("add", "x")).toMatchObject({
      action: "add",
      positionals: ["x"],
      usage: "box add NAME [TEXT] [--tag TAG]",
    });
    expect(box("stop", "--all").positionals).toEqual([]);
  });

  test.each([
    [["lsit"], "`lsit` is no action of `holdfast box`; did you mean list?", undefined],
    [["add"], "the name is missing", "give one"],
    [["add", ""], "the name is missing", "give one"],
    [["add", "a", "b", "c"], '"c" is one argument too many', "put the text in quotes"],
    [["stop"], "the id (or --all) is missing", undefined],
    [["add", "x", "--all"], "box add has no option --all", "give one of --tag"],
    [["list", "--db", "x"], "box has no option --db", "leave it out"],
    [
      ["add", "x", "--tga", "y"],
      "there is no option --tga; did you mean --tag?",
      "give one of --tag, --json",
    ],
    [["add", "--name", "y"], "NAME is an argument of its own", "without --name"],
  ])("box %j is refused by what its action has", (words, message, fix) => {
    expect(() => box(...words)).toThrow(message);
    if (fix !== undefined)
      expect(() => box(...words)).toThrow(expect.objectContaining({ fix: expect.stringContaining(fix) }));
  });

  test("options stand anywhere, with = or without, and the rest in its order", () => {
    const args = parse("a", "--input=x=y", "b", "-h", "--db", "my db");
    expect(args.positionals).toEqual(["a", "b"]);
    expect(args.text("input")).toBe("x=y");
    expect(args.text("db")).toBe("my db");
    expect(args.has("help")).toBe(true);
    expect(args.has("park")).toBe(false);
  });

  test("a token is refused wherever it stands, and not told back", () => {
    const token = `hf_reg_${"0123456789abcdef".repeat(4)}`;
    for (const words of [[token], ["--", token], ["--input", token], [`--token=${token}`]]) {
      expect(() => parse(...words)).toThrow("a token is not given as an argument");
      expect(() => parse(...words)).not.toThrow("0123456789");
    }
  });

  test("negative numbers, a lone dash and what follows -- are no options", () => {
    expect(parse("answer", "-1.5", "-", "--", "--park", "-x").positionals).toEqual([
      "answer",
      "-1.5",
      "-",
      "--park",
      "-x",
    ]);
    expect(parse("--input", "-").text("input")).toBe("-");
    expect(parse("--input", "-7").text("input")).toBe("-7");
  });

  test.each([
    [["--prak"], "there is no option --prak; did you mean --park?"],
    [["--agnet", "x"], "there is no option --agnet"],
    [["-x"], "there is no option -x"],
    [["---"], "there is no option ---"],
    [["--__proto__"], "there is no option --__proto__"],
    [["--file", "a.ts"], "there is no option --file: FILE is an argument of its own"],
    [["--json-file"], "there is no option --json-file"],
    [["--input"], "--input needs a value"],
    [["--input", "--json"], "--input needs a value"],
    [["--input="], "--input needs a value"],
    [["--input", "1", "--input", "2"], "--input is given twice"],
    [["--park=yes"], "--park takes no value"],
    [["--input", "1", "--park"], "--input and --park exclude each other"],
  ])("%j is refused, by name", (words, message) => {
    expect(() => parse(...words)).toThrow(message);
  });

  test("the value of an option is no argument of its own", () => {
    expect(() => parse("--json-text", "x")).not.toThrow("argument of its own");
  });

  test("a close word is suggested, and a distant one is not", () => {
    const known = ["run", "resume", "result", "list"];
    expect(didYouMean("rnu", known)).toBe("; did you mean run?");
    expect(didYouMean("resum", known)).toBe("; did you mean resume?");
    expect(didYouMean("lsit", known)).toBe("; did you mean list?");
    expect(didYouMean("deploy", known)).toBe("");
    expect(didYouMean("x", known)).toBe("");
  });
});
