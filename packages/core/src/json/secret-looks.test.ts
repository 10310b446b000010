import { expect, test } from "vitest";
import type { Json } from "./json.ts";
import { withoutSecrets } from "./secret-looks.ts";

const KEY = "sk-abcdefghijklmnop1234";

test.each<readonly [string, string]>([
  ["git push origin main", "git push origin main"],
  [`curl -H 'x-api-key: ${KEY}' https://a.example`, "curl -H 'x-api-key: [secret]' https://a.example"],
  ["curl -H 'Authorization: Bearer abcdefghijklmnop'", "curl -H 'Authorization: [secret]'"],
  ["curl -H 'Authorization: Basic dXNlcjpwYXNz'", "curl -H 'Authorization: [secret]'"],
  ["DB_PASSWORD=hunter2 npm start", "DB_PASSWORD=[secret] npm start"],
  ["mysql --password hunter2 -u root", "mysql --password [secret] -u root"],
  ["mysql --password=hunter2", "mysql --password=[secret]"],
  ["git clone https://ada:hunter2@host.example/a.git", "git clone https[secret]host.example/a.git"],
  ["API_KEY=$API_KEY run.sh", "API_KEY=$API_KEY run.sh"],
  ["password=$ecret!Pass run.sh", "password=[secret] run.sh"],
  ['curl -d "{\\"password\\":\\"hunter2\\"}" x', 'curl -d "{\\"password\\":[secret]}" x'],
  ["curl -H 'Authorization: ApiKey abc def' x", "curl -H 'Authorization: [secret]' x"],
  ["curl -H 'Authorization: Bearer $TOKEN' x", "curl -H 'Authorization: [secret] $TOKEN' x"],
  ["echo '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4\nMIIabc", "echo '[secret]"],
  ["count the tokens of a text", "count the tokens of a text"],
])("a command keeps what is no secret: %s", (command, shown) => {
  expect(withoutSecrets({ command }, 1_000)).toEqual({ command: shown });
});

test("a text without end is looked through in linear time", () => {
  const text = "eyJ-".repeat(250_000);
  expect(withoutSecrets(text, text.length)).toBe(text);
});

test("a field with the name of a secret has none of it, however deep it is, and a long text is cut", () => {
  const value: Json = {
    form: [{ apiKey: "plain", password: "", user: "ada" }],
    credentials: { a: 1 },
    long: "x".repeat(50),
    at: 7,
  };
  expect(withoutSecrets(value, 10)).toEqual({
    form: [{ apiKey: "[secret]", password: "", user: "ada" }],
    credentials: "[secret]",
    long: "xxxxxxxxxx… (50 characters)",
    at: 7,
  });
});
