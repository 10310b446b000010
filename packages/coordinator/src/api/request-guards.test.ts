import { describe, expect, it } from "vitest";
import { checkBody, checkHead, checkJsonType } from "./request-guards.ts";
import { Refusal } from "../call/refusal.ts";

const POLICY = {
  hosts: new Set(["127.0.0.1:8765", "localhost:8765"]),
  origins: new Set(["https://console.example"]),
  headerBytes: 16 * 1024,
};

const HOST = ["Host", "127.0.0.1:8765"];

function codeOf(act: () => unknown): string {
  try {
    act();
    return "passed";
  } catch (thrown) {
    return thrown instanceof Refusal ? thrown.code : String(thrown);
  }
}

describe("a head", () => {
  it.each([
    ["of ours", "/v1/sessions", HOST, "passed"],
    ["with our name in other letters", "/", ["HOST", "LocalHost:8765"], "passed"],
    ["without a host", "/", [], "bad_request"],
    ["with two hosts", "/", [...HOST, ...HOST], "bad_request"],
    ["of a name that only leads here", "/", ["Host", "rebound.example:8765"], "forbidden_origin"],
    ["of another port", "/", ["Host", "127.0.0.1"], "forbidden_origin"],
    ["in absolute form", "http://evil.example/v1/sessions", HOST, "bad_request"],
    ["of the whole server", "*", HOST, "bad_request"],
    ["from our own page", "/", [...HOST, "Origin", "http://localhost:8765"], "passed"],
    ["from a page that is allowed", "/", [...HOST, "Origin", "https://console.example"], "passed"],
    ["from another page", "/", [...HOST, "Origin", "https://evil.example"], "forbidden_origin"],
    ["from a page without origin", "/", [...HOST, "Origin", "null"], "forbidden_origin"],
    [
      "from two pages",
      "/",
      [...HOST, "Origin", "http://localhost:8765", "Origin", "null"],
      "forbidden_origin",
    ],
    [
      "with an origin that only begins as ours",
      "/",
      [...HOST, "Origin", "http://localhost:8765.evil.example"],
      "forbidden_origin",
    ],
    ["with two tokens", "/", [...HOST, "Authorization", "a", "authorization", "b"], "bad_request"],
    ["with two types", "/", [...HOST, "Content-Type", "a", "Content-Type", "a"], "bad_request"],
    ["with large headers", "/", [...HOST, "X", "x".repeat(16 * 1024)], "headers_too_large"],
  ])("%s", (_what, target, rawHeaders, expected) => {
    const head = { target, rawHeaders, isHttp2: false };
    expect(codeOf(() => checkHead(head, POLICY))).toBe(expected);
  });

  it.each([
    ["names its host as authority", [":authority", "localhost:8765"], "passed"],
    ["may repeat it as host", [":authority", "localhost:8765", "host", "localhost:8765"], "passed"],
    ["may name it as host alone, as nginx does", ["host", "localhost:8765"], "passed"],
    ["may not name another as host alone", ["host", "rebound.example:8765"], "forbidden_origin"],
    ["must name one", [], "bad_request"],
    ["may not name two as host", ["host", "localhost:8765", "host", "127.0.0.1:8765"], "bad_request"],
    ["may not name two", [":authority", "localhost:8765", "host", "127.0.0.1:8765"], "bad_request"],
  ])("a head of HTTP/2 %s", (_what, rawHeaders, expected) => {
    expect(codeOf(() => checkHead({ target: "/", rawHeaders, isHttp2: true }, POLICY))).toBe(expected);
  });
});

describe("a body", () => {
  it.each([
    ["that is not compressed", ["Content-Length", "100"], "passed"],
    ["that says so", ["Content-Encoding", "identity"], "passed"],
    ["that is compressed", ["Content-Encoding", "gzip"], "unsupported_media_type"],
    ["above its limit", ["Content-Length", "101"], "too_large"],
  ])("%s", (_what, rawHeaders, expected) => {
    expect(codeOf(() => checkBody(rawHeaders, 100))).toBe(expected);
  });

  it.each([
    ["application/json", "passed"],
    ["Application/JSON; charset=UTF-8", "passed"],
    ["text/plain", "unsupported_media_type"],
    ["application/x-www-form-urlencoded", "unsupported_media_type"],
    ["application/json; charset=latin1", "unsupported_media_type"],
    ["application/jsonp", "unsupported_media_type"],
  ])("a body of type %s: %s", (type, expected) => {
    expect(codeOf(() => checkJsonType(["content-type", type]))).toBe(expected);
  });

  it("without a type is refused", () =>
    expect(codeOf(() => checkJsonType([]))).toBe("unsupported_media_type"));
});
