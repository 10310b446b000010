import { didYouMean } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { parseArguments, takeNothing } from "./arguments.ts";
import { COMMON_OPTIONS } from "./command.ts";

const OPTIONS = {
  input: { help: "", value: "JSON", excludes: ["park"] },
  park: { help: "", short: "p" },
  ...COMMON_OPTIONS,
};
const parse = (...words: string[]) => parseArguments(words, OPTIONS, "run FILE [--input TEXT]");

describe("arguments", () => {
  test("a second file after one option is refused with the way to name it", () => {
    const refused = expect(() => takeNothing(["b.ts"], "up --agents FILE... [--port PORT]"));
    refused.toThrow(expect.objectContaining({ fix: expect.stringContaining("name --agents again") }));
    expect(() => takeNothing(["b.ts"], "down")).toThrow(
      expect.not.objectContaining({ fix: expect.anything() }),
    );
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
    expect(() => parse("--text", "x")).not.toThrow("argument of its own");
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
